"""Volatile functions in the lists of SELECT, VALUES, SET and RETURNING: computed once, over rows that are in hand.

    split_volatile(relation)          a relation without volatile functions, and the projections to compute over it
    projected(db, rows, projections)  the rows of the whole relation

The relation without them runs as every query does, on all workers. The projections run here, each once for each row, so
that nextval() draws from one place, and a transaction that adds its own changes to the rows of a table does so before
random() makes every row different. Elsewhere (WHERE, aggregates, subqueries) functions of sequences are refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from kpg.columns.schema import Schema
from kpg.sql.bind.bind_context import value_of
from kpg.sql.functions.sql_sequences import SEQUENCE_FUNCTIONS
from kpg.sql.parse.sql_failures import not_supported
from kpg.sql.relational.references import all_scalars
from kpg.sql.relational.relations import BoundRelation, Project, Values
from kpg.sql.relational.scalars import SUBQUERIES, Column, Constant, Scalar, ScalarCall, map_parts
from kpg.sql.session.evaluate_rows import evaluate_scalars, has_subquery
from kpg.sql.sql_types import BIGINT

if TYPE_CHECKING:
    import pyarrow as pa

    from kpg.api.contracts import Database


def is_volatile(scalar: Scalar) -> bool:
    """Return whether a scalar has another value each time it is computed."""
    return any(isinstance(part, ScalarCall) and part.function.volatile for part in all_scalars(scalar))


def split_volatile(relation: BoundRelation) -> tuple[BoundRelation, list[Project]]:
    """Return a relation without volatile functions in its lists, and the projections over it, innermost first."""
    rows, projections = _split(relation)
    _refuse_sequences(rows)
    return rows, projections


def _split(relation: BoundRelation) -> tuple[BoundRelation, list[Project]]:
    if isinstance(relation, Values) and len(relation.rows) == 1 and any(map(is_volatile, relation.rows[0])):
        relation = Project(relation.columns, Values((), ((),)), relation.rows[0])
    if not isinstance(relation, Project):
        return relation, []
    rows, projections = _split(relation.input)
    if not projections:
        if not any(map(is_volatile, relation.values)):
            return relation, []
        rows, relation = _lifted(relation)
    elif has_subquery(relation.values):
        raise not_supported("a subquery over the values of random(), nextval() and the like", None)
    return rows, [*projections, relation]


def _lifted(relation: Project) -> tuple[Project, Project]:
    """Split a projection: the values and subqueries that are not volatile, and the volatile rest over these."""
    columns, values = list(relation.input.columns), [*map(value_of, relation.input.columns)]
    below: list[Scalar] = [*values]

    def lift(scalar: Scalar) -> Scalar:
        column = Column(f"value {len(columns)}", scalar.type)
        columns.append(column)
        below.append(scalar)
        return value_of(column)

    def without_subqueries(scalar: Scalar) -> Scalar:
        return lift(scalar) if isinstance(scalar, SUBQUERIES) else map_parts(scalar, without_subqueries)

    above = tuple(without_subqueries(value) if is_volatile(value) else lift(value) for value in relation.values)
    if not columns:  # rows of the engine have a column
        lift(Constant(0, type=BIGINT))
    lower = Project(tuple(columns), relation.input, tuple(below))
    return lower, replace(relation, input=lower, values=above)


def _refuse_sequences(relation: BoundRelation) -> None:
    for scalar in all_scalars(relation):
        if isinstance(scalar, ScalarCall) and scalar.function.name in SEQUENCE_FUNCTIONS:
            hint = "It may stand in the list of SELECT, in VALUES, SET and DEFAULT, not below DISTINCT, LIMIT or UNION."
            raise not_supported(f"{scalar.function.name}() in this place", scalar.span, hint=hint)


def projected(db: Database, table: pa.Table, schema: Schema, projections: Sequence[Project]) -> tuple[pa.Table, Schema]:
    """Return the rows of projections over rows, and their schema."""
    for projection in projections:
        table, schema = evaluate_scalars(db, projection.values, projection.input.columns, table, schema)
    return table, schema
