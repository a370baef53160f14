"""uuid, interval, time, timestamp_ntz, jsonb and arrays: values pass through lanes, Arrow, messages and plans."""

import datetime
import json
import uuid
from decimal import Decimal
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kpg
from kpg import Interval, col
from kpg.columns.bind import bind
from kpg.columns.column_types.jsonb_type import canonical_json
from kpg.columns.column_types.uuid_type import UNFIT_UUID
from kpg.columns.decode_column import decode_list
from kpg.columns.schema import Schema, array_of, parse_type
from kpg.columns.symbols import Symbols
from kpg.columns.table_rows import decode, decode_rows, encode
from kpg.errors import SchemaMismatch, TypeMismatch
from kpg.plan import plan_values
from kpg.protocol import value_codec

UUIDS = st.sampled_from(
    [uuid.UUID(int=n) for n in (0, 1, 2**64 - 2, 2**64, 2**127, 2**128 - 1)]
) | st.uuids(allow_nil=True)  # fmt: skip
COUNTS = st.sampled_from([0, 1, -1, 2**31 - 1, -(2**31) + 1]) | st.integers(-50, 50)
MICROSECONDS = st.integers(-(10**7), 10**7) | st.sampled_from([9223372036854775, -9223372036854775])
INTERVALS = st.builds(Interval, COUNTS, COUNTS, MICROSECONDS)
TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=3)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=5,
)
ARRAYS: dict[str, st.SearchStrategy[Any]] = {
    "int64[]": st.integers(-(2**63) + 1, 2**63 - 1),
    "string[]": st.text(st.characters(exclude_categories=["Cs"]), max_size=3),
    "decimal(20,2)[]": st.integers(-(10**19), 10**19).map(lambda n: Decimal(f"{n}e-2")),
    "date[]": st.dates(),
    "uuid[]": UUIDS,
    "interval[]": INTERVALS,
    "float64[]": st.floats(allow_nan=False).map(lambda number: number + 0.0),
    "bool[][]": st.lists(st.none() | st.booleans(), max_size=3).map(tuple),
}
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "uuid": UUIDS,
    "interval": INTERVALS,
    "time": st.times(),
    "timestamp_ntz": st.datetimes(),
    "jsonb": JSON.map(canonical_json),
    **{name: st.lists(st.none() | element, max_size=3).map(tuple) for name, element in ARRAYS.items()},
}


@st.composite
def columns(draw: st.DrawFn) -> tuple[Schema, list[tuple[Any]]]:
    name = draw(st.sampled_from(sorted(VALUES)))
    values = VALUES[name]
    nullable = draw(st.booleans())
    rows = draw(st.lists(st.tuples(st.none() | values if nullable else values), max_size=5))
    return Schema.of({"x": parse_type(name).optional(nullable)}), rows


@given(columns())
def test_values_pass_through_lanes_and_arrow(column: tuple[Schema, list[tuple[Any]]]) -> None:
    schema, rows = column
    symbols = Symbols()
    data = encode(schema, rows, symbols)
    assert data.shape == (schema.width, len(rows)) and decode_rows(schema, data, symbols) == rows
    table = decode(schema, data, symbols)
    table.validate(full=True)
    assert table.schema.equals(schema.to_arrow())
    assert [(value,) for value in schema.types[0].definition.arrow_to_list(schema.types[0], table["x"])] == rows
    for source in (table, pa.concat_tables([table.slice(0, 2), table.slice(2)]), table.slice(0).to_reader(2)):
        assert decode_rows(schema, encode(schema, source, symbols), symbols) == rows
    if len(rows) > 1:
        assert decode_rows(schema, encode(schema, table.slice(1), symbols), symbols) == rows[1:]
    assert parse_type(str(schema.types[0])) == schema.types[0]


@given(columns())
def test_values_pass_through_messages_and_plans(column: tuple[Schema, list[tuple[Any]]]) -> None:
    schema, rows = column
    for (value,) in rows:
        sent = json.loads(json.dumps(value_codec.encode_value(value)))
        assert value_codec.decode_value(sent) == value
        if schema.types[0].kind != "array":
            assert plan_values.read_constant(json.loads(json.dumps(plan_values.write_constant(value)))) == value


@given(st.lists(UUIDS, max_size=6), st.lists(st.times() | st.none(), max_size=4))
def test_data_frames_hold_identifiers_and_times(identifiers: list[uuid.UUID], times: list[Any]) -> None:
    symbols = Symbols()
    ids, of_day = Schema.of({"x": "uuid"}), Schema.of({"x": "time?"})
    frame = pd.DataFrame({"x": pd.Series(identifiers, dtype=object)})
    assert decode_rows(ids, encode(ids, frame, symbols), symbols) == [(value,) for value in identifiers]
    series = pl.DataFrame({"x": pl.Series(times, dtype=pl.Time)})
    assert decode_rows(of_day, encode(of_day, series, symbols), symbols) == [(value,) for value in times]
    bytes_ = pa.array([value.bytes for value in identifiers], pa.binary(16))
    assert decode_rows(ids, encode(ids, {"x": bytes_}, symbols), symbols) == [(value,) for value in identifiers]


@given(st.lists(st.none() | UUIDS, max_size=8))
def test_identifiers_sort_in_lanes(values: list[Any]) -> None:
    lanes = encode(Schema.of({"x": "uuid?"}), [(value,) for value in values], Symbols())
    keys = dict(zip(zip(*lanes.tolist(), strict=True), values, strict=True))
    assert [keys[key] for key in sorted(keys)] == sorted(set(values), key=lambda value: (value is not None, value))


def test_the_one_identifier_without_lanes_is_refused() -> None:
    schema = Schema.of({"x": "uuid?"})
    with pytest.raises(SchemaMismatch, match="row 1"):
        encode(schema, [(None,), (UNFIT_UUID,)], Symbols())
    with pytest.raises(SchemaMismatch, match="row 1"):
        encode(schema, pa.table({"x": pa.array([None, UNFIT_UUID.bytes], pa.binary(16))}), Symbols())


@given(INTERVALS)
def test_an_interval_reads_what_it_prints(value: Interval) -> None:
    assert Interval.parse(str(value)) == value


@pytest.mark.parametrize(
    ("text", "value", "shown"),
    [
        ("1 year 2 mons 3 days 04:05:06.789", Interval(14, 3, 14706789000), "1 year 2 mons 3 days 04:05:06.789"),
        ("-1 year +3 days", Interval(-12, 3), "-1 years +3 days"),
        ("-1 mon 2 hours", Interval(-1, 0, 7200000000), "-1 mons +02:00:00"),
        ("1 week 90 min", Interval(0, 7, 5400000000), "7 days 01:30:00"),
        ("-00:00:00.5", Interval(0, 0, -500000), "-00:00:00.5"),
        ("2 days ago", Interval(0, -2), "-2 days"),
        ("0 days", Interval(), "00:00:00"),
        ("1.5 hours", Interval(0, 0, 5400000000), "01:30:00"),
        ("0.5 months", Interval(0, 15), "15 days"),
        ("P1Y2DT3S", Interval(12, 2, 3000000), "1 year 2 days 00:00:03"),
    ],
)
def test_intervals_print_as_in_postgresql(text: str, value: Interval, shown: str) -> None:
    assert Interval.parse(text) == value and str(value) == shown


@pytest.mark.parametrize("text", ["", "1 fortnight", "x day", "1 day x", "1:99", "P1"])
def test_other_text_is_no_interval(text: str) -> None:
    with pytest.raises(ValueError):
        Interval.parse(text)


def evaluate(expression: Any, schema: Schema, rows: list[tuple[Any, ...]]) -> list[Any]:
    symbols = Symbols()
    bound = bind(expression, schema, symbols)
    result = bound.evaluate(encode(schema, rows, symbols))
    assert result.failed is None
    return decode_list(bound.type, result.values, symbols)


@given(st.lists(st.tuples(INTERVALS, st.none() | INTERVALS), min_size=1, max_size=5))
def test_intervals_compare_by_their_span(rows: list[tuple[Interval, Any]]) -> None:
    schema = Schema.of({"a": "interval", "b": "interval?"})
    assert evaluate(kpg.interval_span(col("a")), schema, rows) == [Decimal(a.span) for a, _ in rows]
    spans = [(a.span, None if b is None else b.span) for a, b in rows]
    assert evaluate(col("a") < col("b"), schema, rows) == [None if b is None else a < b for a, b in spans]
    assert evaluate(col("a") == col("b"), schema, rows) == [None if b is None else a == b for a, b in spans]
    largest = evaluate(kpg.max_of(col("a"), col("b")), schema, rows)
    assert largest == [None if b is None else a if a.span >= b.span else b for a, b in rows]
    for part in ("months", "days", "microseconds"):
        assert evaluate(kpg.interval_part(col("a"), part), schema, rows) == [getattr(a, part) for a, _ in rows]
    parts = [kpg.interval_part(col("b"), part) for part in ("months", "days", "microseconds")]
    assert evaluate(kpg.make_interval(*parts), schema, rows) == [b for _, b in rows]
    assert evaluate(col("a").cast(str).cast("interval"), schema, rows) == [a for a, _ in rows]
    assert evaluate(col("a") == datetime.timedelta(days=30), schema, [(Interval(1), None)]) == [True]


def test_intervals_are_not_ordered_by_their_counts() -> None:
    with kpg.open() as db:
        relation = db.input("r", x=int, i=Interval)
        with pytest.raises(TypeMismatch, match="rows cannot be ordered by i"):
            relation.group_by("x").min("i").output()


@given(JSON)
def test_json_has_one_form(value: Any) -> None:
    text = canonical_json(value)
    assert canonical_json(json.loads(text)) == text
    assert json.loads(text) == value or isinstance(value, (float, list, dict))
    first, second = encode(Schema.of({"x": "jsonb"}), [(json.dumps(value),), (text,)], Symbols())[0]
    assert first == second


def test_json_is_printed_as_in_postgresql() -> None:
    text = '{"bb": 1, "a": [1.50, 1e2, {"x": null}], "c": "\\u00e9\\n", "a": [1.5, 100, {"x": null}]}'
    rows = encode(schema := Schema.of({"x": "jsonb"}), [(text,)], symbols := Symbols())
    assert decode_rows(schema, rows, symbols) == [('{"a": [1.5, 100, {"x": null}], "c": "é\\n", "bb": 1}',)]


@pytest.mark.parametrize("value", ["{", "nan", "[1,]", {1: 2}, {"x": b""}, '"\\u0000"'])
def test_other_text_is_no_json(value: Any) -> None:
    with pytest.raises(SchemaMismatch):
        encode(Schema.of({"x": "jsonb"}), [(value,)], Symbols())


def test_json_and_arrays_have_no_order() -> None:
    schema = Schema.of({"a": "jsonb", "b": array_of(int)})
    for name in ("a", "b"):
        with pytest.raises(TypeMismatch, match="'<' does not fit"):
            bind(col(name) < col(name), schema, Symbols())
        bind(col(name) == col(name), schema, Symbols())


@given(st.lists(st.tuples(st.datetimes(), st.times()), min_size=1, max_size=4))
def test_timestamps_without_a_zone_shift_and_split(rows: list[tuple[datetime.datetime, datetime.time]]) -> None:
    schema = Schema.of({"t": "timestamp_ntz", "c": "time"})
    assert evaluate(col("t").cast("time"), schema, rows) == [t.time() for t, _ in rows]
    assert evaluate(col("t").cast("date"), schema, rows) == [t.date() for t, _ in rows]
    assert evaluate(col("t").dt.hour(), schema, rows) == [t.hour for t, _ in rows]
    assert evaluate(col("c").dt.minute(), schema, rows) == [c.minute for _, c in rows]
    assert evaluate(col("t").cast(str).cast("timestamp_ntz"), schema, rows) == [t for t, _ in rows]
    assert evaluate(col("t") - col("t"), schema, rows) == [0] * len(rows)
    moments = [t.replace(tzinfo=datetime.UTC) for t, _ in rows]
    assert evaluate(col("t").cast("timestamp"), schema, rows) == moments


def test_a_timestamp_without_a_zone_refuses_one_with_a_zone() -> None:
    with pytest.raises(SchemaMismatch, match="row 0"):
        encode(Schema.of({"x": "timestamp_ntz"}), [(datetime.datetime.now(datetime.UTC),)], Symbols())


def test_an_array_of_another_type_is_refused() -> None:
    with pytest.raises(SchemaMismatch, match="row 0"):
        encode(Schema.of({"x": "int64[]"}), [(["a"],)], Symbols())
    with pytest.raises(TypeMismatch):
        parse_type("array")
