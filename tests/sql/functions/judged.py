"""Evaluate a call over rows by PostgreSQL and by kpg: for each row its text, or the SQLSTATE of its failure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kpg.columns.bind import bind
from kpg.columns.decode_column import decode_list
from kpg.columns.expression import ColumnReference, Expression
from kpg.columns.schema import Schema
from kpg.columns.symbols import Symbols
from kpg.columns.table_rows import encode
from kpg.sql.functions.row_failures import state_of_reason
from kpg.sql.functions.sql_casts import build_cast
from kpg.sql.functions.sql_literals import read_literal
from kpg.sql.lower.engine_types import engine_type
from kpg.sql.lower.lower_scalars import expression_of
from kpg.sql.relational.scalars import Constant
from kpg.sql.sql_types import TEXT, SqlType
from tests.sql.truth.postgres import Postgres

TRY_ALL = """
CREATE OR REPLACE FUNCTION try_all(expressions text[]) RETURNS TABLE (shown text, state text) LANGUAGE plpgsql AS $$
DECLARE expression text;
BEGIN
  FOREACH expression IN ARRAY expressions LOOP
    BEGIN
      EXECUTE 'SELECT (' || expression || ')::text' INTO shown;
      state := NULL;
    EXCEPTION WHEN OTHERS THEN
      shown := NULL; state := SQLSTATE;
    END;
    RETURN NEXT;
  END LOOP;
END $$
"""


@dataclass(frozen=True)
class Outcome:
    """The text of a value, None for null; or the SQLSTATE of a failure."""

    shown: str | None
    state: str | None = None


def literal(value: str | None, type_: SqlType) -> str:
    """Return a value as SQL text with its type."""
    quoted = "NULL" if value is None else "E'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    return f"({quoted}::{type_})"


def judge(postgres: Postgres, expressions: Sequence[str]) -> list[Outcome]:
    """Return what PostgreSQL computes, in one round trip."""
    with postgres.connection.cursor() as cursor:
        cursor.execute("SELECT * FROM try_all(%s)", (list(expressions),))
        return [Outcome(shown, state) for shown, state in cursor.fetchall()]


def compute(
    build, types: Sequence[SqlType], result: SqlType, rows: Sequence[Sequence[str | None]], constant: Sequence[bool]
) -> list[Outcome]:
    """Return what kpg computes; arguments that are `constant` have one value, that of the first row."""
    symbols = Symbols()
    values = [[read_literal(text, type_)[0] for text, type_ in zip(row, types, strict=True)] for row in rows]
    columns = [position for position, is_constant in enumerate(constant) if not is_constant]
    schema = Schema(
        tuple(f"c{p}" for p in columns) + ("row",),
        tuple(engine_type(types[p]) for p in columns) + (engine_type(SqlType("bigint")),),
    )
    data = encode(schema, [(*(row[p] for p in columns), number) for number, row in enumerate(values)], symbols)
    arguments: list[Expression] = [
        expression_of(Constant(values[0][p], type=types[p]), {}) if constant[p] else ColumnReference(f"c{p}")
        for p in range(len(types))
    ]
    expression = build(arguments, list(types), result)
    bound = bind(expression, schema, symbols)
    assert bound.type.optional(False) == engine_type(result, nullable=False), (bound.type, result)
    shown = bind(build_cast(expression, result, TEXT, True), schema, symbols)
    evaluated = shown.evaluate(data)
    texts = decode_list(shown.type.optional(), evaluated.values, symbols)
    failed = np.zeros(len(rows), np.bool_) if evaluated.failed is None else evaluated.failed
    return [
        Outcome(None, state_of_reason(evaluated.reason(row))) if failed[row] else Outcome(texts[row])
        for row in range(len(rows))
    ]
