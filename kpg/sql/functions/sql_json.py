"""Functions of jsonb and uuid, and of types."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from kpg.columns.expression import Expression, Literal
from kpg.sql.functions.building import pending
from kpg.sql.functions.cast_rules import ANY
from kpg.sql.functions.function import Function
from kpg.sql.sql_types import BOOLEAN, INTEGER, JSONB, TEXT, UUID, SqlType, array_of


def _type_of(arguments: Sequence[Expression], types: Sequence[SqlType], result: SqlType) -> Expression:
    return Literal(str(replace(types[0], precision=None, scale=None, length=None)))


FUNCTIONS: Final = (
    *(Function("->", (JSONB, a), JSONB, pending) for a in (TEXT, INTEGER)),
    *(Function("->>", (JSONB, a), TEXT, pending) for a in (TEXT, INTEGER)),
    Function("#>", (JSONB, array_of(TEXT)), JSONB, pending),
    Function("#>>", (JSONB, array_of(TEXT)), TEXT, pending),
    Function("@>", (JSONB, JSONB), BOOLEAN, pending),
    Function("<@", (JSONB, JSONB), BOOLEAN, pending),
    Function("?", (JSONB, TEXT), BOOLEAN, pending),
    *(Function(op, (JSONB, array_of(TEXT)), BOOLEAN, pending) for op in ("?|", "?&")),
    Function("||", (JSONB, JSONB), JSONB, pending),
    *(Function("-", (JSONB, a), JSONB, pending) for a in (TEXT, INTEGER)),
    Function("jsonb_typeof", (JSONB,), TEXT, pending),
    Function("jsonb_array_length", (JSONB,), INTEGER, pending),
    Function("jsonb_extract_path", (JSONB, TEXT), JSONB, pending, variadic=True),
    Function("jsonb_extract_path_text", (JSONB, TEXT), TEXT, pending, variadic=True),
    Function("jsonb_strip_nulls", (JSONB,), JSONB, pending),
    Function("to_jsonb", (ANY,), JSONB, pending),
    Function("jsonb_build_array", (ANY,), JSONB, pending, variadic=True),
    Function("jsonb_build_object", (ANY,), JSONB, pending, variadic=True),
    Function("gen_random_uuid", (), UUID, pending, volatile=True),
    Function("pg_typeof", (ANY,), TEXT, _type_of, total=True),
)
