"""A batch: the updates of one interval of time, sorted, consolidated and immutable.

Updates are sorted by data lanes (the key is the first `key_lanes` of them), then by time. Each (data, time) occurs
once, and no diff is zero. The batch's `Description` says which times it covers and what it guarantees about them. Any
number of readers may share a batch.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field

from kpg.algebra.frontier import Frontier
from kpg.algebra.order import Time
from kpg.columns.exact_diffs import MAX_MASS, total_mass
from kpg.columns.pause_points import aside
from kpg.columns.updates import Updates
from kpg.columns.value_class import value_class
from kpg.trace.batch_table import BatchRow, describe_batch
from kpg.trace.description import Description
from kpg.trace.lookup_table import MIN_ROWS, NO_TABLE, ROWS_PER_SEARCHED_KEY, LookupTable, build_lookup_table


@value_class
class Batch:
    """Sorted updates and their description."""

    updates: Updates
    key_lanes: int
    description: Description
    _row: BatchRow | None = field(default=None, init=False, repr=False)
    _searched_keys: int = field(default=0, init=False, repr=False)  # counted until it has a lookup table
    _lookup_table: LookupTable | None = field(default=None, init=False, repr=False)
    _earliest: tuple[Time, ...] | None = field(default=None, init=False, repr=False)

    def __len__(self) -> int:
        return int(self.updates.data.shape[1])

    @property
    def row(self) -> BatchRow:
        """The addresses and sizes of its arrays, computed on first use: see kpg.trace.batch_table."""
        if self._row is None:
            object.__setattr__(self, "_row", describe_batch(self.updates, self._lookup_table or NO_TABLE))
        assert self._row is not None
        return self._row

    @property
    def keys_until_lookup(self) -> int:
        """The number of keys to be searched until it builds a lookup table; very many if it has one, or is small."""
        if self._lookup_table is not None:
            return 1 << 62
        return max(1, -(-len(self) // ROWS_PER_SEARCHED_KEY) - self._searched_keys)

    @property
    def has_lookup_table(self) -> bool:
        """Whether a search has built a lookup table."""
        return self._lookup_table is not None and len(self._lookup_table.array) > 0

    def row_for_search(self, keys: int) -> BatchRow:
        """Return `row` for a search of `keys` keys; with a lookup table if enough keys have been searched."""
        if self._lookup_table is None:
            self._count_search(keys)
        return self._row or self.row

    def _count_search(self, keys: int) -> None:
        """Count the keys of a search. Build the lookup table when it pays off; a small batch never gets one."""
        rows, searched = self.updates.data.shape[1], self._searched_keys + keys
        object.__setattr__(self, "_searched_keys", searched)
        if rows < MIN_ROWS or searched * ROWS_PER_SEARCHED_KEY >= rows:
            data = self.updates.data
            table = NO_TABLE if rows < MIN_ROWS else aside(rows, build_lookup_table, data[0], data.shape[0] == 1)
            if self._lookup_table is None:  # else another search was faster, and may have the address of its table
                object.__setattr__(self, "_lookup_table", table)
                object.__setattr__(self, "_row", None)

    @property
    def nbytes(self) -> int:
        """The memory of its arrays, in bytes."""
        return self.updates.nbytes + (0 if self._lookup_table is None else self._lookup_table.array.nbytes)

    @property
    def earliest(self) -> tuple[Time, ...]:
        """Times such that each update is at or after one of them."""
        if self._earliest is None:
            times = self.updates.times
            earliest = (tuple(times[:, 0].tolist()),) if times.shape[1] == 1 else self.lower.elements
            object.__setattr__(self, "_earliest", earliest)
        assert self._earliest is not None
        return self._earliest

    @property
    def lower(self) -> Frontier:
        """The lower bound: every update is at a time beyond it."""
        return self.description.lower

    @property
    def upper(self) -> Frontier:
        """The upper bound: no update, before compaction, was at a time beyond it."""
        return self.description.upper

    @property
    def since(self) -> Frontier:
        """The since: the batch distinguishes only times beyond it."""
        return self.description.since


def may_leave_64_bits(batches: Iterable[Batch]) -> bool:
    """Return whether sums of the diffs of some batches may leave 64 bits."""
    return total_mass([batch.updates for batch in batches]) > MAX_MASS
