"""Columns of every type as Spark has them, without a running Spark."""

import datetime
import uuid
from decimal import Decimal

import pytest

import kpg
from kpg.columns.schema import Schema
from kpg.columns.symbols import Symbols
from kpg.columns.table_rows import decode_rows, encode

pytest.importorskip("pyspark")

SCHEMA = Schema.of({
    "w": "decimal(38,2)", "u": "uuid?", "i": "interval?", "c": "time", "l": "timestamp_ntz", "j": "jsonb", "n": int,
})  # fmt: skip
ROWS = [
    (Decimal(10**35), uuid.UUID(int=7), kpg.Interval(1, 2, 3), datetime.time(1), datetime.datetime(2024, 5, 1), "1", 1),
    (Decimal("-0.01"), None, None, datetime.time(2), datetime.datetime(1970, 1, 1), "null", 2),
]


def test_rows_pass_through_the_columns_of_spark() -> None:
    from kpg.spark.batch_reader import as_batches
    from kpg.spark.schemas import accepts, kpg_schema, spark_schema

    symbols = Symbols()
    struct = spark_schema(SCHEMA)
    assert struct.simpleString() == (
        "struct<w:decimal(38,2),u:string,i:string,c:time(6),l:timestamp_ntz,j:string,n:bigint>"
    )
    assert all(map(accepts, SCHEMA.types, kpg_schema(struct).types))
    (batch,) = as_batches(SCHEMA, encode(SCHEMA, ROWS, symbols), symbols)
    assert batch.column("u").to_pylist() == ["00000000-0000-0000-0000-000000000007", None]
    assert decode_rows(SCHEMA, encode(SCHEMA, batch, symbols), symbols) == ROWS
