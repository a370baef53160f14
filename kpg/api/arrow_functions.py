"""User functions from tables to tables, as functions on lanes: each call decodes its input and encodes its result."""

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
        returned, rows = self.function(decode(self.before, data, self.symbols))
        encoded = encode(self.after, rows, self.symbols)
        positions = np.ascontiguousarray(returned, np.int64)
        if positions.shape != (encoded.shape[1],) or (
            len(positions) and not 0 <= positions.min() <= positions.max() < data.shape[1]
        ):
            raise SchemaMismatch(
                "flat_map's function returned positions that do not fit its rows",
                detail=f"{len(positions)} positions for {encoded.shape[1]} rows made of {data.shape[1]}.",
                hint="Return (positions, table): for each new row the number of the old row it came from.",
            )
        return positions, encoded
