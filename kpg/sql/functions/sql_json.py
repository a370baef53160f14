"""Functions of jsonb and uuid, and of types."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from kpg.columns.expression import Expression, Literal
from kpg.sql.functions import json_values
from kpg.sql.functions.building import distinct, values, volatile
from kpg.sql.functions.cast_rules import ANY, ANY_ELEMENT
from kpg.sql.functions.function import Function
from kpg.sql.functions.sql_text import type_names
from kpg.sql.functions.uuid_lanes import uuid_lanes
from kpg.sql.sql_types import BOOLEAN, INTEGER, JSONB, TEXT, UUID, SqlType, array_of


def _type_of(arguments: Sequence[Expression], types: Sequence[SqlType], result: SqlType) -> Expression:
    return Literal(str(replace(types[0], precision=None, scale=None, length=None)))


def _type_name(types: Sequence[SqlType], result: SqlType) -> tuple[Any, ...]:
    return (types[0].name,)


FUNCTIONS: Final = (
    *(Function("->", (JSONB, a), JSONB, distinct(json_values.member, null=True)) for a in (TEXT, INTEGER)),
    *(Function("->>", (JSONB, a), TEXT, distinct(json_values.member_text, null=True)) for a in (TEXT, INTEGER)),
    Function("#>", (JSONB, array_of(TEXT)), JSONB, distinct(json_values.at_path, null=True)),
    Function("#>>", (JSONB, array_of(TEXT)), TEXT, distinct(json_values.text_at_path, null=True)),
    Function("@>", (JSONB, JSONB), BOOLEAN, distinct(json_values.contains)),
    Function("<@", (JSONB, JSONB), BOOLEAN, distinct(json_values.is_contained)),
    Function("?", (JSONB, TEXT), BOOLEAN, distinct(json_values.has_key)),
    Function("?|", (JSONB, array_of(TEXT)), BOOLEAN, distinct(json_values.has_any_key)),
    Function("?&", (JSONB, array_of(TEXT)), BOOLEAN, distinct(json_values.has_all_keys)),
    Function("||", (JSONB, JSONB), JSONB, distinct(json_values.joined)),
    *(Function("-", (JSONB, a), JSONB, distinct(json_values.without)) for a in (TEXT, INTEGER)),
    Function("jsonb_typeof", (JSONB,), TEXT, distinct(json_values.kind_of)),
    Function("jsonb_array_length", (JSONB,), INTEGER, distinct(json_values.length_of)),
    Function("jsonb_extract_path", (JSONB, TEXT), JSONB, distinct(json_values.at_steps, null=True), variadic=True),
    Function("jsonb_extract_path_text", (JSONB, TEXT), TEXT, distinct(json_values.text_at_steps, null=True),
             variadic=True),
    Function("jsonb_strip_nulls", (JSONB,), JSONB, distinct(json_values.without_nulls)),
    Function("to_jsonb", (ANY_ELEMENT,), JSONB, distinct(json_values.to_jsonb, by_types=_type_name)),
    Function("jsonb_build_array", (ANY,), JSONB, values(json_values.build_array, by_types=type_names), variadic=True),
    Function("jsonb_build_object", (ANY,), JSONB, values(json_values.build_object, by_types=type_names),
             variadic=True),
    Function("gen_random_uuid", (), UUID, volatile(uuid_lanes), volatile=True),
    Function("pg_typeof", (ANY,), TEXT, _type_of, total=True),
)  # fmt: skip
