"""Schemas of Spark and of kpg: conversion of types, and a check that rows fit a relation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kpg.columns.schema import INT64, Schema
from kpg.errors import KpgError, SchemaMismatch

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from kpg.spark.row_pusher import RowKind
    from kpg.spark.site import RelationPlacement

TIME, DIFF = "_time", "_diff"


def spark_schema(schema: Schema, changes: bool = False) -> StructType:
    """Return the Spark columns of a relation, followed by those of a change on request."""
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(with_change(schema).to_arrow() if changes else schema.to_arrow())


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
        if name in actual.positions and not expected.type_of(name).same(actual.type_of(name))
    ]
    faults = [f"lacks {', '.join(lacks)}"] * bool(lacks) + [f"has unknown {', '.join(unknown)}"] * bool(unknown) + other
    if faults:
        raise SchemaMismatch(
            f"rows do not fit {placement.name}: {'; '.join(faults)}",
            detail=f"The columns are {expected!r}.",
            hint="Select, rename or cast columns.",
        )
