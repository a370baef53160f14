"""Errors as data: a symbol describes each row on which an expression failed: the operator, the reason and the row.

    equal operator, reason and row, in any process   ⇔   equal symbols

So an error update has one lane. Retracting the row retracts exactly its error, even on another worker, and never hides
an error of another operator. An error of a rule belongs to the rule instead of an operator: several pipelines compute
the solutions of one rule, and their errors add up like the solutions. The text of a failed row is created once and
reclaimed like any other unused text.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from json.encoder import encode_basestring_ascii as json_string
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np

from kpg.columns.decode_column import decode_list
from kpg.columns.expression_origin import ExpressionOrigin, Failure
from kpg.columns.schema import Schema
from kpg.columns.symbols import Symbols
from kpg.columns.updates import Ints

OperatorId: TypeAlias = tuple[int, int]  # the id of a dataflow, and the index of an operator in it
Object = TypeVar("Object")
MAX_SHOWN_CHARACTERS = 200  # of one value in a message; longer ones are cut


class ErrorDescription(NamedTuple):
    """An error in the user's words."""

    reason: str
    at: str  # the position in a program, or ""
    excerpt: str  # the line at that position, or ""
    row: str  # x = 8, y = 0


class ErrorRows:
    """Convert failed rows to symbols, and symbols to descriptions."""

    def __init__(self, symbols: Symbols) -> None:
        self._symbols = symbols

    def intern(self, operator_id: OperatorId, failures: Sequence[Failure], data: Ints, schema: Schema) -> Ints:
        """Return the symbol of each failed row of an operator. `schema` describes the first lanes of `data`."""
        prefixes = {id(failure): text_before_row(operator_id, failure) for failure in each_once(failures)}
        values = np.empty(len(failures), object)
        for origin in each_once([failure.origin for failure in failures]):
            rows = [row for row, failure in enumerate(failures) if failure.origin is origin]
            shown = self._shown(np.ascontiguousarray(data[:, rows]), schema, shown_columns(schema, origin))
            for row, text in zip(rows, shown, strict=True):
                values[row] = f"{prefixes[id(failures[row])]}{json_string(text)}]".encode()
        return self._symbols.intern(list(values)) if len(values) else np.empty(0, np.int64)

    def _shown(self, data: Ints, schema: Schema, columns: Sequence[tuple[str, int]]) -> list[str]:
        """Return each row as text: x = 8, y = 0."""
        shown = [[f"{name} = {show_value(value)}" for value in self._values(schema, at, data)] for name, at in columns]
        return list(map(", ".join, zip(*shown, strict=True))) if shown else [""] * data.shape[1]

    def _values(self, schema: Schema, at: int, data: Ints) -> list[Any]:
        """Return the values of a column."""
        return decode_list(schema.types[at], data[schema.slots[at]], self._symbols)

    def describe(self, symbols: Ints) -> list[ErrorDescription]:
        """Return what some errors say."""
        return [ErrorDescription(*json.loads(value)[2:]) for value in self._symbols.values(symbols)]


def each_once(objects: Sequence[Object]) -> list[Object]:
    """Return each object once, by identity: the same object fails many rows, and comparing it costs more."""
    return list({id(each): each for each in objects}.values())


def text_before_row(operator_id: OperatorId, failure: Failure) -> str:
    """Return what the texts of all rows with a failure begin with: a JSON array that lacks its last member, the row."""
    origin = failure.origin
    owner: list[object] = [operator_id[0], operator_id[1] if origin is None else origin.rule]
    where = ["", ""] if origin is None else [origin.at, origin.excerpt]
    return f"{json.dumps([*owner, failure.reason, *where])[:-1]}, "


def shown_columns(schema: Schema, origin: ExpressionOrigin | None) -> list[tuple[str, int]]:
    """Return the names and positions of the columns that messages show: the variables of a rule, or else all."""
    if origin is not None:
        return [(name, schema.index(column)) for name, column in origin.columns if column in schema.names]
    names = [(visible_name(name), position) for position, name in enumerate(schema.names)]
    return [(name, position) for name, position in names if name]


def visible_name(column: str) -> str:
    """Return the name of a column as users know it; "" for a column that kpg added."""
    if column.startswith((" ", "=", "$@", "_#")):
        return ""
    return column.removeprefix("$").partition("#")[0]


def show_value(value: Any) -> str:
    """Return a value as messages show it."""
    match value:
        case None:
            text = "null"
        case bool():
            text = str(value).lower()
        case str():
            text = json.dumps(value, ensure_ascii=False)
        case bytes():
            text = value.hex()
        case _:
            text = str(value)
    return text if len(text) <= MAX_SHOWN_CHARACTERS else f"{text[:MAX_SHOWN_CHARACTERS]}..."
