"""Types are what users write for them, and schemas say what is wrong with a name."""

import datetime
import decimal as decimals
from typing import Optional

import pyarrow as pa
import pytest
from hypothesis import given

from kpg.columns.schema import BINARY, BOOL, DATE, FLOAT64, INT64, STRING, TIMESTAMP, Schema, Type, decimal, parse_type
from kpg.errors import BadPlan, TypeMismatch, UndefinedName
from tests.columns.generated_rows import TYPES


@pytest.mark.parametrize(
    ("spec", "type_"),
    [
        (int, INT64),
        (float, FLOAT64),
        (bool, BOOL),
        (str, STRING),
        (bytes, BINARY),
        (datetime.date, DATE),
        (datetime.datetime, TIMESTAMP),
        (int | None, INT64.optional()),
        (Optional[str], STRING.optional()),  # noqa: UP045
        ("int64", INT64),
        ("string?", STRING.optional()),
        (" decimal( 10 , 2 ) ? ", decimal(10, 2).optional()),
        ("decimal(7)", decimal(7)),
        (decimal(3, 1), decimal(3, 1)),
        (pa.int8(), INT64),
        (pa.uint32(), INT64),
        (pa.float32(), FLOAT64),
        (pa.large_string(), STRING),
        (pa.string_view(), STRING),
        (pa.dictionary(pa.int32(), pa.string()), STRING),
        (pa.binary(4), BINARY),
        (pa.date64(), DATE),
        (pa.timestamp("ns", tz="Europe/Berlin"), TIMESTAMP),
        (pa.decimal128(12, 3), decimal(12, 3)),
        (pa.field("x", pa.bool_()), BOOL.optional()),
        (pa.field("x", pa.bool_(), nullable=False), BOOL),
    ],
)
def test_every_spelling_of_a_type_is_understood(spec: object, type_: Type) -> None:
    assert parse_type(spec) == type_


@given(TYPES)
def test_a_type_is_read_back_from_its_name_and_from_arrow(type_: Type) -> None:
    assert parse_type(str(type_)) == type_
    assert parse_type(pa.field("x", type_.to_arrow(), nullable=type_.nullable)) == type_


@pytest.mark.parametrize(
    "spec",
    [
        *("int65", "decimal", "decimal(39,2)", "decimal(2,3)", "decimal(0,0)", "", "int64??"),
        *(complex, list[int], int | str, int | str | None, decimals.Decimal, 7, None, [int]),
        *(pa.list_(pa.int64()), pa.decimal256(39, 2), pa.decimal128(5, -2), pa.duration("s")),
    ],
)
def test_a_value_that_is_no_type_is_refused(spec: object) -> None:
    with pytest.raises(TypeMismatch):
        parse_type(spec)


def test_an_unknown_column_is_named_with_the_nearest_one() -> None:
    schema = Schema.of({"name": str, "age": int | None})
    with pytest.raises(UndefinedName) as caught:
        schema.index("nmae")
    assert "'nmae'" in caught.value.what
    assert caught.value.hint == "Did you mean 'name'?"
    assert "age: int64?" in str(caught.value)


def test_columns_are_selected_renamed_and_concatenated() -> None:
    schema = Schema.of([("a", int), ("b", "string?"), ("c", "decimal(4,1)")])
    assert repr(schema) == "(a: int64, b: string?, c: decimal(4,1))"
    assert schema.select(["c", "a"]) == Schema.of({"c": "decimal(4,1)", "a": int})
    assert schema.rename({"a": "x"}).names == ("x", "b", "c")
    assert schema.concat(Schema.of({"d": bool})).names == ("a", "b", "c", "d")
    assert len(schema) == 3 and schema.index("b") == 1 and schema.type_of("b") == STRING.optional()
    assert Schema.from_arrow(schema.to_arrow()) == schema
    assert hash(schema.select(["a", "b"])) == hash(Schema.of({"a": int, "b": "string?"}))


def test_repeated_and_invalid_column_names_are_refused() -> None:
    schema = Schema.of({"a": int})
    with pytest.raises(BadPlan, match="two columns are called 'a'"):
        schema.concat(schema)
    with pytest.raises(BadPlan, match="two columns"):
        Schema.of({"a": int, "b": int}).rename({"a": "b"})
    with pytest.raises(BadPlan):
        Schema.of({"": int})
    with pytest.raises(BadPlan):
        Schema((5,), (INT64,))  # type: ignore[arg-type]
    with pytest.raises(BadPlan):
        Schema(("a",), ())
    with pytest.raises(UndefinedName):
        schema.rename({"b": "c"})
