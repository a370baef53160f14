"""Names of result columns without a label, as PostgreSQL chooses them: of a column, function or type, or ?column?."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from kpg.sql.bind.tree_reading import name_of
from kpg.sql.sql_types import SqlType

NO_NAME: Final = "?column?"
TYPE_NAMES: Final = {
    "boolean": "bool", "smallint": "int2", "integer": "int4", "bigint": "int8", "real": "float4",
    "double precision": "float8", "character varying": "varchar", "character": "bpchar",
    "time without time zone": "time", "timestamp without time zone": "timestamp",
    "timestamp with time zone": "timestamptz",
}  # fmt: skip
NODE_NAMES: Final[dict[type[exp.Expr], str]] = {
    exp.Coalesce: "coalesce", exp.Greatest: "greatest", exp.Least: "least", exp.Nullif: "nullif",
    exp.Array: "array", exp.Exists: "exists", exp.Tuple: "row", exp.Grouping: "grouping", exp.Interval: "interval",
    exp.AtTimeZone: "timezone",
}  # fmt: skip


def output_name(node: exp.Expr) -> str:
    """Return the name of a result column."""
    if isinstance(node, exp.Alias):
        return name_of(node.args["alias"])
    return chosen_name(node)[0] or NO_NAME


def chosen_name(node: exp.Expr) -> tuple[str | None, int]:
    """Return a name and its strength: 2 for a column or function, 1 for a type or CASE, 0 if there is none."""
    if isinstance(node, exp.Column):
        return name_of(node.this), 2
    if isinstance(node, exp.Anonymous):
        return name_of(node.this), 2
    if isinstance(node, exp.Interval):
        return NODE_NAMES[exp.Interval], 1
    if type(node) in NODE_NAMES:
        return NODE_NAMES[type(node)], 2
    if isinstance(node, (exp.Paren, exp.Bracket, exp.Collate)):
        return chosen_name(node.this)
    if isinstance(node, exp.Cast):
        name, strength = chosen_name(node.this)
        return (name, strength) if strength > 1 else (type_name(node.args["to"].args["this"]), 1)
    if isinstance(node, exp.Case):
        default = node.args.get("default")
        name, strength = chosen_name(default) if default is not None else (None, 0)
        return (name, strength) if strength > 1 else ("case", 1)
    if isinstance(node, exp.Subquery):
        return subquery_name(node.this)
    return None, 0


def type_name(type_: SqlType) -> str:
    """Return the short name of a type, which PostgreSQL uses for casts."""
    shown = type_.element if type_.element is not None else type_
    return TYPE_NAMES.get(shown.name, shown.name)


def subquery_name(query: exp.Expr) -> tuple[str | None, int]:
    """Return the name of the first column of a subquery."""
    while isinstance(query, (exp.Subquery, exp.SetOperation)):
        query = query.this
    if isinstance(query, exp.Values):
        return "column1", 2
    items = query.args.get("expressions") or []
    return (output_name(items[0]), 2) if items and not isinstance(items[0], exp.Star) else (None, 0)
