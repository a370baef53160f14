"""A small loop: one epoch of few rows through a whole loop, in one kernel.

    after a run, every trace and every output of the loop is what the general path would have made it

In a direct run (kpg.dataflow.direct_run), all operators of a loop are one unit. It takes the messages that enter the
loop, runs all rounds in a kernel (kpg.kernels.run_rounds), inserts the new rows into the traces as one batch each, and
sends what leaves the loop. Until then nothing outside the arrays of the kernel has changed. So if the loop turns out
not to be small, if a row fails, or if a trace is being merged, the unit leaves the messages to the general path, which
runs the epoch from its beginning.

An arrangement from outside may be large when the loop is installed. If only joins read it, and no row of the loop has
met it, its rows need not be processed: those that come will search it (`_begin_epoch`).

An epoch of many rows begins on the general path. When its rounds have become small, the unit takes over: it reads the
rows that wait in the operators of the loop, and runs the rounds that are left (`can_take_over`, `run`). Rows that wait
to leave the loop stay where they are.
Cost: about a microsecond for each trace of the loop, ten for each trace that changes, and the kernel's time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from kpg.algebra.frontier import Frontier
from kpg.columns.consolidation import consolidate
from kpg.columns.exact_diffs import is_exact
from kpg.columns.pause_points import can_pause, pause
from kpg.columns.updates import Ints, Updates, constant, no_updates
from kpg.dataflow.channel import rows_of
from kpg.dataflow.operator import Inputs, Operator
from kpg.kernels import loop_rows
from kpg.kernels.array_address import FIELDS as BATCH_FIELDS
from kpg.kernels.run_rounds import (
    BATCHES,
    FIRST_BATCH,
    HAS_TRACE,
    LANES,
    WIDTH,
    count_rows,
    load_rows,
    run_rounds,
    take_rows,
)
from kpg.operators.arrange import Arrange, Insert
from kpg.operators.consolidate import Consolidate
from kpg.operators.iterate import Enter, EnterArranged, Feedback, Leave
from kpg.operators.join import Join
from kpg.operators.loop_arrays import LoopArrays
from kpg.operators.loop_table import LoopTable, loop_table
from kpg.operators.payload import updates_of
from kpg.operators.reduce import Reduce
from kpg.trace.batcher import Batcher
from kpg.trace.search_table import SearchTable

if TYPE_CHECKING:
    from kpg.dataflow.graph import Dataflow

MAX_KEPT_CAPACITY = 1 << 16  # rows of arrays that stay in memory after a run
VISITS_PER_PAUSE = 2_000  # rows that the kernel visits between two pauses: less than a millisecond
MAX_CAPACITY_IN_SLICES = 1 << 18  # rows, where others must not wait: the end of a run does not pause
VISITS_PER_CHECK = 1_000_000  # the same where others need not wait, so that limits are checked
MAX_FAILURES = 6  # in a row: then one epoch in 2^6 is tried
MAX_WAITING_ROWS = 256  # of a small round
MIN_SMALL_ROUNDS = 4  # in a row: then the rest of an epoch may be small, too
MAX_SMALL_ROUNDS = 1 << 10  # in a row, after the rest was not small several times
MAX_ENTERING_ROWS = 1 << 10  # of an operator that enters the loop; of an arrangement, the first message may have more
MAX_TRACE_MASS = 1 << 60  # of a trace: sums of its diffs fit 64 bits


def small_loop(dataflow: Dataflow, members: Sequence[Operator]) -> SmallLoop | None:
    """Return the unit of a loop, or None if the kernel cannot run it; note for `explain` which."""
    table = loop_table(members)
    if isinstance(table, LoopTable):
        return SmallLoop(dataflow, members, table)
    dataflow.notes.append(f"{members[0].name} has no kernel for epochs of few rows: {table}")
    return None


WaitingRows: TypeAlias = tuple[int, Updates]  # a node, and rows on their way to it
ROUND_0 = np.zeros(1, np.int64)


def updates_waiting(operator: Arrange | Consolidate | Reduce) -> list[Updates]:
    """Return the updates, or the keys with times, that an operator holds until their rounds are complete."""
    if isinstance(operator, Reduce):
        return [*operator.early, operator.pending]
    return operator.batcher.parts()


def rows_waiting(operator: Arrange | Consolidate | Reduce) -> int:
    """Return the number of rows or keys that an operator holds."""
    return len(operator.pending) if isinstance(operator, Reduce) else operator.batcher.rows


def clear_waiting(operator: Arrange | Consolidate | Reduce) -> None:
    """Remove what an operator holds."""
    if isinstance(operator, Reduce):
        operator.pending = no_updates(operator.key_lanes, operator.depth)
    else:
        batcher = operator.batcher
        operator.batcher = Batcher(batcher.lanes, batcher.depth, batcher.width)


class SmallLoop(Operator):
    """The operators of one loop as a unit of direct runs. It is not an operator of the graph itself."""

    def __init__(self, dataflow: Dataflow, members: Sequence[Operator], table: LoopTable) -> None:
        super().__init__(f"rounds of {members[0].name}")
        self.dataflow, self.depth = dataflow, members[0].depth
        self.index, self.entity, self.order = members[0].index, members[0].entity, members[0].order
        self.members = tuple(members)
        self.runs = 0  # epochs that the kernel has run
        self._table = table
        self._entries = [operator for operator in members if isinstance(operator, (Enter, EnterArranged))]
        self._collecting = [operator for operator in members if isinstance(operator, (Arrange, Consolidate, Reduce))]
        self._staying = [operator for operator in members if not isinstance(operator, Leave)]
        self._takes_over = False  # whether it is in the middle of `run`
        self._small_rounds = 0  # in a row, of the epoch that the general path runs
        self._patience = MIN_SMALL_ROUNDS  # small rounds before it tries to take over
        self._arrays: LoopArrays | None = None
        self._failures = 0  # epochs in a row that were left to the general path
        self._left_out = 0  # epochs that will not be tried
        self._batches: Ints = np.zeros((0, BATCH_FIELDS), np.int64)
        self._search_tables: list[SearchTable] = []  # of the present run: they keep the batches in memory
        self._read_first: dict[int, Frontier] = {}  # nodes of arrangements that the present run reads as they are

    # A unit of a direct run

    def step(self, inputs: Inputs) -> bool:
        raise AssertionError("a small loop is stepped in direct runs only")

    def return_to_worker(self) -> None:
        for operator in self._entries:
            if operator.queues[0]:
                operator.return_to_worker()

    def give_messages_back(self) -> None:
        if not self._takes_over:  # else they are still counted
            for operator in self._entries:
                operator.count_queued()

    def take_messages_again(self) -> None:
        if not self._takes_over:
            for operator in self._entries:
                operator.count_queued(-1)

    def step_queued(self, can_pause: bool = False) -> bool:
        """Run the loop for the messages that enter it, or leave them to the general path."""
        (frontier,) = self.dataflow.worker.clock.frontier.elements
        if self._run(can_pause):
            self._failures = 0
            self.runs += 1
            self._finish(Frontier.at((*frontier, 0)))
        else:
            direct = self.dataflow.worker.direct
            if direct.active:
                direct.end()
            self.return_to_worker()
        return False

    # Running

    def _run(self, can_pause: bool) -> bool:
        """Run all rounds. Return False if the loop is not small, or cannot be run now."""
        if self._left_out:
            self._left_out -= 1
            return False
        if any(operator.held for operator in self.members) or not self._begin_epoch():
            return False
        done = self._run_from(self._entering, can_pause)
        if not done:
            self._failures = min(self._failures + 1, MAX_FAILURES)
            self._left_out = (1 << self._failures) - 2
        return done

    # Entering

    def _begin_epoch(self) -> bool:
        """Find the epoch of this run. Return False if rows of several epochs, or too many, enter the loop."""
        self._read_first = {}
        for operator in self._entries:
            if sum(rows_of(message.payload) for message in operator.queues[0]) > MAX_ENTERING_ROWS:
                node = self._table.inputs[operator]
                if not isinstance(operator, EnterArranged) or not self._table.may_be_read_first(node):
                    return False
                self._read_first[node] = operator.queues[0][-1].payload[-1].upper
        if any(self._read_first.keys() & self._table.partners[node] for node in self._read_first):
            return False
        epochs = {epoch for _, updates in self._entering() if len(updates) for epoch in updates.times[0].tolist()}
        epoch = max(epochs or {time[0] for time in self.current})
        self.current = [(epoch,)]
        latest = [time[0] - 1 for upper in self._read_first.values() for time in upper.elements]
        return len(epochs) <= 1 and len(latest) == len(self._read_first) and all(time <= epoch for time in latest)

    def _entering(self) -> Iterator[WaitingRows]:
        """Yield the rows of the messages that enter the loop, but for arrangements that are read as they are."""
        for operator in self._entries:
            node = self._table.inputs[operator]
            for message in operator.queues[0] if node not in self._read_first else ():
                for updates in updates_of(message.payload):
                    yield node, updates

    def _run_from(self, waiting: Callable[[], Iterator[WaitingRows]], can_pause: bool) -> bool:
        """Run the rounds that some rows need. Return False if the loop is not small, or cannot be run now."""
        if self.dataflow.events is not None or not self._find_batches():
            return False
        if self._arrays is None:
            self._arrays = LoopArrays(self._table)
        arrays = self._arrays
        arrays.begin(len(self._batches))
        done = False
        try:
            budget = VISITS_PER_PAUSE if can_pause else VISITS_PER_CHECK
            done = self._load(arrays, waiting()) and self._run_rounds(arrays, budget)
        finally:
            if not done:
                self._clear(arrays)
        return done

    def _run_rounds(self, arrays: LoopArrays, budget: int) -> bool:
        table, usage = self._table, self.dataflow.usage
        status, counted = loop_rows.PAUSED, 0
        while status in (loop_rows.PAUSED, loop_rows.GROW):
            status = run_rounds(
                table.nodes, table.targets, table.program, self._batches, arrays.rows, arrays.heads, arrays.heap_keys,
                arrays.heap_slots, arrays.stack, arrays.group, arrays.spare, arrays.state, arrays.work, arrays.key,
                arrays.ranges, arrays.cursors, budget,
            )  # fmt: skip
            if usage is not None:
                emitted = int(arrays.state[loop_rows.EMITTED])
                usage.rows, counted = usage.rows + emitted - counted, emitted
            if status == loop_rows.GROW:
                if can_pause() and len(arrays.rows) >= MAX_CAPACITY_IN_SLICES:
                    return False
                arrays.grow()
            elif status == loop_rows.PAUSED:
                pause()
            elif status == loop_rows.TOO_MANY_ROUNDS:
                endless = self._endless(int(arrays.state[loop_rows.ENDLESS]))
                self.dataflow.note_circulating(self._last_rows(arrays, endless.max_rounds))
                raise endless.too_many_rounds()
        return status == loop_rows.DONE

    def _last_rows(self, arrays: LoopArrays, rounds: int) -> Ints:
        """Return the values of all rows of the last round that is allowed."""
        rows = arrays.rows[: arrays.used]
        last = rows[(rows[:, loop_rows.NODE] != loop_rows.NO_ROW) & (rows[:, loop_rows.ROUND] >= rounds)]
        lanes = np.maximum(0, self._table.nodes[last[:, loop_rows.NODE], LANES])
        data = last[:, loop_rows.FIELDS :]
        values: Ints = data[np.arange(data.shape[1]) < lanes.reshape(-1, 1)]
        return values

    def _endless(self, node: int) -> Feedback:
        """Return the operator that has reached its limit of rounds."""
        (feedback,) = [operator for operator, at in self._table.inputs.items() if at == node]
        assert isinstance(feedback, Feedback)
        return feedback

    def _find_batches(self) -> bool:
        """Find the batches of all traces. Return False if a trace cannot be searched now."""
        nodes, self._search_tables = self._table.nodes, []
        first, parts = 0, []
        for node, trace in self._table.traces.items():
            spine, acknowledged = trace.spine, self._read_first.get(node, trace.acknowledged)
            count = 0
            nodes[node, HAS_TRACE] = spine is not None
            if spine is not None and acknowledged is not None:
                if not spine.is_sorted:
                    return False
                found = spine.search_table(acknowledged, 1)
                if found is None or found[0].mass > MAX_TRACE_MASS:
                    return False
                search_table, count = found
                self._search_tables.append(search_table)
                parts.append(search_table.rows[:count])
            nodes[node, FIRST_BATCH], nodes[node, BATCHES] = first, count
            first += count
        self._batches = np.concatenate(parts) if parts else self._batches[:0]
        return True

    def _load(self, arrays: LoopArrays, waiting: Iterator[WaitingRows]) -> bool:
        """Put rows on their way to nodes. Return False if they are not at the time of this run."""
        time, table = self.current[0][0], self._table
        for node, updates in waiting:
            if not len(updates):
                continue
            times = updates.times
            is_at_time = bool((times[0] == time).all())
            if not is_at_time or is_exact(updates.diffs):
                return False
            if updates.lanes + (updates.diffs.shape[0] if updates.diffs.shape[0] > 1 else 0) > table.lanes:
                return False
            load_rows(
                table.nodes, arrays.rows, arrays.heap_keys, arrays.heap_slots, arrays.stack, arrays.state, node,
                np.ascontiguousarray(updates.data), times[1] if len(times) > 1 else ROUND_0, updates.diffs,
            )  # fmt: skip
        return True

    # Taking over

    def can_take_over(self) -> bool:
        self._small_rounds = self._small_rounds + 1 if self._count_waiting() <= MAX_WAITING_ROWS else 0
        return self._small_rounds > self._patience

    def _count_waiting(self) -> int:
        """Return the number of rows that the loop has not processed yet, but those that leave it; of too many, any."""
        waiting = sum(rows_waiting(operator) for operator in self._collecting)
        for operator in self._staying:
            for queue in operator.queues:
                for message in queue:
                    waiting += rows_of(message.payload)
                    if waiting > MAX_WAITING_ROWS:
                        return waiting
        return waiting

    def run(self, can_pause: bool = False) -> bool:
        """Run the rounds that are left of an epoch. If they are not small, the operators of the loop go on."""
        self._small_rounds, self._takes_over, self._read_first = 0, True, {}
        upper = self._begin_to_take_over()
        done = upper is not None and self._run_from(self._waiting, can_pause)
        if done:
            assert upper is not None
            self._patience = MIN_SMALL_ROUNDS
            self.runs += 1
            self._finish(upper)
        else:
            self._patience = min(2 * self._patience + 1, MAX_SMALL_ROUNDS)
        for operator in self.members:
            if any(operator.queues):
                if done and not isinstance(operator, Leave):
                    operator.count_queued(-1)
                    operator.queues = [[] for _ in operator.queues]
                else:
                    self.dataflow.worker.schedule(operator)
        if done:
            for operator in self._collecting:
                clear_waiting(operator)
                operator.hold(())
        self.current, self._takes_over = [], False
        return False

    def _begin_to_take_over(self) -> Frontier | None:
        """Return the upper that the loop will reach, if it has only rounds of one complete epoch to do; else None."""
        epochs = {time[0] for operator in self._staying for time in operator.held}
        for operator in self._staying:
            if any(operator.queues) and isinstance(operator, (Join, Reduce, Insert, Enter, EnterArranged)):
                return None  # they read batches that are in traces already, or rows that have just entered
            if operator.held and not isinstance(operator, (Arrange, Consolidate, Reduce)):
                return None
            epochs |= {time[0] for queue in operator.queues for message in queue for time in message.times}
        frontiers = [operator.frontier(0).elements for operator in self._entries]
        if len(epochs) != 1 or any(len(elements) != 1 for elements in frontiers):
            return None
        (epoch,), end = epochs, min(elements[0][0] for elements in frontiers)
        self.current = [(epoch,)]
        return Frontier.at((end, 0)) if end > epoch else None

    def _waiting(self) -> Iterator[WaitingRows]:
        """Yield the rows that wait in the operators of the loop, or on the way to them, but those that leave it."""
        for operator in self._staying:
            node = self._table.inputs[operator]
            for message in operator.queues[0] if operator.queues else ():
                for updates in updates_of(message.payload):
                    yield node, updates
            if isinstance(operator, (Arrange, Consolidate, Reduce)):
                for updates in updates_waiting(operator):
                    yield node, updates

    # The end of a run

    def _finish(self, upper: Frontier) -> None:
        """Insert the rows of the run into the traces, and send what leaves the loop."""
        arrays, table = self._arrays, self._table
        assert arrays is not None
        counts = np.zeros(len(table.nodes), np.int64)
        count_rows(arrays.rows, arrays.used, counts)
        results = {node: self._rows_of(arrays, node, int(counts[node])) for node in np.flatnonzero(counts).tolist()}
        self._clear(arrays)
        for node, updates in results.items():
            trace = table.traces.get(node)
            if trace is not None:
                trace.insert(updates, upper)
        for operator in self._entries:
            messages, operator.queues[0] = operator.queues[0], []
            if isinstance(operator, EnterArranged) and messages:
                table.traces[table.inputs[operator]].acknowledge(messages[-1].payload[-1].upper)
        times = tuple(self.current)
        for leave, node in table.leaves:
            leaving = results.get(node)
            if leaving is not None:
                rows = consolidate(leaving.with_times(constant(times[0])))
                if len(rows):
                    leave.current = self.current
                    leave.send(rows, times)
                    leave.current = []

    def _rows_of(self, arrays: LoopArrays, node: int, count: int) -> Updates:
        """Return the rows that a run has left at a node, with their rounds as times."""
        lanes, width = int(self._table.nodes[node, LANES]), max(1, int(self._table.nodes[node, WIDTH]))
        data, diffs = np.empty((lanes, count), np.int64), np.empty((width, count), np.int64)
        times = np.full((2, count), self.current[0][0], np.int64)
        take_rows(arrays.rows, arrays.used, node, data, times[1], diffs)
        return Updates(data, times, diffs)

    def _clear(self, arrays: LoopArrays) -> None:
        arrays.clear()
        self._search_tables = []
        if len(arrays.rows) > MAX_KEPT_CAPACITY:
            self._arrays = None

    def release(self) -> None:
        self._arrays = None
