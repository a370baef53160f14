"""Errors for values that do not fit a column, with reasons for the user."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from kpg.columns.schema import Type

MAX_SHOWN_CHARACTERS: Final = 80  # so that one long value does not fill the screen


class UnfitValue(ValueError):
    """A value that a column cannot hold exactly; `hint` says what to do about it."""

    def __init__(self, why: str, hint: str | None = None) -> None:
        super().__init__(why)
        self.hint = hint


def wrong_class(type_: Type, value: Any) -> TypeError:
    """Return the error for a value of a Python class that the type does not take."""
    return TypeError(f"{show(value)} is of type {type(value).__name__}, not {type_}")


def show(value: Any) -> str:
    """Return a value as text for a message, cut to 80 characters."""
    text = repr(value[:60]) if isinstance(value, (str, bytes)) else repr(value)
    return text if len(text) <= MAX_SHOWN_CHARACTERS else text[: MAX_SHOWN_CHARACTERS - 3] + "..."
