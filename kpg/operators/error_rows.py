"""Errors as data: each row on which an expression fails is a symbol that says where, why and which row.

    equal place, reason and row, in whatever process   ⇔   equal symbols

So an error update carries one lane; retracting the row retracts the error exactly, also when the row came and goes by
different workers, and what one operator takes back never hides the error of another. Words are made only once for each
failed row, and given back like any text that no row has any more.
"""

from __future__ import annotations

import json
from typing import TypeAlias

import numpy as np

from kpg.columns.lane_values import NULL
from kpg.columns.schema import Schema
from kpg.columns.symbols import Symbols
from kpg.columns.updates import Ints

Place: TypeAlias = tuple[int, int]  # the ids of a dataflow and of an operator in it


class ErrorRows:
    """Symbols of failed rows, and back."""

    def __init__(self, symbols: Symbols) -> None:
        self._symbols = symbols

    def intern(self, operator: str, place: Place, reasons: list[str], data: Ints, schema: Schema) -> Ints:
        """The symbol of each failed row of an operator; `schema` says which of its first lanes are text."""
        lanes = [self._shown(lane, index, schema) for index, lane in enumerate(data)]
        rows = zip(*lanes, strict=True) if lanes else ((),) * data.shape[1]
        values = [
            json.dumps([*place, operator, reason, row]).encode() for reason, row in zip(reasons, rows, strict=True)
        ]
        return self._symbols.intern(values) if values else np.empty(0, np.int64)

    def _shown(self, lane: Ints, index: int, schema: Schema) -> list[int | str | None]:
        """The values of one lane: text as it is, all else as the number it is held by."""
        if index >= len(schema) or not schema.types[index].is_symbolic:
            return list(lane.tolist())
        found = self._symbols.values(np.ascontiguousarray(lane[lane != NULL]))
        texts = iter([value if isinstance(value, str) else value.hex() for value in found])
        return [None if value == NULL else next(texts) for value in lane.tolist()]

    def describe(self, symbol: int) -> tuple[str, str, list[int | str | None]]:
        """Operator, reason and row of an error."""
        (value,) = self._symbols.values(np.array([symbol], np.int64))
        _, _, operator, reason, row = json.loads(value)
        return operator, reason, row
