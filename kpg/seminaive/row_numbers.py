"""Numbers of rows of several lanes: each distinct row gets a number from 0 on.

    numbers.add(rows)        the number of each row, int64[lanes, n]; new rows get new numbers
    numbers.rows(of)         the rows that have some numbers

The values of each lane have ids (`kpg.seminaive.row_codes`), and the ids of a row are combined lane by lane. A row
without lanes has number 0. Numbers are not given back. Cost: a lookup for each lane of a row, and 16 to 80 bytes for
each lane of a distinct row.
"""

from __future__ import annotations

import numpy as np

from kpg.columns.updates import Ints
from kpg.seminaive.row_codes import ValueIds

ID_BITS = 32


class RowNumbers:
    """A mapping from rows to numbers."""

    def __init__(self, lanes: int) -> None:
        self._values = [ValueIds() for _ in range(lanes)]
        self._prefixes = [ValueIds() for _ in self._values[1:]]  # of the ids of a shorter row and of the next lane

    def __len__(self) -> int:
        return len([*self._values[:1], *self._prefixes][-1]) if self._values else 1

    def add(self, rows: Ints) -> Ints:
        """Return the number of each row."""
        if not self._values:
            return np.zeros(rows.shape[1], np.int64)
        numbers = ids_of(self._values[0], rows[0])
        for values, prefixes, lane in zip(self._values[1:], self._prefixes, rows[1:], strict=True):
            numbers = ids_of(prefixes, (numbers << ID_BITS) | ids_of(values, lane))
        return numbers

    def rows(self, numbers: Ints) -> Ints:
        """Return the rows with some numbers, int64[lanes, n]."""
        if not self._values:
            return np.empty((0, len(numbers)), np.int64)
        lanes = []
        for values, prefixes in zip(self._values[:0:-1], self._prefixes[::-1], strict=True):
            codes = prefixes.values[numbers]
            lanes.append(values.values[codes & ((1 << ID_BITS) - 1)])
            numbers = codes >> ID_BITS
        lanes.append(self._values[0].values[numbers])
        return np.stack(lanes[::-1])

    @property
    def nbytes(self) -> int:
        """The approximate size in bytes."""
        return 24 * sum(map(len, (*self._values, *self._prefixes)))


def ids_of(ids: ValueIds, values: Ints) -> Ints:
    """Return the ids of values; new values get new ids."""
    found = ids.lookup(values)
    if len(found) and int(found.min()) < 0:
        ids.add(values)
        found = ids.lookup(values)
    return found
