"""An append-only log of inserted and deleted row codes. The current set is computed on demand and cached.

Cost: proportional to the inserted and deleted codes. The log is compacted when it exceeds twice the current set.
"""

from __future__ import annotations

import numpy as np

from kpg.columns.updates import Ints
from kpg.seminaive.code_layout import RowLayout, recode

MIN_COMPACTION_CODES = 1024  # a log shorter than this is not compacted


class CodeLog:
    """The rows of a relation that rules read but do not derive."""

    def __init__(self) -> None:
        self._parts: list[Ints] = []
        self._inserted: list[bool] = []  # for each part, whether its codes were inserted or deleted
        self._compacted_size = 0  # the size of the set at the last compaction

    @property
    def nbytes(self) -> int:
        """The size of the log in bytes."""
        return sum(part.nbytes for part in self._parts)

    def insert(self, codes: Ints) -> None:
        """Record inserted codes."""
        self._append(codes, True)

    def remove(self, codes: Ints) -> None:
        """Record deleted codes."""
        self._append(codes, False)

    def _append(self, codes: Ints, inserted: bool) -> None:
        self._parts.append(codes)
        self._inserted.append(inserted)
        if not all(self._inserted) and sum(map(len, self._parts)) > 2 * self._compacted_size + MIN_COMPACTION_CODES:
            self.current()

    def current(self) -> Ints:
        """Return the current codes, and compact the log to them.

        While nothing has been deleted, a code that was inserted several times occurs several times.
        """
        codes = np.concatenate(self._parts) if self._parts else np.empty(0, np.int64)
        if not all(self._inserted):
            inserted = np.repeat(self._inserted, [len(part) for part in self._parts])
            order = np.argsort(codes, kind="stable")
            codes, inserted = codes[order], inserted[order]
            last = np.append(codes[1:] != codes[:-1], True)  # the last entry of each code decides
            codes = codes[last & inserted]
        self._parts, self._inserted, self._compacted_size = [codes], [True], len(codes)
        return codes

    def recode(self, before: RowLayout, after: RowLayout) -> None:
        """Change the layout of all codes."""
        self._parts = [recode(part, before, after) for part in self._parts]
