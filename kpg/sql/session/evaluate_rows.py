"""Evaluate bound scalars over rows that are in hand, without a dataflow: VALUES, checks, RETURNING, ON CONFLICT.

A row on which a scalar fails raises at once: a statement that writes has no rows with errors.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from kpg.columns.bind import BoundExpression, Evaluated, bind
from kpg.columns.pause_points import pause
from kpg.columns.rows import rows_of
from kpg.columns.schema import Schema
from kpg.columns.table_rows import decode, encode, parts_with_pauses
from kpg.columns.updates import Ints
from kpg.errors import DataError
from kpg.sql.functions.row_failures import state_of_reason
from kpg.sql.lower.engine_types import engine_type
from kpg.sql.lower.lower_scalars import expression_of
from kpg.sql.relational.relations import BoundRelation, Project, Values
from kpg.sql.relational.scalars import SUBQUERIES, Column, ColumnValue, Constant, Scalar, walk
from kpg.sql.session.sql_errors import sql_error

if TYPE_CHECKING:
    from kpg.api.contracts import Database

UNIT = Schema.of({"unit": int})
ROWS_PER_PART = 2_000  # of VALUES that are encoded between two pauses


def evaluate_scalars(
    db: Database, scalars: Sequence[Scalar], columns: Sequence[Column], table: pa.Table, schema: Schema
) -> tuple[pa.Table, Schema]:
    """Return one column for each scalar, over rows with some columns; raise if one fails on a row."""
    names = dict(zip(columns, schema.names, strict=False))  # without columns, the schema has a unit
    data = encode(schema, table, db.symbols)
    bound = [bind(expression_of(scalar, names), schema, db.symbols) for scalar in scalars]
    values = [evaluate_in_parts(expression, data) for expression in bound]
    result = Schema(tuple(f"column {at}" for at in range(len(bound))), tuple(expression.type for expression in bound))
    lanes = np.concatenate([np.atleast_2d(value) for value in values]) if values else np.empty((0, data.shape[1]))
    return decode(result, np.ascontiguousarray(lanes.astype(np.int64, copy=False)), db.symbols), result


def evaluate_in_parts(expression: BoundExpression, data: Ints) -> Any:
    """Return the values of an expression, with pauses; raise if a row failed."""
    if not expression.sliceable or not data.shape[1]:
        return checked(expression.evaluate(data))
    parts = [
        checked(expression.evaluate(np.ascontiguousarray(data[:, part])), part.start)
        for part in parts_with_pauses(data.shape[1])
    ]
    return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=-1)


class FailedRow(DataError):
    """A scalar fails on a row; `row` is its position, `error` has the message for users."""

    def __init__(self, row: int, error: DataError) -> None:
        super().__init__(error.what, detail=error.detail, hint=error.hint)
        self.sqlstate = error.sqlstate
        self.row = row
        self.error = error


def checked(evaluated: Evaluated, start: int = 0) -> Any:
    """Return the values; raise if a row failed. Rows count from `start`."""
    failed = evaluated.failed
    if failed is not None and failed.any():
        row = int(np.argmax(failed))
        failure = evaluated.failure(row)
        position = f"{failure.origin.at}: " if failure.origin is not None and failure.origin.at else ""
        excerpt = failure.origin.excerpt if failure.origin is not None else ""
        what = f"{position}{failure.reason}"
        raise FailedRow(
            start + row, sql_error(DataError, state_of_reason(failure.reason), what, detail=excerpt or None)
        )
    return evaluated.values


def constant_rows(db: Database, relation: BoundRelation) -> tuple[pa.Table, Schema] | None:
    """Return the rows of VALUES, or of a projection of it; None if the relation needs a dataflow."""
    if isinstance(relation, Project) and relation.input.columns and not has_subquery(relation.values):
        inner = constant_rows(db, relation.input)
        if inner is None:
            return None
        chosen = chosen_columns(relation)
        if chosen is not None:  # as usual for INSERT … VALUES
            table, schema = inner[0].select(chosen), inner[1].select([inner[1].names[at] for at in chosen])
            return table, schema
        return evaluate_scalars(db, relation.values, relation.input.columns, *inner)
    if not isinstance(relation, Values) or not relation.columns or has_subquery(itertools.chain(*relation.rows)):
        return None
    return rows_of_values(db, relation)


def chosen_columns(relation: Project) -> list[int] | None:
    """Return the positions of the different columns that a projection chooses; None if it computes something."""
    positions = {column: at for at, column in enumerate(relation.input.columns)}
    chosen = [positions.get(value.column) for value in relation.values if isinstance(value, ColumnValue)]
    present = [at for at in chosen if at is not None]
    return present if len(present) == len(set(present)) == len(relation.values) else None


def has_subquery(scalars: Iterable[Scalar]) -> bool:
    """Return whether some scalar contains a subquery."""
    return any(isinstance(part, SUBQUERIES) for scalar in scalars for part in walk(scalar))


def rows_of_values(db: Database, values: Values) -> tuple[pa.Table, Schema]:
    """Return the rows of VALUES without subqueries."""
    types = tuple(engine_type(column.type) for column in values.columns)
    schema = Schema(tuple(f"column {at}" for at in range(len(types))), types)
    plain: list[list[Any]] = []
    for row in values.rows:
        pause()
        plain.append([value.value if isinstance(value, Constant) else evaluate_one(db, value) for value in row])
    parts = [encode(schema, [], db.symbols)]
    for start in range(0, len(plain), ROWS_PER_PART):
        pause()
        parts.append(encode(schema, [tuple(row) for row in plain[start : start + ROWS_PER_PART]], db.symbols))
    data = np.concatenate(parts, axis=1)
    return decode(schema, data, db.symbols), schema


def evaluate_one(db: Database, scalar: Scalar) -> Any:
    """Return the Python value of a scalar without columns."""
    table, schema = evaluate_scalars(db, [scalar], (), pa.table({"unit": [0]}), UNIT)
    return rows_of(table, schema)[0][0]
