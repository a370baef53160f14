"""Number rows: give each row of a collection a number of its own, as an additional column.

    output  =  { (row, n) : row in the input },  with a different n for each row: start, start + step, start + 2 step, …

The numbers depend on history: rows are numbered when they are inserted, those of one time in their order. A row keeps
its number until it is removed, and no number is used twice.
"""

from __future__ import annotations

from collections.abc import Sequence

from kpg.algebra.order import Time
from kpg.columns.schema import Schema
from kpg.dataflow.channel import Pact
from kpg.dataflow.graph import Dataflow, Stream
from kpg.operators.ordered_times import Change, OrderedTimes, Row


class NumberRows(OrderedTimes):
    """Maintain the number of each row."""

    def __init__(self, schema: Schema, depth: int, start: int, step: int) -> None:
        assert depth == 1, "rows of a recursion are not numbered"
        super().__init__("number", schema.width, depth)
        self.schema = schema
        self.following = start
        self.stride = step
        self.numbers: dict[Row, int] = {}
        self.counts: dict[Row, int] = {}

    def process(self, time: Time, changes: list[Change], scheduled: set[Row]) -> list[Change]:
        output: list[Change] = []
        for row, diff in changes:
            count = self.counts[row] = self.counts.get(row, 0) + diff
            if count <= 0 and row in self.numbers:
                output.append(((*row, self.numbers.pop(row)), -1))
            elif count > 0 and row not in self.numbers:
                self.numbers[row] = self.following
                output.append(((*row, self.following), 1))
                self.following += self.stride
            if not count:
                del self.counts[row]
        return output

    def kept(self) -> Sequence[Row]:
        return list(self.counts)

    def release(self) -> None:
        super().release()
        self.numbers, self.counts = {}, {}


def number_rows(dataflow: Dataflow, stream: Stream, pact: Pact, schema: Schema, start: int, step: int) -> Stream:
    """Add the operator; `pact` must send all rows to one worker. `schema` is that of the input."""
    operator = NumberRows(schema, stream.depth, start, step)
    return dataflow.add(operator, [(stream, pact)], depth=stream.depth)
