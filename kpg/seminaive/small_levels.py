"""Levels of few rows: the driver of the kernel that runs them row by row (`kpg.kernels.run_levels`).

    run = SmallLevels(table)
    run.begin(fixpoint, work)          an empty run: it reads the relations of the fixed point as they are from now on
    run.process(starts)                adds what follows from some rows to the queue
    run.process(starts, True)          and processes the queue, level by level; returns False if a level is large
    run.rows(), run.queue()            what the run has changed so far, and what it has not processed
    run.end()                          releases the fixed point

Until the caller takes these results, nothing outside the run has changed. A level of NumPy calls costs about 0.1 ms
whatever its rows, a row of the kernel some tenths of a microsecond.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from kpg.columns.memory_budget import reserve
from kpg.columns.pause_points import can_pause, pause
from kpg.columns.updates import Ints
from kpg.kernels.code_cache import has_code
from kpg.kernels.jit import USAGE, Kernel, uses_machine_code
from kpg.kernels.level_records import (
    ACTIVE,
    CANDIDATE_AT,
    CODE,
    LEVEL_FIELDS,
    LINK_FIELDS,
    LINKS,
    NOW,
    RECORD_FIELDS,
    RECORDS,
    RELATION,
    SUSPECT,
    SUSPECT_AT,
    index_links,
    index_records,
)
from kpg.kernels.loop_rows import HEAP_SIZE
from kpg.kernels.run_levels import (
    ACTION,
    CHANGED,
    COUNTERS,
    DERIVES,
    DONE,
    GROW,
    HELD_FIELDS,
    LARGE,
    LEVEL_NOW,
    LEVELS_SEEN,
    MAX_HELD,
    MAX_QUEUED,
    MAX_RECORDS,
    MAX_ROUNDS,
    NEVER,
    NEXT_ROW,
    NEXT_START,
    ONLY_STARTS,
    ROUNDS,
    STAGE,
    START_CODE,
    START_FIELDS,
    START_LEVEL,
    START_PATH,
    STARTS,
    TOO_MANY_ROUNDS,
    link_rows,
    run_levels,
)
from kpg.kernels.walk_rule import (
    CHAINS,
    CURSOR_FIELDS,
    FIRST,
    KIND,
    LAST,
    MISSING,
    NAME,
    NEEDED,
    NEEDS_INDEX,
    PAUSE_AT,
    RUN_FIELDS,
    RUNS,
    TRIED,
    TRIES,
    UNLIMITED_TRIES,
    VISITED,
    WIDTH_MASK,
)
from kpg.seminaive.array_addresses import address
from kpg.seminaive.chain_index import ChainIndex
from kpg.seminaive.level_table import LevelTable, table

if TYPE_CHECKING:
    from kpg.seminaive.insert_only import InsertOnlyFixpoint

MIN_RECORDS = 1 << 10  # room of the arrays of a run; powers of two
MAX_KEPT_RECORDS = 1 << 13  # arrays with more room are given back after a run
MAX_LEVEL_ROWS = 1 << 13  # in the queue when a level begins: with more, NumPy calls are faster
MAX_RUN_RECORDS = 1 << 18  # then the caller takes the results, so that memory is bounded
MAX_RECORDS_IN_SLICES = 1 << 14  # the same where others must not wait: to take the results does not pause
VISITS_PER_PAUSE = 1 << 13  # rows that joins try between two pauses: less than a millisecond
VISITS_PER_CHECK = 1 << 20  # the same where others need not wait
VISITS_INTERPRETED = 1 << 11  # the same while the kernel is interpreted
COMPILE_AFTER_RUNS = 1 << 15  # of rounds or changes by NumPy calls, which take as long as compiling the kernel
RUNS_PER_LOOK = 1 << 8  # after so many of them, another process may have compiled it
Flags = np.ndarray[tuple[Any, ...], np.dtype[np.bool_]]
NO_STARTS: Ints = np.empty((0, START_FIELDS), np.int64)


class Readiness:
    """Whether the kernel can run as machine code without a long wait."""

    def __init__(self) -> None:
        self.refused = 0  # runs that were left to NumPy calls, because the kernel would have to be compiled

    def can_run(self) -> bool:
        """Return whether the kernel is faster than NumPy calls in this process."""
        if not isinstance(run_levels, Kernel):
            return True  # its machine code is loaded
        if not uses_machine_code():
            return False
        if USAGE.mode == "compiled" or self.refused >= COMPILE_AFTER_RUNS:
            return True
        if self.refused % RUNS_PER_LOOK == 0 and has_code(run_levels):
            return True
        self.refused += 1
        return False


READINESS = Readiness()
can_run = READINESS.can_run


class QueuedRows(NamedTuple):
    """Rows in the queue of a run."""

    is_suspect: Flags
    levels: Ints
    relations: Ints
    codes: Ints


class SmallLevels:
    """A run of the kernel."""

    def __init__(self, table: LevelTable) -> None:
        self.table = table
        self._of: InsertOnlyFixpoint | None = None  # during a run; else both would refer to each other
        self._state: Ints = np.zeros(COUNTERS, np.int64)
        self._registers = table.registers
        self._cursor: Ints = np.zeros((table.depth + 1, CURSOR_FIELDS), np.int64)
        self._held: Ints = np.zeros((MAX_HELD, HELD_FIELDS), np.int64)
        self._indexes, self._names = table.indexes.copy(), table.names.copy()
        self._levels: Ints
        self._values: Ints
        self._runs: Ints
        self._kept: list[Ints] = []  # arrays that the kernel reads by address
        self._allowed: dict[int, int] = {}  # rows that may be tried instead of some indexes
        self._rooms = 0
        self._make_room(MIN_RECORDS)

    def _make_room(self, rows: int) -> None:
        """Make empty arrays."""
        self._rooms = rows
        self._records: Ints = np.empty((rows, RECORD_FIELDS), np.int64)
        self._heads: Ints = np.full(2 * rows, -1, np.int64)
        self._heap_keys: Ints = np.empty(rows, np.int64)
        self._heap_slots: Ints = np.empty(rows, np.int64)
        self._links: Ints = np.empty((rows + len(self._names), LINK_FIELDS), np.int64)
        self._link_heads: Ints = np.full(2 * rows, -1, np.int64)

    def begin(self, fixpoint: InsertOnlyFixpoint, derives: bool = False, rounds: int = 0) -> None:
        """Begin an empty run."""
        state = self._state
        state[:] = 0
        state[LEVEL_NOW] = -1
        state[DERIVES], state[ROUNDS], state[MAX_ROUNDS] = derives, rounds, fixpoint.allowed_rounds
        state[MAX_QUEUED] = MAX_LEVEL_ROWS
        state[MAX_RECORDS] = min(MAX_RUN_RECORDS, MAX_RECORDS_IN_SLICES) if can_pause() else MAX_RUN_RECORDS
        self._heads.fill(-1)
        self._link_heads.fill(-1)
        self._names[:, ACTIVE] = 0
        self._of = fixpoint

    @property
    def _fixpoint(self) -> InsertOnlyFixpoint:
        assert self._of is not None, "a run has begun"
        return self._of

    @property
    def visited(self) -> int:
        """The number of rows that joins have tried."""
        return int(self._state[VISITED])

    @property
    def changed(self) -> int:
        """The number of changes of levels."""
        return int(self._state[CHANGED])

    @property
    def levels_seen(self) -> int:
        """The number of levels that were processed."""
        return int(self._state[LEVELS_SEEN])

    @property
    def rounds(self) -> int:
        """The number of rounds so far."""
        return int(self._state[ROUNDS])

    @property
    def level(self) -> int:
        """The level after the last one that was processed."""
        return int(self._state[LEVEL_NOW]) + 1

    def process(self, starts: Ints, levels: bool, work_limit: int = NEVER) -> bool | None:
        """Process starts, and then the queue if `levels`. Return False if a level is large, None beyond the limit."""
        state = self._state
        state[STAGE], state[NEXT_START], state[ONLY_STARTS] = STARTS, 0, not levels
        if not len(starts):
            starts = NO_STARTS
            if levels:
                state[STAGE] = NEXT_ROW
        self._read_relations()
        while True:
            state[PAUSE_AT] = state[VISITED] + visits_per_call()
            outcome = run_levels(
                self.table.paths, self.table.steps, self.table.terms, self.table.relations, self._names, self._levels,
                self._indexes, self._runs, self._values, self._records, self._heads, self._links, self._link_heads,
                self._heap_keys, self._heap_slots, self._held, self._registers, self._cursor, starts, state,
            )  # fmt: skip
            if outcome == GROW:
                self._grow()
            elif outcome == NEEDS_INDEX:
                self._build_index(int(state[NEEDED]))
            elif outcome == TOO_MANY_ROUNDS:
                self._fixpoint.check_rounds(self._fixpoint.allowed_rounds + 1)
            elif outcome in (DONE, LARGE):
                self._note_tries()
                return None if state[VISITED] > work_limit else bool(outcome == DONE)
            else:
                pause()
            if state[VISITED] > work_limit:
                return None

    # Results

    def rows(self) -> Ints:
        """Return the records of all rows that the run has looked at, int64[n, RECORD_FIELDS]."""
        return self._records[: self._state[RECORDS]]

    def queue(self) -> QueuedRows:
        """Return what is queued."""
        size = int(self._state[HEAP_SIZE])
        keys, records = self._heap_keys[:size], self._records[self._heap_slots[:size]]
        levels, is_suspect = keys >> 1, (keys & 1) == SUSPECT
        as_queued = np.where(is_suspect, records[:, SUSPECT_AT], records[:, CANDIDATE_AT]) == levels
        as_queued &= ~is_suspect | (records[:, NOW] == levels)
        kept = np.flatnonzero(as_queued)
        return QueuedRows(is_suspect[kept], levels[kept], records[kept, RELATION], records[kept, CODE])

    def end(self) -> None:
        """Release the fixed point and its arrays, and large arrays of the run."""
        self._of, self._kept = None, []
        if self._rooms > MAX_KEPT_RECORDS:
            self._make_room(MIN_RECORDS)

    # The relations of the fixed point

    def _read_relations(self) -> None:
        """Find the addresses of all that the kernel reads."""
        fixpoint = self._fixpoint
        self._kept, self._allowed = [], {}
        values = [ids.values for ids in fixpoint.ids]
        self._kept += values
        self._values = table([(address(of), len(of)) for of in values], 2)
        tables = fixpoint.level_tables(bool(self._state[DERIVES]))
        self._kept += [array for _, arrays in tables for array in arrays]
        self._levels = table([row for row, _ in tables], LEVEL_FIELDS)
        rows: list[tuple[int, ...]] = []
        for index in range(len(self._indexes)):
            self._read_index(index, rows)
        self._runs = table(rows, RUN_FIELDS)

    def _read_index(self, number: int, rows: list[tuple[int, ...]]) -> None:
        """Find the addresses of an index; append its runs."""
        name, row = self.table.index_names[number], self._indexes[number]
        index = self._fixpoint.indexes.get(name)
        row[KIND] = MISSING
        if index is not None:
            row[KIND] = CHAINS if isinstance(index, ChainIndex) else RUNS
            row[FIRST] = len(rows)
            for fields, arrays in index.addressed():
                rows.append(fields)
                self._kept += arrays
            row[LAST] = len(rows)
            self._activate(number)
        elif not self._state[DERIVES] and name[0] < self._fixpoint.system.derived:
            tries = self._tries(number)
            if tries:
                self._allowed[number] = tries
                row[KIND], row[TRIES] = TRIED, tries
                row[FIRST], row[LAST] = self.table.tried[number]

    def _tries(self, number: int) -> int:
        """Return how many rows may be tried instead of building an index."""
        first, last = self.table.tried[number]
        sizes = [int(self._values[domain, 1]) for domain in self.table.terms[first:last, WIDTH_MASK]]
        return self._fixpoint.allowed_tries(self.table.index_names[number][0], prod(sizes))

    def _note_tries(self) -> None:
        """Note the rows that the run has tried for want of an index."""
        for number, allowed in self._allowed.items():
            tried = allowed - int(self._indexes[number, TRIES])
            if tried and allowed < UNLIMITED_TRIES:
                self._fixpoint.note_tries(self.table.index_names[number][0], tried)

    def _build_index(self, number: int) -> None:
        """Build an index that the kernel needs."""
        name = self.table.index_names[number]
        self._fixpoint.build_index(name)
        rows = [tuple(row) for row in self._runs.tolist()]
        self._read_index(number, rows)
        self._runs = table(rows, RUN_FIELDS)

    def _activate(self, number: int) -> None:
        """Let an index of a derived relation hold the rows that the run adds."""
        name = int(self._indexes[number, NAME])
        if name < len(self._names) and not self._names[name, ACTIVE]:
            self._names[name, ACTIVE] = 1
            while self._state[LINKS] + self._state[RECORDS] + len(self._names) > len(self._links):
                self._grow()
            link_rows(
                self.table.relations, self._names, self.table.terms, self._records, self._links, self._link_heads,
                self._state, name,
            )  # fmt: skip

    def _grow(self) -> None:
        """Double the room of the arrays."""
        before, state = self._records, self._state
        keys, slots, links = self._heap_keys, self._heap_slots, self._links
        reserve(8 * 2 * self._rooms * (RECORD_FIELDS + LINK_FIELDS + 6))
        self._make_room(2 * self._rooms)
        self._records[: len(before)] = before
        self._heap_keys[: len(keys)], self._heap_slots[: len(slots)] = keys, slots
        self._links[: len(links)] = links
        index_records(self._records, self._heads, state)
        index_links(self._names, self._links, self._link_heads, state)


def starts_of(action: int, path: int, codes: Ints, level: int) -> Ints:
    """Return the starts of some rows: see `kpg.kernels.run_levels`."""
    starts = np.empty((len(codes), START_FIELDS), np.int64)
    starts[:, ACTION], starts[:, START_PATH], starts[:, START_LEVEL] = action, path, level
    starts[:, START_CODE] = codes
    return starts


def visits_per_call() -> int:
    """Return how many rows joins may try in a call of the kernel."""
    if isinstance(run_levels, Kernel):
        return VISITS_INTERPRETED
    return VISITS_PER_PAUSE if can_pause() else VISITS_PER_CHECK
