"""Lower functions that return rows: each row of the left side is repeated for each row that the function returns.

A function that is called without a left side is called for one row without columns. A null argument returns no rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from kpg.columns.arrow_arrays import from_list
from kpg.columns.expression import Expression
from kpg.columns.pause_points import CALLS_PER_PAUSE, ROWS_PER_PAUSE, pause
from kpg.columns.schema import Type, parse_type
from kpg.sql.functions.function import TableFunction
from kpg.sql.functions.function_tables import TABLE_FUNCTIONS
from kpg.sql.lower.engine_types import engine_type
from kpg.sql.lower.lower_rows import condition_of, unit_row
from kpg.sql.lower.lowered_relation import LoweredRelation, unique_names
from kpg.sql.lower.relation_lowering import RelationLowering
from kpg.sql.relational.relations import BoundJoin, FunctionScan
from kpg.sql.relational.scalars import conjuncts


def lower_function_scan(lowering: RelationLowering, node: FunctionScan) -> LoweredRelation:
    """Return the rows of a function of constants."""
    return with_rows_of(lowering, unit_row(lowering), node)


def lower_lateral_function(lowering: RelationLowering, join: BoundJoin) -> LoweredRelation:
    """Return the left rows, each with the rows that a function of it returns."""
    assert isinstance(join.right, FunctionScan) and join.kind == "inner", "the rewrites remove dependent joins"
    pairs = with_rows_of(lowering, lowering.lower(join.left), join.right)
    terms = conjuncts(join.condition)
    return pairs.with_rows(pairs.rows.filter(condition_of(lowering, terms, pairs))) if terms else pairs


def with_rows_of(lowering: RelationLowering, left: LoweredRelation, call: FunctionScan) -> LoweredRelation:
    """Return the left rows, each with the rows that a function returns."""
    names = unique_names((*left.names, *call.columns))
    kept = {names[column]: left.reference(column) for column in left.names}
    arguments: dict[str, Expression] = {
        f" argument {number}": lowering.expression(argument, left) for number, argument in enumerate(call.arguments)
    }
    rows = left.rows.select(**kept, **arguments) if kept or arguments else left.rows
    types: dict[str, Type] = {name: rows.schema.type_of(name) for name in kept}
    types |= {names[column]: engine_type(column.type) for column in call.columns}
    function = RowsOfFunction(
        call.function,
        tuple(kept),
        tuple(arguments),
        tuple((names[column], types[names[column]]) for column in call.columns),
        call.ordinality is not None,
    )
    return LoweredRelation(rows.flat_map(function, **types), names)


@dataclass(frozen=True)
class RowsOfFunction:
    """A function of rows as a function from tables to tables, for `flat_map`."""

    function: TableFunction
    kept: tuple[str, ...]
    arguments: tuple[str, ...]
    returned: tuple[tuple[str, Type], ...]
    numbered: bool

    @property
    def __name__(self) -> str:
        return self.function.name

    @property
    def plan_form(self) -> tuple[Any, list[Any]]:
        """The function that makes this one, and its constants, for workers."""
        overload = TABLE_FUNCTIONS[self.function.name].index(self.function)
        returned = [[name, str(type_)] for name, type_ in self.returned]
        return rows_of_function, [
            self.function.name,
            overload,
            [*self.kept],
            [*self.arguments],
            returned,
            self.numbered,
        ]

    def __call__(self, table: pa.Table) -> tuple[Any, pa.Table]:
        """Return the position of the row that each returned row came from, and the returned rows."""
        positions: list[int] = []
        rows: list[tuple[Any, ...]] = []
        columns = [table.column(name).to_pylist() for name in self.arguments]
        for position in range(table.num_rows):
            values = [column[position] for column in columns]
            if any(value is None for value in values):
                continue
            for number, row in enumerate(self.function.rows(*values), 1):
                if number % CALLS_PER_PAUSE == 0:
                    pause()
                positions.append(position)
                rows.append((*row, number) if self.numbered else tuple(row))
        arrays: list[Any] = [table.column(name).take(from_list(positions, pa.int64())) for name in self.kept]
        for at, (_, type_) in enumerate(self.returned):
            chunks: list[Any] = []
            for start in range(0, len(rows), ROWS_PER_PAUSE):
                chunks.append(from_list([row[at] for row in rows[start : start + ROWS_PER_PAUSE]], type_.to_arrow()))
                pause()
            arrow_type: Any = type_.to_arrow()
            arrays.append(pa.chunked_array(chunks, arrow_type))
        return positions, pa.table(arrays, names=[*self.kept, *(name for name, _ in self.returned)])


def rows_of_function(
    name: str, overload: int, kept: list[str], arguments: list[str], returned: list[list[str]], numbered: bool
) -> RowsOfFunction:
    """Return a function of rows by its name and the number of its overload, as plans of workers have it."""
    columns = tuple((column, parse_type(type_)) for column, type_ in returned)
    return RowsOfFunction(TABLE_FUNCTIONS[name][overload], tuple(kept), tuple(arguments), columns, numbered)
