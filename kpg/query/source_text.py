"""Where something stands in a text, and errors that show the place.

program.dl:3:14: no relation is called 'edgee'
detail: 3 | path(x, y) :- edgee(x, y).
                          ^^^^^
hint: Did you mean 'edge'?
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from kpg.errors import ProgramError

WIDTH = 100  # longer lines are cut around the place

Failure = TypeVar("Failure", bound=ProgramError)


@dataclass(frozen=True, slots=True)
class SourceText:
    """A text and what it is called."""

    name: str
    text: str

    def line(self, number: int) -> str:
        """A line by number, from 1."""
        lines = self.text.split("\n")
        return lines[number - 1].rstrip("\r") if 1 <= number <= len(lines) else ""


class Position(NamedTuple):
    """A place in a text: line and column from 1, and how many characters it is long."""

    source: SourceText
    line: int
    column: int
    length: int = 1

    def __str__(self) -> str:
        return f"{self.source.name}:{self.line}:{self.column}" if self.source.text else self.source.name

    def excerpt(self) -> str:
        """The line with the place marked below."""
        text = self.source.line(self.line).replace("\t", " ")
        start = max(0, self.column - 1 - WIDTH // 2) if len(text) > WIDTH else 0
        shown = text[start : start + WIDTH]
        before = f"{self.line} | "
        length = max(1, min(self.length, len(shown) - (self.column - 1 - start)))
        gap = " " * (len("detail: ") + len(before) + self.column - 1 - start)
        return f"{before}{shown}\n{gap}{'^' * length}"


NOWHERE = Position(SourceText("query", ""), 1, 1)


def failure(
    kind: type[Failure], what: str, at: Position, *, detail: str | None = None, hint: str | None = None
) -> Failure:
    """An error at a place, to be raised."""
    shown = at.excerpt() if at.source.text else None
    made = kind(f"{at}: {what}", detail="\n".join(filter(None, [shown, detail])) or None, hint=hint)
    made.line, made.column = at.line, at.column
    return made


def did_you_mean(name: str, names: Iterable[str]) -> str | None:
    """A hint with the nearest name, else with what there is."""
    known = sorted(set(names))
    folded = {each.lower(): each for each in known}
    close = difflib.get_close_matches(name, known, n=1) or [
        folded[each] for each in difflib.get_close_matches(name.lower(), folded, n=1)
    ]
    if close:
        return f"Did you mean {close[0]!r}?"
    return f"There are {', '.join(known[:12])}{', ...' if len(known) > 12 else ''}." if known else None
