"""Choose rows: keep rows of a collection such that at most one has each value of each domain.

    domains ((1,),)          at most one row for each value of column 1
    domains ((0,), (1, 2))   ... for each value of column 0, and for each pair of values of columns 1 and 2

The output depends on history. A row that was chosen stays chosen as long as the input holds it; a row of the input is
not chosen exactly if a chosen row has the same value in some domain. So the output is maximal, and inserting rows never
removes one from it. Among new rows the least is chosen first.

Inside a loop the input of a round are the rows that the rules derive from the chosen rows of the round before. A row is
chosen from some round on. A change in an earlier round of its input is applied to it in that round, so a chosen row
always has a derivation from rows chosen in earlier rounds. Cost: for each change, the rows with the same values.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import Any

from kpg.algebra.order import Time
from kpg.columns.schema import Schema
from kpg.dataflow.channel import Pact
from kpg.dataflow.graph import Dataflow, Stream
from kpg.operators.ordered_times import Change, OrderedTimes, Row


class ChooseRows(OrderedTimes):
    """Maintain a maximal choice of rows."""

    def __init__(self, name: str, schema: Schema, depth: int, domains: tuple[tuple[int, ...], ...]) -> None:
        super().__init__(name, schema.width, depth)
        self.schema = schema
        self.keys = [itemgetter(*columns) for columns in domains]  # the value of a row in each domain
        self.history: dict[Row, dict[int, int]] = {}  # by row: the changes of its count by round, over all epochs
        self.chosen: dict[Row, int] = {}  # by row: the round from which it is chosen
        self.owners: list[dict[Any, Row]] = [{} for _ in domains]  # by value of a domain: the chosen row
        self.groups: list[dict[Any, set[Row]]] = [{} for _ in domains]  # by value of a domain: all rows

    def process(self, time: Time, changes: list[Change], scheduled: set[Row]) -> list[Change]:
        round_ = time[1] if len(time) == 2 else 0
        for row, diff in changes:
            self._count(row, round_, diff)
        affected = scheduled.union(row for row, _ in changes)
        dropped = [row for row in affected if row in self.chosen and self._loses_support(row, time, round_)]
        for row in dropped:
            affected |= self._drop(row)
        added = [row for row in sorted(affected) if row not in self.chosen and self._choose(row, time, round_)]
        self._forget(affected)
        return [*((row, -1) for row in dropped), *((row, 1) for row in added)]

    def _count(self, row: Row, round_: int, diff: int) -> None:
        """Change the count of a row from a round on."""
        counts = self.history.get(row)
        if counts is None:
            counts = self.history[row] = {}
            for key, group in zip(self.keys, self.groups, strict=True):
                group.setdefault(key(row), set()).add(row)
        counts[round_] = counts.get(round_, 0) + diff
        if not counts[round_]:
            del counts[round_]

    def _is_present(self, row: Row, round_: int) -> bool:
        total = 0
        for changed, diff in self.history.get(row, {}).items():
            if changed <= round_:
                total += diff
        return total > 0

    def _loses_support(self, row: Row, time: Time, round_: int) -> bool:
        """Return whether a chosen row must go now; if it is chosen only in a later round, look again there."""
        later = self.chosen[row]
        if self._is_present(row, max(later, round_)):
            return False
        if later > round_:
            self.schedule((time[0], later), row)
            return False
        return True

    def _drop(self, row: Row) -> set[Row]:
        """Take back a choice; return the rows that it may have excluded."""
        del self.chosen[row]
        excluded: set[Row] = set()
        for key, owners, group in zip(self.keys, self.owners, self.groups, strict=True):
            value = key(row)
            del owners[value]
            excluded |= group[value]
        return excluded

    def _choose(self, row: Row, time: Time, round_: int) -> bool:
        """Choose a row if it is present and nothing excludes it; if it is present only later, look again there."""
        if not self._is_present(row, round_):
            for later in self.history.get(row, {}):
                if later > round_ and self._is_present(row, later):
                    self.schedule((time[0], later), row)
            return False
        values = [key(row) for key in self.keys]
        for value, owners in zip(values, self.owners, strict=True):
            if value in owners:
                return False
        self.chosen[row] = round_
        for value, owners in zip(values, self.owners, strict=True):
            owners[value] = row
        return True

    def _forget(self, rows: set[Row]) -> None:
        """Forget the rows that are no longer in the input."""
        for row in rows:
            if row in self.history and not self.history[row] and row not in self.chosen:
                del self.history[row]
                for key, group in zip(self.keys, self.groups, strict=True):
                    value = key(row)
                    group[value].discard(row)
                    if not group[value]:
                        del group[value]

    def kept(self) -> Sequence[Row]:
        return list(self.history)

    def release(self) -> None:
        super().release()
        self.history, self.chosen = {}, {}
        self.owners, self.groups = [{} for _ in self.keys], [{} for _ in self.keys]


def choose_rows(
    dataflow: Dataflow, stream: Stream, pact: Pact, schema: Schema, domains: tuple[tuple[int, ...], ...]
) -> Stream:
    """Add the operator; `pact` must send all rows to one worker."""
    operator = ChooseRows("choose", schema, stream.depth, domains)
    return dataflow.add(operator, [(stream, pact)], depth=stream.depth)
