"""Schemas of Spark and of kpg: conversion of types, and a check that rows fit a relation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kpg.columns.schema import INT64, Schema, Type
from kpg.errors import KpgError, SchemaMismatch

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from kpg.spark.row_pusher import RowKind
    from kpg.spark.site import RelationPlacement

TIME, DIFF = "_time", "_diff"
AS_TEXT = ("uuid", "interval")  # kinds of columns that are text in Spark


def spark_schema(schema: Schema, changes: bool = False) -> StructType:
    """Return the Spark columns of a relation, followed by those of a change on request."""
    from pyspark.sql.pandas.types import from_arrow_schema

    columns = with_change(schema) if changes else schema
    return from_arrow_schema(pa.schema([
        pa.field(name, spark_arrow(type_), nullable=type_.nullable)
        for name, type_ in zip(columns.names, columns.types, strict=True)
    ]))  # fmt: skip


def spark_arrow(type_: Type) -> pa.DataType:
    """Return the Arrow type of a column in Spark, which has neither identifiers nor intervals of three counts."""
    return pa.string() if type_.kind in AS_TEXT else type_.to_arrow()


def spark_column(type_: Type, column: Any, target: pa.DataType) -> Any:
    """Return a decoded column as Spark takes it."""
    if type_.kind not in AS_TEXT:
        return column.cast(target)
    values = type_.definition.arrow_to_list(type_, column)
    return pa.array([None if value is None else str(value) for value in values], target)


def accepts(expected: Type, actual: Type) -> bool:
    """Return whether a column of a relation accepts a column of a DataFrame."""
    if expected.kind in AS_TEXT:
        return actual.kind == "string"
    naive = expected.kind == "timestamp_ntz" and actual.kind == "timestamp"  # Arrow has the zone in its type
    return naive or (expected.kind == "jsonb" and actual.kind == "string") or expected.same(actual)


def with_change(schema: Schema) -> Schema:
    """Return the columns of a relation, and the time and diff of an update."""
    return schema.concat(Schema.of({TIME: INT64, DIFF: INT64}))


def kpg_schema(struct: StructType, key: tuple[str, ...] = ()) -> Schema:
    """Return the columns of a relation that holds a DataFrame; those of the key have no nulls."""
    from pyspark.sql.pandas.types import to_arrow_schema

    try:
        arrow = to_arrow_schema(struct, timezone="UTC")
    except TypeError:
        arrow = to_arrow_schema(struct)
    columns: dict[str, Any] = {}
    for item in arrow:
        try:
            columns[item.name] = Schema.from_arrow(pa.schema([item])).types[0]
        except KpgError as error:
            raise SchemaMismatch(
                f"column {item.name!r} has a type that kpg does not support", detail=error.what, hint="Cast or drop it."
            ) from None
    return Schema.of({name: type_.optional(type_.nullable and name not in key) for name, type_ in columns.items()})


def check_fits(placement: RelationPlacement, kind: RowKind, struct: StructType) -> None:
    """Refuse rows with other columns than a relation; nulls are checked row by row, later."""
    if not placement.writable:
        raise SchemaMismatch(f"{placement.name} is an answer; rows go into relations")
    expected, actual = kind.columns(placement), kpg_schema(struct)
    lacks = [name for name in expected.names if name not in actual.positions]
    unknown = [name for name in actual.names if name not in expected.positions]
    other = [
        f"{name} is {actual.type_of(name)}, not {expected.type_of(name)}"
        for name in expected.names
        if name in actual.positions and not accepts(expected.type_of(name), actual.type_of(name))
    ]
    faults = [f"lacks {', '.join(lacks)}"] * bool(lacks) + [f"has unknown {', '.join(unknown)}"] * bool(unknown) + other
    if faults:
        raise SchemaMismatch(
            f"rows do not fit {placement.name}: {'; '.join(faults)}",
            detail=f"The columns are {expected!r}.",
            hint="Select, rename or cast columns.",
        )
