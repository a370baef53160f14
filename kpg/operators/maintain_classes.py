"""Maintain classes: connected components under changes, for totally ordered times.

    output at t  =  { (v, c) : v in some pair of the input at t },  with equal c for v and w  ⇔  pairs connect v and w

`c` is a member of the class; which one depends on history, so that most values keep theirs. A new pair renames the
smaller of the two classes that it connects: over all insertions, each value changes its class O(log n) times. A removed
pair costs a search of its class. More new pairs than values are connected in one pass over all pairs. Inside loops,
where times are partially ordered, `kpg.operators.connected_components` computes components from all pairs instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from kpg.algebra.order import Time
from kpg.columns.schema import Schema
from kpg.columns.updates import Ints
from kpg.dataflow.channel import Pact
from kpg.dataflow.graph import Dataflow, Stream
from kpg.operators.connected_components import components_of
from kpg.operators.ordered_times import Change, OrderedTimes, Row

MIN_PASS_PAIRS = 1000  # fewer new pairs are connected one by one


class MaintainClasses(OrderedTimes):
    """Maintain the class of each value of some pairs; the input holds each pair at most once."""

    def __init__(self, schema: Schema) -> None:
        super().__init__("classes", schema.width, 1)
        self.schema = schema
        self.pairs: set[Row] = set()
        self.neighbours: dict[int, set[int]] = {}  # by value: those in a pair with it, in any order
        self.classes: dict[int, int] = {}  # by value: the member that stands for its class
        self.members: dict[int, set[int]] = {}  # by that member: all members
        self._before: dict[int, int | None] = {}  # of values that changed in this step: the class before

    def process(self, time: Time, changes: list[Change], scheduled: set[Row]) -> list[Change]:
        self._before = {}
        removed = [row for row, diff in changes if diff < 0]
        self.pairs.difference_update(removed)
        self._disconnect(removed)
        added = [row for row, diff in changes if diff > 0]
        self.pairs.update(added)
        if len(added) > max(len(self.classes), MIN_PASS_PAIRS):
            self._connect_all()
        else:
            for first, second in added:
                self._connect(first, second)
        output: list[Change] = []
        for value, before in self._before.items():
            after = self.classes.get(value)
            if before != after:
                output += [((value, before), -1)] if before is not None else []
                output += [((value, after), 1)] if after is not None else []
        return output

    def _set(self, value: int, of_class: int | None) -> None:
        """Set or remove the class of a value, and remember the one before."""
        self._before.setdefault(value, self.classes.get(value))
        if of_class is None:
            del self.classes[value]
        else:
            self.classes[value] = of_class

    def _connect(self, first: int, second: int) -> None:
        """Add a pair."""
        for value, other in ((first, second), (second, first)):
            self.neighbours.setdefault(value, set()).add(other)
            if value not in self.classes:
                self._set(value, value)
                self.members[value] = {value}
        smaller, larger = self.classes[first], self.classes[second]
        if smaller == larger:
            return
        if len(self.members[smaller]) > len(self.members[larger]):
            smaller, larger = larger, smaller
        moved = self.members.pop(smaller)
        for value in moved:
            self._set(value, larger)
        self.members[larger] |= moved

    def _connect_all(self) -> None:
        """Compute the classes of all pairs anew."""
        rows = np.array(list(self.pairs), np.int64).T
        pairs = np.concatenate([rows, rows[::-1]], axis=1)
        members, of_class = components_of(pairs)
        for value, name in zip(members.tolist(), of_class.tolist(), strict=True):
            if self.classes.get(value) != name:
                self._set(value, name)
        self.members = {name: set(values) for name, values in grouped(of_class, members)}
        self.neighbours = {value: set(others) for value, others in grouped(pairs[0], pairs[1])}

    def _disconnect(self, pairs: list[Row]) -> None:
        """Remove pairs, and split the classes that they held together."""
        affected = {self.classes[first] for first, _ in pairs}
        for first, second in pairs:
            if (second, first) not in self.pairs:  # the pair may be there in the other order as well
                self.neighbours[first].discard(second)
                self.neighbours[second].discard(first)
        for of_class in affected:
            self._split(of_class)

    def _split(self, of_class: int) -> None:
        """Replace a class by the components of its members; the one with its member keeps its name."""
        left = self.members.pop(of_class)
        while left:
            start = of_class if of_class in left else min(left)
            part = self._reach(start)
            left -= part
            if part == {start} and not self.neighbours[start]:
                del self.neighbours[start]
                self._set(start, None)
                continue
            self.members[start] = part
            for value in part:
                if self.classes[value] != start:
                    self._set(value, start)

    def _reach(self, start: int) -> set[int]:
        """Return the values that pairs connect to a value."""
        reached, stack = {start}, [start]
        while stack:
            new = self.neighbours[stack.pop()] - reached
            reached |= new
            stack.extend(new)
        return reached

    def kept(self) -> Sequence[Row]:
        return list(self.classes.items())

    def release(self) -> None:
        super().release()
        self.pairs, self.neighbours, self.classes, self.members, self._before = set(), {}, {}, {}, {}


def grouped(keys: Ints, values: Ints) -> Iterator[tuple[int, list[int]]]:
    """Yield the values of each key."""
    order = np.argsort(keys, kind="stable")
    keys, values = keys[order], values[order]
    starts = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
    ends = np.append(starts[1:], len(keys))
    listed = values.tolist()
    for key, start, end in zip(keys[starts].tolist(), starts.tolist(), ends.tolist(), strict=True):
        yield key, listed[start:end]


def maintain_classes(dataflow: Dataflow, stream: Stream, pact: Pact, schema: Schema) -> Stream:
    """Add the operator; `pact` must send all rows to one worker."""
    return dataflow.add(MaintainClasses(schema), [(stream, pact)], depth=1)
