"""Positions in source text, and errors that show them.

program.dl:3:14: no relation is called 'edgee'
detail: 3 | path(x, y) :- edgee(x, y).
                          ^^^^^
hint: Did you mean 'edge'?
"""

from __future__ import annotations

import difflib
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, TypeVar

from kpg.errors import ProgramError, UndefinedName

EXCERPT_CHARACTERS = 100  # longer lines are cut around the position, so that the excerpt fits a terminal
LISTED_NAMES = 12  # names that a hint lists when none is similar
COMPARED_NAMES = 500  # with a name that is unknown: some milliseconds

Failure = TypeVar("Failure", bound=ProgramError)


@dataclass(frozen=True, slots=True)
class SourceText:
    """A text and the name that errors give it."""

    name: str
    text: str

    def line(self, number: int) -> str:
        """Return a line by its number, counted from 1."""
        lines = lines_of(self.text)
        return lines[number - 1].rstrip("\r") if 1 <= number <= len(lines) else ""


@lru_cache(maxsize=8)
def lines_of(text: str) -> list[str]:
    """Return the lines of a text; cached, because each error and each rule of a program asks for one of them."""
    return text.split("\n")


class Position(NamedTuple):
    """A range of characters in one line of a text; line and column are counted from 1."""

    source: SourceText
    line: int
    column: int
    length: int = 1

    def __str__(self) -> str:
        return f"{self.source.name}:{self.line}:{self.column}" if self.source.text else self.source.name

    def text(self) -> str:
        """Return the characters in the range."""
        return self.source.line(self.line)[self.column - 1 : self.column - 1 + self.length]

    def excerpt(self) -> str:
        """Return the line, and below it carets under the range."""
        text = self.source.line(self.line).replace("\t", " ")
        start = max(0, self.column - 1 - EXCERPT_CHARACTERS // 2) if len(text) > EXCERPT_CHARACTERS else 0
        shown = text[start : start + EXCERPT_CHARACTERS]
        before = f"{self.line} | "
        length = max(1, min(self.length, len(shown) - (self.column - 1 - start)))
        gap = " " * (len("detail: ") + len(before) + self.column - 1 - start)
        return f"{before}{shown}\n{gap}{'^' * length}"


NOWHERE = Position(SourceText("query", ""), 1, 1)  # the position of generated code


def failure(
    kind: type[Failure], what: str, at: Position, *, detail: str | None = None, hint: str | None = None
) -> Failure:
    """Return an error with a position, for the caller to raise."""
    excerpt = at.excerpt() if at.source.text else None
    error = kind(f"{at}: {what}", detail="\n".join(filter(None, [excerpt, detail])) or None, hint=hint)
    error.line, error.column = at.line, at.column
    return error


def undefined(kind: str, name: str, names: Iterable[str], at: Position) -> UndefinedName:
    """Return the error for a name in a text that no relation has, for the caller to raise."""
    existing = tuple(names)
    error = failure(UndefinedName, f"no {kind} is called {name!r}", at, hint=did_you_mean(name, existing))
    error.name, error.existing = name, existing
    return error


def did_you_mean(name: str, names: Iterable[str]) -> str | None:
    """Return a hint with the most similar of the existing names, or else with a list of them.

    Of very many names it compares those that begin alike.
    """
    existing = sorted(set(names))
    compared = existing
    if len(existing) > COMPARED_NAMES:
        place = bisect_left(existing, name)
        compared = existing[max(0, place - COMPARED_NAMES // 2) :][:COMPARED_NAMES]
    by_lower_case = {other.lower(): other for other in compared}
    close = difflib.get_close_matches(name, compared, n=1) or [
        by_lower_case[other] for other in difflib.get_close_matches(name.lower(), by_lower_case, n=1)
    ]
    if close:
        return f"Did you mean {close[0]!r}?"
    more = ", ..." if len(existing) > LISTED_NAMES else ""
    return f"There are {', '.join(existing[:LISTED_NAMES])}{more}." if existing else None
