"""Functions of jsonb and uuid, and of types."""

from __future__ import annotations

from typing import Final

from kpg.sql.functions.building import pending
from kpg.sql.functions.cast_rules import ANY
from kpg.sql.functions.function import Function
from kpg.sql.sql_types import BOOLEAN, INTEGER, JSONB, TEXT, UUID, array_of

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
    Function("pg_typeof", (ANY,), TEXT, pending),
)
