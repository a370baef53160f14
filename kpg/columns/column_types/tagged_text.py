"""Values without a JSON form, written as `{tag: text}`, in the two formats that use them: messages and plans.

    read(write(value)) == value          for every value of the type

Tags and texts are literals on wires: they never change. The two formats differ because messages are for any client
(timestamps end in Z, decimals have no exponent) and plans are for kpg's own workers (floats are exact in hexadecimal).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class TaggedText:
    """The tag of one type, and its conversion of values to text and back.

    `read` raises ValueError, ArithmeticError or OverflowError for text that is not a value of the type. Instances of
    `classes` are always written in this form; it is empty if the format decides for each value, as for large integers.
    With `only`, it is the form of those instances for which `only` is true; another type has the form of the others.
    """

    tag: str
    classes: tuple[type, ...]
    write: Callable[[Any], str]
    read: Callable[[str], Any]
    example: str = ""  # a hint for text that `read` refuses
    only: Callable[[Any], bool] | None = None


class TaggedFormat:
    """The tagged texts of all types in one format."""

    def __init__(self) -> None:
        self._by_tag: dict[str, TaggedText] = {}
        self._by_class: dict[type, TaggedText] = {}
        self._of_some: dict[type, TaggedText] = {}  # the texts of only some instances of a class

    def add(self, text: TaggedText) -> None:
        """Add the text of a type; raise ValueError if another type has its tag."""
        if text.tag in self._by_tag:
            raise ValueError(f"two types write values with the tag {text.tag!r}")
        self._by_tag[text.tag] = text
        table = self._by_class if text.only is None else self._of_some
        table.update(dict.fromkeys(text.classes, text))

    def remove(self, text: TaggedText) -> None:
        """Remove the text of a type."""
        del self._by_tag[text.tag]
        for python_class in text.classes:
            del (self._by_class if text.only is None else self._of_some)[python_class]

    @property
    def tags(self) -> tuple[str, ...]:
        """All tags."""
        return tuple(self._by_tag)

    def __getitem__(self, tag: str) -> TaggedText:
        return self._by_tag[tag]

    def of_tag(self, tag: str) -> TaggedText | None:
        """Return the text with a tag, None if no type has it."""
        return self._by_tag.get(tag)

    def of_value(self, value: Any) -> TaggedText | None:
        """Return the text for a value: that of its class, or of the nearest base class."""
        for python_class in type(value).__mro__:
            some = self._of_some.get(python_class)
            if some is not None and some.only is not None and some.only(value):
                return some
            text = self._by_class.get(python_class)
            if text is not None:
                return text
        return None


MESSAGE_FORMAT: Final = TaggedFormat()  # messages between clients and the server (kpg.protocol.value_codec)
PLAN_FORMAT: Final = TaggedFormat()  # constants in plans that are sent to workers (kpg.plan.plan_values)
