"""The operators of a loop as a table of integers, for the kernel that runs small loops (kpg.kernels.run_rounds).

    loop_table(operators)  ->  LoopTable, or the reason why the kernel cannot run the loop

A loop qualifies if it is not nested, and consists of arrangements, joins, distinct, count, sum, average, min and max,
and of selects and filters whose expressions have a program for one row (kpg.columns.row_program). Any other operator
leaves the loop to the general path.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kpg.algebra.frontier import Frontier
from kpg.columns.consolidation import consolidate
from kpg.columns.updates import Ints, Updates
from kpg.dataflow.operator import Operator
from kpg.kernels import run_rounds as kernel
from kpg.operators.arrange import Arrange, Insert, Publisher
from kpg.operators.consolidate import Consolidate
from kpg.operators.group_sums import SumGroups
from kpg.operators.iterate import Enter, EnterArranged, Feedback, Leave
from kpg.operators.join import Join
from kpg.operators.linear import Linear, concatenate_outputs
from kpg.operators.loop_program import stages_program
from kpg.operators.loop_sums import sums_program
from kpg.operators.one_pass_tactic import OnePassTactic
from kpg.operators.reduce import Reduce
from kpg.operators.trace_input import TraceInput
from kpg.trace.batch import Batch
from kpg.trace.description import Description
from kpg.trace.spine import Spine

MAX_ROUND = 1 << 40  # rounds and positions of nodes are one number in the heap


@dataclass(slots=True)
class LoopTable:
    """The table, and the operators that its nodes stand for."""

    nodes: Ints  # int64[n, NODE_FIELDS]
    targets: Ints  # int64[…, 2]: a node and its input
    program: Ints
    lanes: int  # of the widest row
    inputs: dict[Operator, int]  # the node that receives the messages of an operator
    traces: dict[int, LoopTrace]  # by node
    leaves: list[tuple[Leave, int]]  # with their nodes
    partners: dict[int, set[int]]  # for nodes that only joins read: the nodes on their other sides

    def may_be_read_first(self, node: int) -> bool:
        """Return whether no row has met an arrangement from outside, and all that meet it will search it.

        Then the rows that it has at first need not be processed.
        """
        is_new = all(reader.acknowledged is None for reader in self.traces[node].readers)
        return is_new and node in self.partners and all(self.traces[other].is_empty for other in self.partners[node])


class LoopTrace:
    """A trace that a loop reads: one of its own, which a publisher maintains, or one from outside."""

    def __init__(self, publisher: Publisher | None) -> None:
        self.publisher = publisher
        self.readers: list[TraceInput] = []
        self.reductions: list[Reduce] = []  # that read it
        self.output_of: Reduce | None = None

    @property
    def spine(self) -> Spine | None:
        """The trace; None if it has no readers any more."""
        if self.publisher is not None:
            return self.publisher.spine()
        handle = self.readers[0].handle
        return None if handle is None else handle.spine

    @property
    def acknowledged(self) -> Frontier | None:
        """The upper through which it is to be read; None if it is empty."""
        return self.readers[0].acknowledged if self.publisher is None else self.publisher.upper

    @property
    def is_empty(self) -> bool:
        """Whether the loop has read no row of it."""
        spine = self.spine
        return spine is None or self.acknowledged is None or (self.publisher is not None and not spine.rows)

    def insert(self, updates: Updates, upper: Frontier) -> None:
        """Insert the rows of an epoch into a trace of the loop, in any order; note what they are for its readers."""
        if self.reductions and (updates.diffs < 0).any():
            for reduction in self.reductions:
                reduction.never_retracted = False
        if self.publisher is None:
            return
        spine = self.publisher.spine()
        assert spine is not None, "rows of a trace without readers are not kept"
        upper = self.publisher.upper.join(upper)  # behind a feedback, round 0 of the next epoch is complete already
        description = Description(self.publisher.upper, upper, Frontier.start(updates.depth))
        self.publisher.keep(Batch(consolidate(updates), spine.key_lanes, description))
        self.acknowledge(upper)
        if self.output_of is not None:
            self.output_of.output.set_physical(upper)

    def acknowledge(self, upper: Frontier) -> None:
        """Let all readers acknowledge the batches through `upper`."""
        for reader in self.readers:
            reader.acknowledge(upper)


class Unsupported(Exception):
    """The reason why a loop has no table."""


def loop_table(operators: Sequence[Operator]) -> LoopTable | str:
    """Return the table of all operators of a loop, in their order; or why there is none."""
    try:
        return _TableBuilder(operators).build()
    except Unsupported as reason:
        return str(reason)


class _TableBuilder:
    """Numbers the nodes, connects them, and then describes each."""

    def __init__(self, operators: Sequence[Operator]) -> None:
        _require(all(operator.depth <= 2 for operator in operators), "it has loops inside")
        self._operators = operators
        self._inputs: dict[Operator, int] = {}  # the node that receives the messages of an operator
        self._outputs: dict[Operator, int] = {}  # the node that sends them: of a reduction, that of its output
        count = 0
        for operator in operators:
            self._inputs[operator] = count
            count += isinstance(operator, Reduce)
            self._outputs[operator] = count
            count += 1
        self._nodes = np.zeros((count, kernel.NODE_FIELDS), np.int64)
        self._nodes[:, kernel.WIDTH] = 1
        self._sources: dict[tuple[Operator, int], list[Operator]] = {}  # the operators that each input reads
        self._program: list[int] = []
        self._lanes: dict[Operator, int | None] = {}  # of the output of linear operators; None: that of the input
        self._most_lanes = 1
        self._traces: dict[int, LoopTrace] = {}

    def build(self) -> LoopTable:
        """Return the table."""
        targets = self._connect()
        for operator in self._operators:
            self._describe(operator)
        reached = self._reached(targets)
        leaves = [(operator, self._inputs[operator]) for operator in self._operators if isinstance(operator, Leave)]
        leaves = [(leave, node) for leave, node in leaves if node in reached]
        for leave, node in leaves:
            lanes = self._lanes_of(leave, set())
            self._nodes[node, kernel.LANES] = kernel.UNKNOWN_LANES if lanes is None else lanes
        return LoopTable(
            self._nodes,
            np.array(targets, np.int64).reshape(-1, 2),
            np.array([*self._program, 0], np.int64),
            max(self._most_lanes, int(self._nodes[:, kernel.LANES].max())),
            self._inputs,
            {node: trace for node, trace in self._traces.items() if node in reached},
            leaves,
            self._partners(targets),
        )

    def _partners(self, targets: list[tuple[int, int]]) -> dict[int, set[int]]:
        """Return the nodes that only joins read, with the nodes on the other sides of these joins."""
        partners: dict[int, set[int]] = {}
        for node, row in enumerate(self._nodes):
            first, count = int(row[kernel.FIRST_TARGET]), int(row[kernel.TARGETS])
            read = [(self._nodes[target], side) for target, side in targets[first : first + count]]
            if read and all(target[kernel.KIND] == kernel.JOIN for target, _ in read):
                partners[node] = {int(target[kernel.LEFT if side else kernel.RIGHT]) for target, side in read}
        return partners

    def _connect(self) -> list[tuple[int, int]]:
        targets: list[tuple[int, int]] = []
        for operator in self._operators:
            node, first = self._outputs[operator], len(targets)
            for channel in operator.channels[0]:
                target = self._inputs.get(channel.target)
                if target is None:
                    _require(isinstance(operator, Leave), f"{operator.name} is read outside the loop")
                    continue
                ahead = target > node or isinstance(channel.target, Feedback)
                _require(ahead, f"{channel.target.name} comes before {operator.name}")
                targets.append((target, channel.target_input))
                self._sources.setdefault((channel.target, channel.target_input), []).append(operator)
            self._nodes[node, kernel.FIRST_TARGET] = first
            self._nodes[node, kernel.TARGETS] = len(targets) - first
        return targets

    def _reached(self, targets: list[tuple[int, int]]) -> set[int]:
        """Return the nodes that rows can reach. Those of errors cannot be reached: a row that fails ends the run."""
        stack = [self._inputs[o] for o in self._operators if isinstance(o, (Enter, EnterArranged))]
        reached = set(stack)
        while stack:
            row = self._nodes[stack.pop()]
            first = int(row[kernel.FIRST_TARGET])
            nodes = {target for target, _ in targets[first : first + int(row[kernel.TARGETS])]}
            if row[kernel.KIND] == kernel.REDUCE:
                nodes = {int(row[kernel.OUTPUT])}
            stack += nodes - reached
            reached |= nodes
        return reached

    def _source(self, operator: Operator, index: int = 0) -> int:
        """Return the node of the trace that an input reads."""
        (source,) = self._sources[operator, index]
        return self._outputs[source]

    def _describe(self, operator: Operator) -> None:
        """Fill the rows of an operator's nodes."""
        row = self._nodes[self._inputs[operator]]
        match operator:
            case Arrange() | Insert():
                self._describe_trace(self._inputs[operator], operator)
            case Consolidate():
                row[kernel.KIND], row[kernel.LANES] = kernel.COLLECT, operator.batcher.lanes
                row[kernel.WIDTH] = operator.batcher.width
            case EnterArranged():
                row[kernel.KIND], row[kernel.HAS_TRACE] = kernel.ENTERED, 1
            case Join():
                self._describe_join(row, operator)
            case Reduce():
                self._describe_reduce(row, operator)
            case Feedback():
                row[kernel.KIND], row[kernel.STOPS] = kernel.FEEDBACK, operator.stops
                row[kernel.MAX_ROUNDS] = min(operator.max_rounds, MAX_ROUND)
            case Leave():
                row[kernel.KIND] = kernel.LEAVE
            case Enter():
                row[kernel.KIND] = kernel.STAGES
            case Linear():
                self._describe_linear(row, operator)
            case _:
                raise Unsupported(f"{operator.name} is not among the operators of small loops")

    def _describe_trace(self, node: int, publisher: Publisher) -> None:
        row, spine = self._nodes[node], publisher.spine()
        _require(spine is not None, f"{publisher.name} keeps no rows")
        assert spine is not None
        row[kernel.WIDTH] = spine.width
        _require(not publisher.importers, f"{publisher.name} is read outside the loop")
        row[kernel.KIND], row[kernel.HAS_TRACE] = kernel.COLLECT, 1
        row[kernel.LANES], row[kernel.KEY_LANES] = spine.lanes, spine.key_lanes
        self._traces[node] = LoopTrace(publisher)

    def _describe_join(self, row: Ints, join: Join) -> None:
        row[kernel.KIND] = kernel.JOIN
        row[kernel.PROJECTION], row[kernel.PROJECTED] = len(self._program), len(join.projection)
        self._program += join.projection.ravel().tolist()
        self._most_lanes = max(self._most_lanes, len(join.projection))
        for side, field in ((0, kernel.LEFT), (1, kernel.RIGHT)):
            row[field] = self._read(join.sides[side], self._source(join, side), join.key_lanes, 1)

    def _describe_reduce(self, row: Ints, reduce: Reduce) -> None:
        tactic = reduce.tactic
        _require(isinstance(tactic, OnePassTactic), f"{reduce.name} is not distinct, count, sum, min or max")
        assert isinstance(tactic, OnePassTactic)
        row[kernel.KIND], row[kernel.KEY_LANES] = kernel.REDUCE, reduce.key_lanes
        row[kernel.FUNCTION], row[kernel.AT_LEAST] = tactic.kind, tactic.at_least
        row[kernel.OUT_VALUES] = tactic.out_values
        row[kernel.INPUT] = self._read(reduce.input, self._source(reduce), reduce.key_lanes, tactic.width)
        row[kernel.OUTPUT] = self._outputs[reduce]
        self._traces[self._source(reduce)].reductions.append(reduce)
        self._describe_trace(self._outputs[reduce], reduce)
        self._traces[self._outputs[reduce]].output_of = reduce

    def _describe_linear(self, row: Ints, linear: Linear) -> None:
        program = stages_program(linear.stages)
        sums = self._sums_of(linear)
        _require(program is not None and sums is not None, f"{linear.name} computes values that small loops cannot")
        assert program is not None and sums is not None
        row[kernel.KIND], row[kernel.PROGRAM_START] = kernel.STAGES, len(self._program)
        self._program += [*program.numbers, *sums]
        row[kernel.PROGRAM_END] = len(self._program)
        self._lanes[linear] = program.lanes
        self._most_lanes = max(self._most_lanes, program.most_lanes)

    def _sums_of(self, linear: Linear) -> list[int] | None:
        """Return what a linear operator does after its stages: nothing, or move values into the diff."""
        if isinstance(linear.collector, SumGroups):
            into = linear.collector.into
            self._most_lanes = max(self._most_lanes, len(into.keys) + into.width)
            return sums_program(into)
        return [] if linear.collector is concatenate_outputs else None

    def _read(self, reader: TraceInput, node: int, key_lanes: int, width: int) -> int:
        """Note that an operator reads the trace of a node by its first lanes, and return the node."""
        row, handle = self._nodes[node], reader.handle
        _require(handle is not None, "an input has ended")
        assert handle is not None
        spine = handle.spine
        _require(spine.width == width, "an index has other numbers than an operator reads")
        row[kernel.LANES], row[kernel.WIDTH] = spine.lanes, width
        trace = self._traces.setdefault(node, LoopTrace(None))
        is_first = not trace.readers and trace.output_of is None
        _require(is_first or row[kernel.KEY_LANES] == key_lanes, "its operators read an index by different columns")
        row[kernel.KEY_LANES] = key_lanes
        trace.readers.append(reader)
        return node

    def _lanes_of(self, operator: Operator, seen: set[Operator]) -> int | None:
        """Return the number of lanes that an operator sends; None if only rows from outside say it."""
        if operator in seen:
            return None
        seen.add(operator)
        if isinstance(operator, (Publisher, Consolidate, EnterArranged)):
            return int(self._nodes[self._outputs[operator], kernel.LANES])
        if isinstance(operator, Join):
            return len(operator.projection)
        lanes = self._lanes.get(operator)
        for source in self._sources.get((operator, 0), ()) if lanes is None else ():
            lanes = self._lanes_of(source, seen) if lanes is None else lanes
        return lanes


def _require(condition: bool, reason: str) -> None:
    if not condition:
        raise Unsupported(reason)
