"""Functions from tables to tables, as functions on lanes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from kpg.columns.schema import Schema
from kpg.columns.symbols import Symbols
from kpg.columns.table_rows import decode, encode
from kpg.columns.updates import Ints
from kpg.errors import SchemaMismatch


@dataclass(frozen=True, slots=True)
class ArrowFunction:
    """`function(table) → (positions, table)` as a function of lanes."""

    function: Callable[..., Any]
    before: Schema
    after: Schema
    symbols: Symbols

    def __call__(self, data: Ints) -> tuple[Ints, Ints]:
        positions, rows = self.function(decode(self.before, data, self.symbols))
        made = encode(self.after, rows, self.symbols)
        where = np.ascontiguousarray(positions, np.int64)
        if where.shape != (made.shape[1],) or (len(where) and not 0 <= where.min() <= where.max() < data.shape[1]):
            raise SchemaMismatch(
                "flat_map's function returned positions that do not fit its rows",
                detail=f"{len(where)} positions for {made.shape[1]} rows made of {data.shape[1]}.",
                hint="Return (positions, table): for each new row the number of the old row it came from.",
            )
        return where, made
