"""Codes that come and go: written down as they do, and worked out when somebody asks for all of them.

Cost: what comes or goes; all codes once as many came and went as there were.
"""

from __future__ import annotations

import numpy as np

from kpg.columns.updates import Ints
from kpg.seminaive.row_codes import Layout

SLACK = 1024


class CodeLog:
    """The rows of a relation that is only read."""

    def __init__(self) -> None:
        self._codes: list[Ints] = []
        self._there: list[bool] = []  # whether the codes of each part came or went
        self._worked_out = 0  # codes of the first part, when it was last all that was there

    @property
    def nbytes(self) -> int:
        """What is written down."""
        return sum(part.nbytes for part in self._codes)

    def put(self, codes: Ints) -> None:
        """Codes came."""
        self._write(codes, True)

    def drop(self, codes: Ints) -> None:
        """Codes went."""
        self._write(codes, False)

    def _write(self, codes: Ints, there: bool) -> None:
        self._codes.append(codes)
        self._there.append(there)
        if not all(self._there) and sum(map(len, self._codes)) > 2 * self._worked_out + SLACK:
            self.all()

    def all(self) -> Ints:
        """The codes that are there; one that only ever came may be there repeatedly."""
        codes = np.concatenate(self._codes) if self._codes else np.empty(0, np.int64)
        if not all(self._there):
            there = np.repeat(self._there, [len(part) for part in self._codes])
            order = np.argsort(codes, kind="stable")
            codes, there = codes[order], there[order]
            last = np.append(codes[1:] != codes[:-1], True)
            codes = codes[last & there]
        self._codes, self._there, self._worked_out = [codes], [True], len(codes)
        return codes

    def recode(self, before: Layout, pairs: list[tuple[int, int]]) -> None:
        """Move the columns of all codes to other bits."""
        self._codes = [before.moved(part, pairs) for part in self._codes]
