"""Values that do not fit are refused, with column, row and hint; kpg never rounds, truncates or guesses."""

import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from kpg.columns.lane_values import NULL
from kpg.columns.schema import Schema
from kpg.columns.symbols import Symbols
from kpg.columns.table_rows import encode
from kpg.errors import SchemaMismatch

NOT_UTF8 = pa.Array.from_buffers(
    pa.string(), 2, [None, pa.py_buffer(np.array([0, 1, 3], np.int32).tobytes()), pa.py_buffer(b"a\xff\xfe")]
)
MOMENT = datetime.datetime(2020, 1, 1)


@pytest.mark.parametrize(
    ("spec", "column", "row"),
    [
        ("int64", [1, None], 1),
        ("int64", [1, "2"], 1),
        ("int64", [1, 2.0], 1),
        ("int64", [1, True], 1),
        ("int64", [1, 2**63], 1),
        ("int64", [1, -(2**63) - 1], 1),
        ("int64?", [1, None, -(2**63)], 2),
        ("int64?", pa.array([1, None, -(2**63)]), 2),
        ("int64", pa.array([1, None]), 1),
        ("int64", pa.chunked_array([[1, 2], [3, None]]), 3),
        ("int64", pa.array([1, 2**63], pa.uint64()), 1),
        ("int64", np.array([1, 2**63], np.uint64), 1),
        ("int64?", np.array([1, -(2**63)]), 1),
        ("float64", [1.0, "x"], 1),
        ("float64", [1.0, 2**53 + 1], 1),
        ("float64", pa.array([1, 2**53 + 1]), 1),
        ("float64", [1.0, Decimal(1)], 1),
        ("float64", [1.0, True], 1),
        ("bool", [True, 1], 1),
        ("bool", [True, None], 1),
        ("string", ["a", b"a"], 1),
        ("string", ["a", "\ud800"], 1),
        ("string", ["a", 1], 1),
        ("string?", ["a", None, 1], 2),
        ("string", ["a", None], 1),
        ("string", NOT_UTF8, 1),
        ("string", pa.chunked_array([pa.array(["x"]), NOT_UTF8]), 2),
        ("string", pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(["a", None])), 1),
        ("binary", [b"a", "a"], 1),
        ("date", [datetime.date(2020, 1, 1), MOMENT], 1),
        ("date", [datetime.date(2020, 1, 1), "2020-01-01"], 1),
        ("date", pa.array([0, 2**30], pa.int32()).cast(pa.date32()), 1),
        ("timestamp", [MOMENT, datetime.date(2020, 1, 1)], 1),
        ("timestamp", [MOMENT, pd.Timestamp(2020, 1, 1, nanosecond=1)], 1),
        ("timestamp", [MOMENT, np.datetime64("2020-01-01T00:00:00.000000001")], 1),
        ("timestamp", [MOMENT, np.datetime64(10**15, "s")], 1),
        ("timestamp", pa.array([1000, 1], pa.timestamp("ns")), 1),
        ("timestamp", pa.array([0, 2**62], pa.timestamp("s")), 1),
        ("timestamp", pa.array([0, 2**62], pa.timestamp("us")), 1),
        ("timestamp", np.array([1000, 1], "M8[ns]"), 1),
        ("timestamp", [MOMENT, np.datetime64("NaT")], 1),
        ("decimal(4,2)", [Decimal("1"), Decimal("1.001")], 1),
        ("decimal(4,2)", [Decimal("1"), Decimal("100")], 1),
        ("decimal(4,2)", [1, 100], 1),
        ("decimal(4,2)", [1, 1.5], 1),
        ("decimal(4,2)", [1, Decimal("NaN")], 1),
        ("decimal(4,2)", [1, Decimal("Infinity")], 1),
        ("decimal(4,2)", [1, Decimal("1E+999999")], 1),
        ("decimal(4,2)", [1, Decimal("1E-999999")], 1),
        ("decimal(4,2)", pa.array([Decimal("1"), Decimal("100")]), 1),
        ("decimal(4,2)", pa.array([Decimal("1.000"), Decimal("1.001")]), 1),
        ("decimal(18,0)", pa.array([Decimal(1), Decimal(10**30)]), 1),
        ("decimal(18,2)", pa.array([1, 2**62]), 1),
    ],
)
def test_a_value_that_does_not_fit_is_refused_with_its_row(spec: str, column: object, row: int) -> None:
    schema = Schema.of({"other": int, "x": spec})
    with pytest.raises(SchemaMismatch) as caught:
        encode(schema, {"other": range(len(column)), "x": column}, Symbols())  # type: ignore[arg-type]
    assert caught.value.what == f"column 'x' cannot hold the value in row {row}"
    assert caught.value.detail and caught.value.detail[0].isupper() or caught.value.detail[0] in "'\"b-0123456789"


@pytest.mark.parametrize(
    ("spec", "column"),
    [
        ("int64", pa.array([1.0])),
        ("int64", pa.array(["1"])),
        ("int64", np.array([1.0])),
        ("int64", np.array([True])),
        ("int64", np.array([1j])),
        ("int64", np.array([1], "m8[s]")),
        ("int64", pd.Series([1.0])),
        ("int64", pl.Series(["1"])),
        ("float64", pa.array([Decimal(1)])),
        ("float64", np.array([1.0], np.longdouble)),
        ("bool", pa.array([1])),
        ("string", pa.array([b"a"])),
        ("string", pa.array([1])),
        ("string", pa.array([[1]])),
        ("binary", pa.array(["a"])),
        ("date", pa.array([1])),
        ("date", pa.array([MOMENT])),
        ("timestamp", pa.array([datetime.date(2020, 1, 1)])),
        ("decimal(4,2)", pa.array([1.0])),
    ],
)
def test_a_column_of_another_type_is_refused_by_name(spec: str, column: object) -> None:
    with pytest.raises(SchemaMismatch, match=r"column 'x' is .*, not ") as caught:
        encode(Schema.of({"x": spec}), {"x": column}, Symbols())
    assert caught.value.hint and "ast" in caught.value.hint


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ([(1,)], "row 0 has 1 values, not 2"),
        ([(1, 2), (1, 2, 3)], "row 1 has 3 values, not 2"),
        ([(1, 2), 3], "row 1 is int, not tuple"),
        ([(1, 2), None], "row 1 is NoneType, not tuple"),
        ([(1, 2), {"a": 1, "b": 2}], "row 1 is dict, not tuple"),
        ([{"a": 1, "b": 2}, (1, 2)], "row 1 is tuple, not dict like the first"),
        ([{"a": 1, "b": 2}, {"a": 1}], "row 1 lacks 'b'"),
        ([{"a": 1, "B": 2}], "row 0 lacks 'b' and has unknown 'B'"),
        ([1, 2], "row 0 is int, not tuple"),
        ([b"12", b"34"], "row 0 is bytes, not tuple"),
        (["ab"], "row 0 is str, not tuple"),
        ([{1, 2}], "row 0 is set, not tuple"),
        (5, "cannot read rows from int"),
        (None, "cannot read rows from NoneType"),
        ("ab", "cannot read rows from str"),
        ({"a": [1]}, "the dict of columns lacks 'b'"),
        ({"a": [1], "b": [1, 2]}, "the columns have different lengths"),
        ({"a": 1, "b": 2}, "column 'a' is int, not a column of values"),
        ({"a": "x", "b": [1]}, "column 'a' is str, not a column of values"),
        ({"a": [1], "b": np.zeros((1, 1))}, "column 'b' has 2 dimensions, not one"),
        (pa.table({"a": [1], "c": [2]}), "the table lacks 'b' and has unknown 'c'"),
        (pa.table({"a": [1], "b": [2], "c": [3]}), "the table has unknown 'c'"),
        (pa.table([[1], [2], [3]], names=["a", "b", "b"]), "the table repeats 'b'"),
        (pl.DataFrame({"a": [1]}), "the table lacks 'b'"),
        (pd.DataFrame({"a": [1]}), "the frame lacks 'b'"),
        (pd.DataFrame([[1, 2, 3]]), "the frame has 3 columns, not 2"),
        (np.zeros((2, 3), np.int64), "an array of shape (2, 3) is not rows of 2 columns"),
        (np.zeros(2, np.int64), "an array of shape (2,) is not rows of 2 columns"),
        (np.zeros(2, [("a", int)]), "the array lacks 'b'"),
        (pa.array([1]), "one column cannot fill 2 columns"),
    ],
)
def test_rows_of_another_shape_are_refused(rows: object, says: str) -> None:
    with pytest.raises(SchemaMismatch) as caught:
        encode(Schema.of({"a": int, "b": int}), rows, Symbols())
    assert caught.value.what == says


def test_the_reserved_number_and_null_come_with_a_hint() -> None:
    with pytest.raises(SchemaMismatch) as caught:
        encode(Schema.of({"x": "int64?"}), [NULL], Symbols())
    assert "stands for null" in str(caught.value.hint)
    with pytest.raises(SchemaMismatch) as caught:
        encode(Schema.of({"x": str}), [None], Symbols())
    assert "string?" in str(caught.value.hint)
    with pytest.raises(SchemaMismatch) as caught:
        encode(Schema.of({"x": "decimal(4,1)"}), [Decimal("1.25")], Symbols())
    assert "Round it first" in str(caught.value.hint)


def test_a_text_of_ten_megabytes_is_stored_and_not_printed_in_errors() -> None:
    symbols, schema = Symbols(), Schema.of({"x": str})
    long = "x" * 10_000_000
    assert symbols.values(encode(schema, [long, "y"], symbols)[0]) == [long, "y"]
    with pytest.raises(SchemaMismatch) as caught:
        encode(schema, [long.encode()], symbols)
    assert len(str(caught.value)) < 500


def test_floats_that_pandas_made_of_integers_must_be_whole() -> None:
    with pytest.raises(SchemaMismatch, match="not whole numbers"):
        encode(Schema.of({"x": "int64?"}), pd.DataFrame({"x": [1.5, None]}), Symbols())
