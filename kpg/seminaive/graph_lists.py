"""The edges and start values of a graph, as lists of neighbours that change in place (`kpg.kernels.neighbour_lists`).

    graph.load(starts, edges)       build the lists of an empty graph
    graph.apply(starts, edges)      insert and remove; `graph.events` has the edges that appear or disappear
    graph.unpaid                    copies that were removed and are not there: negative counts, by edge

Nodes get numbers from 1 on, by a table indexed by value if values lie close together, and else by a hash table. Numbers
and slots are not given back: the owner builds a new graph when `is_sparse`. Cost: about 110 bytes for each node, and
for each edge 16 bytes, or 32 with weights; 24 or 40 if edges lead in both directions.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kpg.columns.memory_budget import reserve
from kpg.columns.pause_points import aside
from kpg.columns.updates import Ints
from kpg.errors import Overflow
from kpg.kernels import neighbour_lists as lists
from kpg.seminaive.row_codes import MIN_INT64, TABLE_SPREAD

Numbers = npt.NDArray[np.int32]

MIN_NODES = 64  # room for nodes in an empty graph
MIN_SLOTS = 64  # room for entries in an empty graph; at least 2, because 1 means that an array is not used
MIN_SPARSE = 1 << 16  # unused nodes or slots that are always allowed
MAX_SLOTS = (1 << 31) - 1  # node numbers have 32 bits
NO_STARTS: Ints = np.zeros(1, np.int64)


class GraphChange(NamedTuple):
    """Changed rows: (node, value) of starts, or (source, target, weight) of edges; the last column may be missing."""

    data: Ints
    diffs: Ints  # int64[n], of which none is zero


@dataclass(slots=True)
class EntryLists:
    """The arrays of one kind of lists; those of one element are not used."""

    kind: int
    nodes: Numbers
    weights: Ints
    counts: Ints

    @classmethod
    def empty(cls, kind: int, size: int, weighted: bool, counted: bool) -> EntryLists:
        """Return arrays with room for some entries."""
        sizes = (size, size if weighted else 1, size if counted else 1)
        reserve(4 * sizes[0] + 8 * sizes[1] + 8 * sizes[2])
        return cls(kind, np.empty(sizes[0], np.int32), np.empty(sizes[1], np.int64), np.empty(sizes[2], np.int64))

    def grow(self, needed: int) -> None:
        """Make room for at least `needed` entries."""
        size = max(needed, 2 * len(self.nodes))
        reserve(4 * size)
        self.nodes = resized(self.nodes, size)
        self.weights = resized(self.weights, size) if len(self.weights) > 1 else self.weights
        self.counts = resized(self.counts, size) if len(self.counts) > 1 else self.counts

    @property
    def nbytes(self) -> int:
        """The size of the arrays in bytes."""
        return self.nodes.nbytes + self.weights.nbytes + self.counts.nbytes


@dataclass(slots=True)
class GraphLists:
    """The nodes of a graph, and their lists."""

    weighted: bool
    step: int  # the weight of all edges, if they are not weighted
    both_ways: bool  # an edge leads from each of its ends to the other
    own_starts: bool  # a node with an edge has itself as its only start value; edges then lead both ways
    state: Ints = field(init=False)
    keys: Ints = field(init=False)
    lists: Ints = field(init=False)
    values: Ints = field(init=False)  # of each node
    events: Ints = field(init=False)
    unpaid: dict[tuple[int, ...], int] = field(default_factory=dict)  # (kind, source, target, weight): copies missing
    incoming: EntryLists = field(init=False)
    outgoing: EntryLists = field(init=False)
    starts: EntryLists = field(init=False)
    is_ordered: bool = True  # whether the numbers of nodes are in the order of their values
    _table: Numbers = field(init=False)
    _least: int = MIN_INT64  # the value of the first slot of the table; the least number: a hash table

    def __post_init__(self) -> None:
        self.state = np.zeros(lists.STATE_SIZE, np.int64)
        self.state[lists.NODE_COUNT] = 1  # node 0, from which the edges of start values lead
        self.keys = np.zeros((MIN_NODES, lists.KEY_COLUMNS), np.int64)
        self.keys[0, lists.HOPS] = -1
        self.lists = np.zeros((MIN_NODES, lists.LIST_COLUMNS), np.int64)
        self.values = np.zeros(MIN_NODES, np.int64)
        self.events = np.empty((MIN_SLOTS, lists.EVENT_COLUMNS), np.int64)
        self._table = np.zeros(2 * MIN_NODES, np.int32)
        self.incoming = EntryLists.empty(lists.IN, MIN_SLOTS, self.weighted, True)
        self.outgoing = EntryLists.empty(lists.OUT, 1 if self.both_ways else MIN_SLOTS, self.weighted, False)
        self.starts = EntryLists.empty(lists.START, MIN_SLOTS, True, True)

    @property
    def node_count(self) -> int:
        """The number of nodes, node 0 included."""
        return int(self.state[lists.NODE_COUNT])

    @property
    def start_values(self) -> Ints:
        """The start values that lists refer to."""
        return self.values if self.own_starts else self.starts.weights

    @property
    def nbytes(self) -> int:
        """The size of all arrays in bytes."""
        parts = (self.keys, self.lists, self.values, self._table, self.incoming, self.outgoing, self.starts)
        return sum(part.nbytes for part in parts)

    @property
    def is_sparse(self) -> bool:
        """Whether most slots of the lists are unused."""
        kinds = (lists.IN, lists.START) if self.both_ways else (lists.IN, lists.OUT, lists.START)
        tails = sum(int(self.state[kind + lists.TAIL]) for kind in kinds)
        return tails > 3 * sum(int(self.state[kind + lists.LIVE]) for kind in kinds) + MIN_SPARSE

    def has_unused_nodes(self) -> bool:
        """Return whether most nodes have neither edges nor start values."""
        sizes = self.lists[: self.node_count, [lists.IN + lists.SIZE, lists.OUT + lists.SIZE, lists.START + lists.SIZE]]
        return self.node_count > 2 * int(sizes.any(axis=1).sum()) + MIN_SPARSE

    # A first load

    def load(self, starts: GraphChange, edges: GraphChange) -> None:
        """Build the lists of an empty graph. All diffs must be positive."""
        sources, targets, start_nodes = self._number_all(starts, edges)
        weights, counts = last_lane(edges, 2, self.step), uniform_or_all(edges.diffs)
        if self.both_ways:
            sources, targets, weights, counts = with_reverse(sources, targets, weights, counts)
        self.incoming = self._build(self.incoming, targets, sources, weights, counts)
        if not self.both_ways:
            self.outgoing = self._build(self.outgoing, sources, targets, weights, counts)
        if self.own_starts:
            nodes = np.arange(self.node_count)
            self.lists[nodes, lists.START + lists.LOW] = nodes
            self.lists[nodes, lists.START + lists.SIZE] = self.lists[nodes, lists.IN + lists.SIZE] > 0
        else:
            zeros = np.zeros(len(start_nodes), np.int32)
            self.starts = self._build(self.starts, start_nodes, zeros, last_lane(starts, 1, 0), starts.diffs)
        if self.weighted:
            self.state[lists.NEGATIVE_WEIGHTS] = int((edges.data[2] < 0).sum())

    def _build(self, before: EntryLists, owners: Numbers, others: Numbers, weights: Ints, counts: Ints) -> EntryLists:
        if not len(owners):
            return before
        kind, used = before.kind, (len(before.weights) > 1, len(before.counts) > 1)
        built = EntryLists.empty(kind, max(MIN_SLOTS, len(owners) + len(owners) // 8), *used)

        def build() -> None:
            lists.count_entries(owners, kind, self.lists)
            lists.lay_out_lists(kind, self.lists, self.state)
            given = (owners, others, weights, counts)
            lists.fill_lists(*given, kind, self.lists, built.nodes, built.weights, built.counts, self.state)

        aside(4 * len(owners), build)
        return built

    def _number_all(self, starts: GraphChange, edges: GraphChange) -> tuple[Numbers, Numbers, Numbers]:
        """Number the nodes of a first load, in the order of their values if these lie close together."""
        columns = [edges.data[0], edges.data[1], starts.data[0]]
        used = [column for column in columns if len(column)]
        least, greatest = min(int(column.min()) for column in used), max(int(column.max()) for column in used)
        rows = sum(map(len, columns))
        if greatest - least < TABLE_SPREAD * rows and greatest - least < MAX_SLOTS:
            return aside(2 * rows, self._number_by_table, columns, least, greatest - least + 1)
        self._reserve_nodes(rows // 4)
        sources, targets, start_nodes = [self.number(column) for column in columns]
        return sources, targets, start_nodes

    def _number_by_table(self, columns: list[Ints], least: int, spread: int) -> tuple[Numbers, Numbers, Numbers]:
        table = np.zeros(spread + spread // 8 + MIN_NODES, np.int32)
        for column in columns:
            table[column - least] = 1
        present = np.flatnonzero(table)
        table[present] = np.arange(1, len(present) + 1, dtype=np.int32)
        self._least, self._table = least, table
        self._grow_nodes(len(present))
        self.values[1 : len(present) + 1] = present + least
        self.keys[1 : len(present) + 1, lists.HOPS] = -1
        self.state[lists.NODE_COUNT] = len(present) + 1
        sources, targets, start_nodes = [table[column - least] for column in columns]
        return sources, targets, start_nodes

    # Nodes

    def number(self, values: Ints) -> Numbers:
        """Return the number of each value; new values get new numbers."""
        numbers = np.empty(len(values), np.int32)
        before, done = self.node_count, 0
        while done < len(values):
            part = values[: min(len(values), done + max(MIN_NODES, len(self._table) // 8))]
            self._reserve_nodes(len(part) - done)
            arrays = (self._table, self._least, self.values, self.keys, numbers, self.state)
            done = lists.number_nodes(part, done, *arrays)
            if done < len(part):
                self._use_hash_table()
        self.is_ordered &= self.node_count == before
        return numbers

    def _reserve_nodes(self, more: int) -> None:
        """Make room for more nodes, in the arrays and in a hash table."""
        if self.node_count + more > len(self.values):
            self._grow_nodes(more)
        if self._least == MIN_INT64 and 2 * (self.node_count + more) > len(self._table):
            self._use_hash_table(more)

    def _grow_nodes(self, more: int) -> None:
        size = max((self.node_count + more) * 9 // 8, len(self.values) + len(self.values) // 2)
        reserve(8 * size * (lists.KEY_COLUMNS + lists.LIST_COLUMNS + 1))
        self.keys, self.lists = resized(self.keys, size), resized(self.lists, size)
        self.values = resized(self.values, size)

    def _use_hash_table(self, more: int = MIN_NODES) -> None:
        """Put all nodes into a hash table with room for more of them."""
        count, self._least = self.node_count, MIN_INT64
        self._table = np.zeros(1 << (4 * (count + more)).bit_length(), np.int32)
        nodes, self.state[lists.NODE_COUNT] = self.values[1:count].copy(), 1
        hops = self.keys[:count, lists.HOPS].copy()
        numbers = np.empty(len(nodes), np.int32)
        lists.number_nodes(nodes, 0, self._table, self._least, self.values, self.keys, numbers, self.state)
        self.keys[:count, lists.HOPS] = hops

    # Changes

    def apply(self, starts: GraphChange, edges: GraphChange) -> None:
        """Apply changes, and collect the edges that appear or disappear; starts are edges from node 0."""
        self.state[lists.EVENT_COUNT] = 0
        if len(edges.diffs):
            ends = self.number(np.concatenate([edges.data[0], edges.data[1]]))
            n, diffs, weights = len(edges.diffs), edges.diffs.copy(), last_lane(edges, 2, self.step)
            sources, targets = ends[:n], ends[n:]
            if self.both_ways:
                sources, targets, weights, diffs = with_reverse(sources, targets, weights, diffs)
            self._apply(self.incoming, sources, targets, weights, diffs)
        if len(starts.diffs):
            nodes = self.number(starts.data[0])
            self._apply(self.starts, nodes, nodes, last_lane(starts, 1, 0), starts.diffs.copy())

    def _apply(self, entries: EntryLists, sources: Numbers, targets: Numbers, weights: Ints, diffs: Ints) -> None:
        if self.unpaid:
            self._pay(entries.kind, sources, targets, weights, diffs)
        done, state = 0, self.state
        out = self.outgoing
        while True:
            own = self.values if self.own_starts else NO_STARTS
            arrays = (entries.nodes, entries.weights, entries.counts, out.nodes, out.weights, own, self.events, state)
            done = lists.apply_changes(sources, targets, weights, diffs, done, entries.kind, self.lists, *arrays)
            if done == len(targets):
                break
            if done < 0:
                raise Overflow("an edge or a start value is there more than 2^63 times")
            if int(state[lists.EVENT_COUNT]) + 2 > len(self.events):
                self.events = resized(self.events, 2 * len(self.events))
            else:
                needed = int(state[lists.NEEDED_SLOTS])
                for full in (entries, out) if entries.kind == lists.IN and not self.both_ways else (entries,):
                    if needed > len(full.nodes):
                        full.grow(needed)
        if int(state[lists.UNPAID]):
            state[lists.UNPAID] = 0
            for row in np.flatnonzero(diffs).tolist():
                name = self._name(entries.kind, sources, targets, weights, row)
                self.unpaid[name] = self.unpaid.get(name, 0) + int(diffs[row])

    def _pay(self, kind: int, sources: Numbers, targets: Numbers, weights: Ints, diffs: Ints) -> None:
        """Let insertions cancel earlier removals of edges that were not there."""
        for row in np.flatnonzero(diffs > 0).tolist():
            name = self._name(kind, sources, targets, weights, row)
            paid = min(int(diffs[row]), -self.unpaid.get(name, 0))
            if paid:
                diffs[row] -= paid
                self.unpaid[name] += paid
                if not self.unpaid[name]:
                    del self.unpaid[name]

    def _name(self, kind: int, sources: Numbers, targets: Numbers, weights: Ints, row: int) -> tuple[int, ...]:
        source = 0 if kind == lists.START else int(sources[row])
        return kind, source, int(targets[row]), int(weights[row if len(weights) > 1 else 0])

    # Reading

    def entries(self, of: EntryLists) -> tuple[Ints, Ints]:
        """Return all entries of a kind: the node whose list has it, and the slot."""
        size = self.lists[: self.node_count, of.kind + lists.SIZE]
        owners = np.repeat(np.arange(self.node_count), size)
        ends = np.cumsum(size)
        return owners, np.arange(len(owners)) + np.repeat(self.lists[: self.node_count, of.kind] - ends + size, size)

    def linked_nodes(self) -> Ints:
        """Return the numbers of the nodes that have edges."""
        sizes = self.lists[: self.node_count, [lists.IN + lists.SIZE, lists.OUT + lists.SIZE]]
        return np.flatnonzero(sizes.any(axis=1))

    def rows(self) -> tuple[GraphChange, GraphChange]:
        """Return all starts and edges, as a load takes them."""
        owners, slots = self.entries(self.starts)
        if self.own_starts:
            owners, slots = owners[:0], slots[:0]
        starts = GraphChange(np.stack([self.values[owners], self.starts.weights[slots]]), self.starts.counts[slots])
        owners, slots = self.entries(self.incoming)
        if self.both_ways:  # each edge is in the lists of both ends
            kept = self.incoming.nodes[slots] <= owners
            owners, slots = owners[kept], slots[kept]
        columns = [self.values[self.incoming.nodes[slots]], self.values[owners]]
        if self.weighted:
            columns.append(self.incoming.weights[slots])
        return starts, GraphChange(np.stack(columns), self.incoming.counts[slots])


def resized(block: npt.NDArray[Any], size: int) -> npt.NDArray[Any]:
    """Return a block with more rows; new ones are zero."""
    grown = np.zeros((size, *block.shape[1:]), block.dtype)
    grown[: len(block)] = block
    return grown


def with_reverse(
    sources: Numbers, targets: Numbers, weights: Ints, counts: Ints
) -> tuple[Numbers, Numbers, Ints, Ints]:
    """Return edges and their reverse. An edge from a node to itself is its own reverse."""
    rows = np.flatnonzero(sources != targets)
    both = (np.concatenate([sources, targets[rows]]), np.concatenate([targets, sources[rows]]))
    more = [np.concatenate([part, part[rows]]) if len(part) == len(sources) else part for part in (weights, counts)]
    return *both, more[0], more[1]


def last_lane(change: GraphChange, lane: int, uniform: int) -> Ints:
    """Return the weights of edges or the values of starts; one number if all are equal, because there is no lane."""
    return np.ascontiguousarray(change.data[lane]) if len(change.data) > lane else np.full(1, uniform)


def uniform_or_all(diffs: Ints) -> Ints:
    """Return one number if all are equal."""
    return diffs[:1] if len(diffs) and diffs.min() == diffs.max() else diffs
