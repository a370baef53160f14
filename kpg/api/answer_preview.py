"""The first rows of an answer, to be shown: rows, their counts, the number of all rows, and the time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

PREVIEW_ROWS = 20  # that a notebook shows unless it is asked for more


@dataclass(frozen=True, slots=True)
class AnswerPreview:
    """Some rows of an answer as of a time, each once."""

    names: tuple[str, ...]
    rows: Sequence[tuple[Any, ...]]
    counts: Sequence[int]  # how often the answer holds each row
    total: int  # distinct rows of the answer
    time: str

    @property
    def is_whole(self) -> bool:
        """Whether these are all rows."""
        return len(self.rows) == self.total

    @property
    def head(self) -> tuple[str, ...]:
        """The names of the columns, with one for the counts if a row occurs more than once."""
        return (*self.names, "times") if self._has_counts else self.names

    def lines(self) -> list[tuple[Any, ...]]:
        """Return the rows under `head`."""
        if not self._has_counts:
            return list(self.rows)
        return [(*row, count) for row, count in zip(self.rows, self.counts, strict=True)]

    def title(self, name: str) -> str:
        """Return a line that says what this is, as of when, and how many rows there are."""
        some = "" if self.is_whole else f"the first {len(self.rows):,} of "
        return f"{name} as of {self.time}: {some}{self.total:,} distinct row{'' if self.total == 1 else 's'}"

    @property
    def _has_counts(self) -> bool:
        return any(count != 1 for count in self.counts)
