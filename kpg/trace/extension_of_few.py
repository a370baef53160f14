"""Extend few tuples of one time at once, given the search tables of the extenders: what a direct run needs.

    extend(tuples, tables)  =  all updates of kpg.trace.extension.Extension, or None where that must be used

It applies to one or two extenders and times of one coordinate, to at most MAX_TUPLES tuples with at most MAX_EXTENSIONS
extensions, and only while no product can leave 64 bits.
Cost: one kernel call. What does not depend on the tuples is prepared once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from kpg.columns.exact_diffs import MAX_MASS, mass
from kpg.columns.updates import Ints, Updates
from kpg.kernels.array_address import FIELDS
from kpg.kernels.extend_few import extend_few
from kpg.trace.extension import Extender, ExtensionShape
from kpg.trace.search_table import SearchTable

MAX_TUPLES: Final = 32
MAX_EXTENSIONS: Final = 256
MAX_EXTENDERS: Final = 2
NO_ROWS: Final[Ints] = np.empty((0, FIELDS), np.int64)


class ExtensionOfFew:
    """The extension of few tuples by given extenders."""

    def __init__(self, extenders: Sequence[Extender], shape: ExtensionShape, floor: int) -> None:
        assert 0 < len(extenders) <= MAX_EXTENDERS
        self._shape = shape
        width = max(len(extender.lanes) for extender in extenders)
        self._lanes = np.array([padded(extender.lanes, width) for extender in extenders], np.int64)
        self._constants = np.array([padded(extender.constants, width) for extender in extenders], np.int64)
        flags = [(len(extender.lanes), extender.strict, extender.negative) for extender in extenders]
        self._flags = np.array(flags, np.int64)
        self._floor = np.array([floor], np.int64)
        self._meter = np.zeros(2, np.int64)

    @property
    def proposed(self) -> int:
        """The number of rows that were read so far to extend tuples."""
        return int(self._meter[1])

    def extend(self, tuples: Updates, tables: Sequence[SearchTable]) -> Updates | None:
        """Return all extensions of some tuples, not consolidated; None if they are too many, or may be too large."""
        bound = mass(tuples)
        for table in tables:
            bound *= 1 + table.mass
        if bound > MAX_MASS or tuples.data.shape[1] > MAX_TUPLES or tuples.times.shape[1] > 1:
            return None
        shape, first = self._shape, tables[0]
        second, second_count = (tables[1].rows, tables[1].count) if len(tables) > 1 else (NO_ROWS, 0)
        data = np.empty((shape.projection.shape[0], MAX_EXTENSIONS), np.int64)
        times, diffs = np.empty((1, MAX_EXTENSIONS), np.int64), np.empty((1, MAX_EXTENSIONS), np.int64)
        n = extend_few(
            tuples.data, tuples.times, tuples.diffs, first.rows, first.count, second, second_count,
            self._lanes, self._constants, self._flags, self._floor, shape.new, shape.low, shape.high,
            shape.projection, self._meter, data, times, diffs,
        )  # fmt: skip
        if self._meter[0] < tuples.data.shape[1]:
            return None
        return Updates(data[:, :n].copy(), tuples.times, diffs[:, :n].copy())


def padded(values: tuple[int, ...], width: int) -> tuple[int, ...]:
    """Return values, followed by zeros."""
    return values + (0,) * (width - len(values))
