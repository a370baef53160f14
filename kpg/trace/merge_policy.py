"""The merge policy: the one place that decides when a trace merges, and how much of a merge each caller pays for.

Five callers ask it:

    Spine.insert, Spine.exert       fuel of an insert, sizes of tail and levels, which idle merge comes next
    Database, after each advance    idle work between two transactions
    the background thread           idle work while its queue is empty
    the server's engine thread      the same
    a rank of a cluster             the same

To change how kpg merges, change this file. Every policy gives the same answers; it trades the time of an insert
against the number of batches that readers search and against memory.

Fuel is counted in rows that a merge reads. An insert of n rows gives `fuel_per_row` · n to *every* merge in progress.
Before a batch enters level k, these merges have received at least 4 · capacity(0) if k is 0, and 8 · capacity(k)
otherwise; the insert pays the difference. A merge at level k reads at most 2 · capacity(k) rows. So it is done before
the next batch reaches its level, and a level never holds more than two batches. Small `fuel_per_row` moves more of the
work to the insert that makes a batch enter a level.
"""

from __future__ import annotations

from dataclasses import dataclass

from kpg.config import Effort
from kpg.errors import InputError

IDLE_CALL_FUEL = 1_000_000  # rows merged by one call of `db.idle()`, which a program makes when it has time
ALL_OPERATORS = 1_000_000  # more operators than any worker has


@dataclass(frozen=True, slots=True)
class MergePolicy:
    """How eagerly traces merge. The values given here are those of the preset "default"."""

    fuel_per_row: int = 8  # rows read of each merge in progress for each inserted row
    completes_merges: bool = False  # an insert finishes every merge that it begins
    min_fuel: int = 1024  # rows; less fuel is saved up, because it would not pay for the call of the merge kernel
    max_pending_batches: int = 16  # tiny batches that wait to be merged into the tail together: cheap to search
    max_pending_rows: int = 256  # rows of all of these
    tail_rows: int = 4096  # a batch with fewer rows is merged into the tail within its insert
    rows_per_since: int = 512  # rows that are merged in the time in which one reader computes its since
    idle_fuel: int = 100_000  # rows merged in one idle moment; a request that arrives meanwhile waits for it
    idle_operators: int = 64  # arrangements visited in one idle moment, most of which have nothing to merge
    busy_interval: int = 16  # advances with new rows between two portions of idle work: else busy traces never compact
    busy_fuel: int = 16_000  # rows merged in such a portion: fewer than in an idle moment, because the writer waits

    # Inserts

    def level_capacity(self, level: int) -> int:
        """Return the maximum row count of a batch at a level. Level 0 fits a full tail merged with a small batch."""
        return 2 * self.tail_rows << level

    def level_of(self, rows: int) -> int:
        """Return the lowest level that holds a batch of `rows` rows."""
        capacity = 2 * self.tail_rows
        return ((rows - 1) // capacity).bit_length() if rows > capacity else 0

    def fuel_before_level(self, level: int) -> int:
        """Return the fuel that every merge must have received before a batch enters a level; see the module header."""
        return (4 if level == 0 else 8) * self.level_capacity(level)

    def is_worth_computing_since(self, rows: int, readers: int) -> bool:
        """Return whether merging a batch costs more than computing the since of every reader."""
        return rows >= self.rows_per_since * readers

    # Idle work

    def is_geometric(self, older_rows: int, newer_rows: int) -> bool:
        """Return whether two neighbouring layers may stay separate: the older has at least twice the rows."""
        return older_rows >= 2 * newer_rows

    def cancels_enough(self, cancelling_rows: int, rows: int) -> bool:
        """Return whether a merge of `rows` rows pays off because it may cancel an eighth of them or more."""
        return 8 * cancelling_rows >= rows

    def fuel_after_advance(self, busy_advances: int) -> int:
        """Return the fuel of idle work after an advance, given the number of advances with new rows in sequence."""
        if busy_advances == 0:
            return self.idle_fuel
        return self.busy_fuel if busy_advances % self.busy_interval == 0 else 0


PRESETS: dict[Effort, MergePolicy] = {
    "eager": MergePolicy(completes_merges=True),
    "default": MergePolicy(),
    "lazy": MergePolicy(fuel_per_row=4),
}
DEFAULT = PRESETS["default"]


def policy_for(effort: Effort) -> MergePolicy:
    """Return the preset for the option `effort` of `kpg.open()`."""
    policy = PRESETS.get(effort)
    if policy is None:
        raise InputError(f"there is no effort {effort!r}", hint=f"Use one of: {', '.join(PRESETS)}.")
    return policy
