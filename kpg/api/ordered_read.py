"""Reads of an output in an order: sorted rows, the first ones of them, and those after an offset.

    answer.sort("-age", "name").limit(10, offset=20).rows()

The order is that of `Group.top_k`: by the given keys, then by all columns, nulls last. A read costs a sort of the
answer; to keep only the first rows up to date, install `group_by().top_k(...)`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from kpg.api.answer_preview import PREVIEW_ROWS, AnswerPreview
from kpg.columns.arrow_arrays import from_numpy
from kpg.columns.bind import bind
from kpg.columns.expression import ColumnReference
from kpg.columns.intervals import span_lanes
from kpg.columns.lane_values import is_null
from kpg.columns.order_key import OrderBy, OrderKey, order_keys_of
from kpg.columns.rows import rows_of
from kpg.columns.schema import Schema
from kpg.columns.symbols import Symbols
from kpg.columns.table_rows import encode
from kpg.columns.text_order import order_keys
from kpg.columns.updates import Ints
from kpg.errors import DataError
from kpg.extras import require

if TYPE_CHECKING:
    from kpg.api.contracts import Output

FRAME_SECONDS = 0.1  # between two frames of a live table: quick for people, and cheap


@dataclass(frozen=True, slots=True)
class OrderedRead:
    """The rows of an output in an order, or some of them; nothing is read before a method asks for rows."""

    output: Output
    keys: tuple[OrderKey, ...] = ()
    size: int | None = None
    offset: int = 0

    def sort(self, *by: OrderBy) -> OrderedRead:
        """Order by these keys instead."""
        return replace(self, keys=order_keys_of(by))

    def limit(self, size: int, offset: int = 0) -> OrderedRead:
        """Read at most `size` rows, after the first `offset`."""
        return replace(self, size=size, offset=offset)

    def head(self, size: int = 5) -> OrderedRead:
        """Read the first rows."""
        return self.limit(size)

    def snapshot(self, as_of: Any = None) -> pa.Table:
        """Return the rows as of a time as an Arrow table."""
        table = self.output.read_rows(as_of, counts=False)
        schema, symbols = self.output.schema, self.output.db.symbols
        order = order_of_table(schema, encode(schema, table, symbols), symbols, self.keys)
        end = None if self.size is None else self.offset + self.size
        return table.take(from_numpy(order[self.offset : end], pa.int64()))

    def rows(self, as_of: Any = None) -> list[tuple[Any, ...]]:
        """Return the rows as of a time as tuples."""
        return rows_of(self.snapshot(as_of), self.output.schema)

    def preview(self, size: int = PREVIEW_ROWS) -> AnswerPreview:
        """Return the first rows as of the last complete time, and the number of rows of this read."""
        time = self.output.complete_through
        table = self.snapshot(time)
        rows = rows_of(table.slice(0, size), self.output.schema)
        shown = "nothing" if time is None else str(time)
        return AnswerPreview(self.output.schema.names, rows, [1] * len(rows), table.num_rows, shown)

    def live(self, rows: int = PREVIEW_ROWS, *, interval: float = FRAME_SECONDS) -> Any:
        """Return a table of the rows in this order that a notebook keeps up to date, as `Output.live`."""
        return live_table(self, rows, interval)

    def to_pandas(self, as_of: Any = None) -> Any:
        """Return the rows as of a time as a pandas DataFrame."""
        return self.snapshot(as_of).to_pandas()

    def to_polars(self, as_of: Any = None) -> Any:
        """Return the rows as of a time as a polars DataFrame."""
        return polars_frame(self.snapshot(as_of))


def live_table(answer: Output | OrderedRead, rows: int, interval: float) -> Any:
    """Return a table that a notebook keeps up to date."""
    return import_module("kpg.notebook.live_table").live_table(answer, rows, interval)


def polars_frame(table: pa.Table) -> Any:
    """Return a table as a polars DataFrame."""
    require("polars", "to_polars()")
    import polars

    return polars.from_arrow(table)


def order_of_table(schema: Schema, data: Ints, symbols: Symbols, keys: tuple[OrderKey, ...]) -> Ints:
    """Return the positions of rows in the order of some keys, then of all columns with nulls last."""
    lanes: list[Ints] = []
    for key in (*keys, *[OrderKey(ColumnReference(name)) for name in schema.names]):
        lanes += _order_lanes(key, schema, data, symbols)
    return np.lexsort(lanes[::-1])


def _order_lanes(key: OrderKey, schema: Schema, data: Ints, symbols: Symbols) -> list[Ints]:
    """Return lanes that sort as a key does: whether the value is null, if it may be, then the value."""
    bound = bind(key.expression, schema, symbols)
    evaluated = bound.evaluate(data)
    if evaluated.failed is not None:
        raise DataError(f"cannot sort by {key.expression!r}", detail=evaluated.reason(int(np.argmax(evaluated.failed))))
    values = evaluated.values
    null = is_null(values)
    if bound.type.is_symbolic:
        (values,) = order_keys(symbols, values)
    if bound.type.kind == "interval":
        values = np.concatenate([span_lanes(values), values])
    values = np.atleast_2d(~values if key.descending else values)
    if not bound.type.nullable:
        return list(values)
    first_or_last = null if key.nulls_last else ~null
    return [first_or_last.astype(np.int64), *np.where(null, 0, values)]
