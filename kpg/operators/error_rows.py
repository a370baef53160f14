"""Errors as data: a symbol describes each row on which an expression failed: the operator, the reason and the row.

    equal operator, reason and row, in any process   ⇔   equal symbols

So an error update has one lane. Retracting the row retracts exactly its error, even on another worker, and never hides
an error of another operator. The text of a failed row is created once and reclaimed like any other unused text.
"""

from __future__ import annotations

import json
from typing import TypeAlias

import numpy as np

from kpg.columns.lane_values import NULL
from kpg.columns.schema import Schema
from kpg.columns.symbols import Symbols
from kpg.columns.updates import Ints

OperatorId: TypeAlias = tuple[int, int]  # the id of a dataflow, and the index of an operator in it


class ErrorRows:
    """Convert failed rows to symbols, and symbols to descriptions."""

    def __init__(self, symbols: Symbols) -> None:
        self._symbols = symbols

    def intern(self, operator: str, operator_id: OperatorId, reasons: list[str], data: Ints, schema: Schema) -> Ints:
        """Return the symbol of each failed row of an operator. `schema` describes the first lanes of `data`."""
        lanes = [self._values(lane, index, schema) for index, lane in enumerate(data)]
        rows = zip(*lanes, strict=True) if lanes else ((),) * data.shape[1]
        values = [
            json.dumps([*operator_id, operator, reason, row]).encode()
            for reason, row in zip(reasons, rows, strict=True)
        ]
        return self._symbols.intern(values) if values else np.empty(0, np.int64)

    def _values(self, lane: Ints, index: int, schema: Schema) -> list[int | str | None]:
        """Return the values of one lane: text decoded, all other types as the integers that represent them."""
        if index >= len(schema) or not schema.types[index].is_symbolic:
            return list(lane.tolist())
        values = self._symbols.values(np.ascontiguousarray(lane[lane != NULL]))
        texts = iter([value if isinstance(value, str) else value.hex() for value in values])
        return [None if value == NULL else next(texts) for value in lane.tolist()]

    def describe(self, symbol: int) -> tuple[str, str, list[int | str | None]]:
        """Return the operator, the reason and the row of an error."""
        (value,) = self._symbols.values(np.array([symbol], np.int64))
        _, _, operator, reason, row = json.loads(value)
        return operator, reason, row
