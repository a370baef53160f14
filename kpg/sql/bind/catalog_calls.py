"""Functions about the db that clients of PostgreSQL call: constants, definitions by OID, and casts of OIDs to names.

    pg_get_viewdef(c.oid)    a lookup in pg_catalog.kpg_definitions
    't'::regclass            a lookup in pg_catalog.pg_class; 16384::regclass looks up the name

kpg has one user, one database and no comments, privileges or locks, so most of these functions have one value.
"""

from __future__ import annotations

from typing import Any, Final

from kpg.errors import UndefinedName
from kpg.sql.bind.bind_context import BindContext, value_of
from kpg.sql.bind.coercions import coerce, function_call, is_unknown
from kpg.sql.catalog.entries import TableEntry
from kpg.sql.catalog.fixed_settings import FIXED_SETTINGS
from kpg.sql.catalog.system_types import OIDS_BY_NAME, format_type
from kpg.sql.functions.building import values
from kpg.sql.functions.function import Function
from kpg.sql.parse.call_rules import COLUMN_POSITION
from kpg.sql.parse.postgres_tokens import folded
from kpg.sql.parse.spans import Span
from kpg.sql.parse.sql_failures import not_supported, sql_failure
from kpg.sql.relational.relations import Filter, Scan
from kpg.sql.relational.scalars import Column, ColumnValue, Constant, Scalar, ScalarCall, SubqueryValue, conjunction
from kpg.sql.sql_types import BIGINT, BOOLEAN, INTEGER, TEXT, SqlType, array_of
from kpg.version import __version__

CONSTANTS: Final[dict[str, tuple[Any, SqlType]]] = {
    **dict.fromkeys(("current_user", "session_user", "user", "current_role", "pg_get_userbyid"), ("kpg", TEXT)),
    **dict.fromkeys(("current_database", "current_catalog"), ("kpg", TEXT)),
    "current_schema": ("public", TEXT),
    "current_schemas": (("pg_catalog", "public"), array_of(TEXT)),
    "version": (f"PostgreSQL 15.0 (kpg {__version__})", TEXT),
    "pg_backend_pid": (0, INTEGER),
    "pg_encoding_to_char": ("UTF8", TEXT),
    **dict.fromkeys(
        (
            "pg_table_is_visible", "pg_type_is_visible", "pg_function_is_visible", "pg_collation_is_visible",
            "pg_opclass_is_visible", "pg_operator_is_visible", "has_table_privilege", "has_schema_privilege",
            "has_database_privilege", "has_column_privilege", "has_any_column_privilege", "has_sequence_privilege",
            "has_function_privilege", "has_tablespace_privilege", "pg_has_role",
        ),
        (True, BOOLEAN),
    ),
    **dict.fromkeys(
        ("pg_is_in_recovery", "pg_is_wal_replay_paused", "pg_relation_is_publishable", "pg_is_other_temp_schema"),
        (False, BOOLEAN),
    ),
    **dict.fromkeys(
        (
            "obj_description", "col_description", "shobj_description", "pg_get_serial_sequence", "pg_get_partkeydef",
            "pg_get_statisticsobjdef_columns", "pg_get_function_result", "pg_get_function_arguments",
            "pg_get_function_identity_arguments", "pg_get_functiondef", "pg_get_triggerdef", "pg_get_ruledef",
            "pg_advisory_unlock_all", "inet_server_addr", "pg_tablespace_location",
        ),
        (None, TEXT),
    ),
    **dict.fromkeys(
        (
            "pg_relation_size", "pg_table_size", "pg_total_relation_size", "pg_indexes_size", "pg_database_size",
            "pg_my_temp_schema", "txid_current", "pg_relation_filenode",
        ),
        (0, BIGINT),
    ),
}  # fmt: skip
FORMAT_TYPE: Final = Function("format_type", (BIGINT, INTEGER), TEXT, values(format_type))
DEFINITIONS: Final = frozenset({"pg_get_viewdef", "pg_get_indexdef", "pg_get_constraintdef"})
REGISTRY_TYPES: Final = {"regclass": ("pg_class", "relname"), "regnamespace": ("pg_namespace", "nspname")}


def catalog_call(name: str, arguments: tuple[Scalar, ...], context: BindContext, span: Span | None) -> Scalar | None:
    """Return the value of a function about the db; None if there is no such function."""
    if name in CONSTANTS:
        value, type_ = CONSTANTS[name]
        return Constant(value, type=type_, span=span)
    if name in ("pg_get_expr", "set_config") and arguments:
        return coerce(arguments[1 if name == "set_config" else 0], TEXT, "explicit")
    if name in ("to_regtype", "to_regclass") and len(arguments) == 1:
        text = coerce(arguments[0], TEXT)
        if name == "to_regclass":
            return looked_up(context, "pg_class", {"relname": text}, "oid", span)
        given = text.value if isinstance(text, Constant) else None
        plain = str(given or "").strip().removeprefix("pg_catalog.").lower()
        return Constant(OIDS_BY_NAME.get(plain), type=BIGINT, span=span)
    if name == COLUMN_POSITION:
        if arguments[0].type.name != "oid":  # only columns of the catalog have this type
            raise not_supported("a window function (OVER)", span)
        return coerce(arguments[1], BIGINT, "explicit")  # columns are never dropped, so their numbers have no gaps
    if name == "json_build_object":
        return function_call("jsonb_build_object", arguments, span)
    if name == "format_type" and len(arguments) == 2:
        return formatted_type(*arguments, span)
    if name == "current_setting" and arguments:
        return current_setting(coerce(arguments[0], TEXT), len(arguments) > 1, span)
    if name in DEFINITIONS and arguments:
        position = arguments[1] if name == "pg_get_indexdef" and len(arguments) > 1 else Constant(0, type=INTEGER)
        keys = {"oid": coerce(arguments[0], BIGINT, "explicit"), "position": coerce(position, INTEGER, "explicit")}
        return looked_up(context, "kpg_definitions", keys, "definition", span)
    return None


def is_option_vector(value: Scalar) -> bool:
    """Return whether a value is pg_index.indoption: to clients a text, of which some also read elements."""
    return isinstance(value, ColumnValue) and value.type == TEXT and value.column.name in ("indoption", "i_indoption")


def formatted_type(oid: Scalar, modifier: Scalar, span: Span | None) -> ScalarCall:
    """Return the name of a type by its OID."""
    arguments = (coerce(oid, BIGINT, "explicit"), coerce(modifier, INTEGER, "explicit"))
    return ScalarCall(FORMAT_TYPE, arguments, type=TEXT, span=span)


def current_setting(name: Scalar, missing_ok: bool, span: Span | None) -> Constant:
    """Return the value of a setting that is always the same."""
    key = str(name.value).lower() if isinstance(name, Constant) and name.value is not None else None
    if key is not None and key not in FIXED_SETTINGS and not missing_ok:
        raise sql_failure(UndefinedName, f'unrecognized configuration parameter "{key}"', span, "42704")
    return Constant(FIXED_SETTINGS.get(key or ""), type=TEXT, span=span)


def looked_up(
    context: BindContext, relation: str, keys: dict[str, Scalar], result: str, span: Span | None
) -> SubqueryValue:
    """Return the value of a column of the row of a system relation that has some keys."""
    entry = context.catalog.entry(f"pg_catalog.{relation}")
    assert isinstance(entry, TableEntry)
    columns = tuple(Column(column.name, column.type) for column in entry.columns)
    by_name = {column.name: column for column in columns}
    scan = Scan(columns, entry.name, tuple(by_name))
    terms = tuple(function_call("=", (value_of(by_name[name]), value), span) for name, value in keys.items())
    column = by_name[result]
    return SubqueryValue(Filter(columns, scan, conjunction(terms)), column, type=column.type, span=span)


def cast_to_name(kind: str, value: Scalar, context: BindContext, span: Span | None) -> Scalar:
    """Return a cast to regclass, regtype and the like: the OID of a constant name, or the name of an OID."""
    if is_unknown(value) and isinstance(value, Constant):
        text = value.value
        if isinstance(text, str) and text.isdigit():
            return Constant(int(text), type=BIGINT, span=span)
        if kind == "regtype" and isinstance(text, str):
            return Constant(oid_of_name(text, span), type=BIGINT, span=span)
        value = coerce(value, TEXT)
    if kind == "regproc":  # the catalog has functions by their names, without a schema
        if isinstance(value, Constant) and isinstance(value.value, str):
            return Constant(value.value.removeprefix("pg_catalog."), type=TEXT, span=span)
        return value
    if kind == "regtype":
        return formatted_type(value, Constant(None, type=INTEGER), span)
    relation, name = REGISTRY_TYPES[kind]
    if not value.type.is_text:
        return looked_up(context, relation, {"oid": coerce(value, BIGINT, "explicit")}, name, span)
    if kind == "regclass" and isinstance(value, Constant) and isinstance(value.value, str):
        plain = relation_name(value.value)
        if context.catalog.entry(plain) is None and context.catalog.sequence(plain) is None:
            raise sql_failure(UndefinedName, f'relation "{plain}" does not exist', span, "42P01")
        value = Constant(plain.rpartition(".")[2], type=TEXT, span=span)
    return looked_up(context, relation, {name: value}, "oid", span)


def relation_name(text: str) -> str:
    """Return the name that a text means: folded unless it is quoted, without `public`."""
    name = text.strip().removeprefix("public.")
    return name[1:-1].replace('""', '"') if name.startswith('"') else folded(name)


def oid_of_name(text: str, span: Span | None) -> int:
    """Return the OID of a type by its name."""
    name = text.strip().removeprefix("pg_catalog.").lower()
    if name not in OIDS_BY_NAME:
        raise sql_failure(UndefinedName, f'type "{name}" does not exist', span, "42704")
    return OIDS_BY_NAME[name]
