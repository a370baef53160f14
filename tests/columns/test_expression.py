"""Expressions against what they mean for one row in plain Python."""

import datetime
import math
from decimal import ROUND_HALF_UP, Context, Decimal, localcontext
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpg.columns.bind import bind, bind_condition
from kpg.columns.decode_column import decode_list
from kpg.columns.functions import coalesce, col, lit, max_of, min_of, when
from kpg.columns.lane_values import is_null
from kpg.columns.schema import Schema, decimal
from kpg.columns.symbols import Symbols
from kpg.columns.table_rows import encode
from tests.columns.generated_rows import canonical
from tests.columns.row_interpreter import LOWEST, ROWS, SCHEMA, TERMS, Fails, Term


def evaluate(expression: object, schema: Schema, rows: list) -> list[Any]:
    """Return the value of each row, or Fails for a failed row."""
    symbols = Symbols()
    data = encode(schema, rows, symbols)
    bound = bind(expression, schema, symbols)
    result = bound.evaluate(data)
    assert result.values.shape[-1] == len(rows) and result.values.dtype == np.int64
    assert result.values.flags.c_contiguous
    ok = np.ones(len(rows), bool) if result.failed is None else ~result.failed
    assert bound.fallible or ok.all()
    if not bound.type.nullable and bound.type.kind != "int64":
        assert not is_null(result.values[..., ok]).any()
    values = iter(decode_list(bound.type, result.values[..., ok], symbols))
    for row in np.flatnonzero(~ok):
        assert len(result.reason(int(row))) > 5
    return [next(values) if fine else Fails for fine in ok]


@pytest.mark.parametrize("kind", sorted(TERMS))
@given(st.data())
def test_an_expression_gives_each_row_the_value_of_plain_python(kind: str, data: st.DataObject) -> None:
    term: Term = data.draw(TERMS[kind])
    rows = data.draw(ROWS)
    expected = []
    for row in rows:
        try:
            expected.append(term.means(row))
        except Fails:
            expected.append(Fails)
    actual = evaluate(term.written, SCHEMA, rows)
    assert list(map(canonical, actual)) == list(map(canonical, expected)), term.written
    symbols = Symbols()
    assert bind(term.written, SCHEMA, symbols).type.kind == kind
    assert repr(term.written) and term.written.structure() == term.written.structure()


@given(st.data())
def test_how_rows_are_batched_does_not_change_their_values(data: st.DataObject) -> None:
    """An expression of a batch is the expression of its parts, one after another."""
    term = data.draw(TERMS[data.draw(st.sampled_from(sorted(TERMS)))])
    rows = data.draw(ROWS)
    cut = data.draw(st.integers(0, len(rows)))
    whole = evaluate(term.written, SCHEMA, rows)
    parts = evaluate(term.written, SCHEMA, rows[:cut]) + evaluate(term.written, SCHEMA, rows[cut:])
    assert list(map(canonical, whole)) == list(map(canonical, parts))


INTS = Schema.of({"a": int, "b": int, "n": "int64?"})
ENDS = [LOWEST, LOWEST + 1, -(2**62), -(2**32), -3, -1, 0, 1, 2, 2**31, 2**32 + 1, 2**62, 2**63 - 1]


@pytest.mark.parametrize("op", ["+", "-", "*", "//", "%"])
def test_overflow_is_detected_at_every_pair_of_limits(op: str) -> None:
    rows = [(a, b, None) for a in ENDS for b in ENDS]
    operators = {
        "+": lambda a, b: a + b,
        "-": lambda a, b: a - b,
        "*": lambda a, b: a * b,
        "//": lambda a, b: a // b,
        "%": lambda a, b: a % b,
    }
    function = operators[op]

    def expected(a: int, b: int) -> Any:
        try:
            value = function(a, b)
        except ZeroDivisionError:
            return Fails
        return value if LOWEST <= value < 2**63 else Fails

    assert evaluate(function(col("a"), col("b")), INTS, rows) == [expected(a, b) for a, b, _ in rows]
    for b in ENDS:
        assert evaluate(function(col("a"), b), INTS, rows) == [expected(a, b) for a, _, _ in rows]
        assert evaluate(function(b, col("a")), INTS, rows) == [expected(b, a) for a, _, _ in rows]
        few = [(a, 0, None) for a in ENDS if abs(a) < 2**40]
        assert evaluate(function(col("a"), b), INTS, few) == [expected(a, b) for a, _, _ in few]


MONEY = Schema.of({"x": "decimal(9,2)", "y": "decimal(5,3)", "z": "decimal(18,0)", "i": int, "w": "decimal(18,18)?"})


@given(
    st.lists(
        st.tuples(
            st.integers(-(10**9) + 1, 10**9 - 1).map(lambda n: Decimal(n).scaleb(-2)),
            st.integers(-(10**5) + 1, 10**5 - 1).map(lambda n: Decimal(n).scaleb(-3)),
            st.integers(-(10**18) + 1, 10**18 - 1).map(Decimal) | st.integers(-5, 5).map(Decimal),
            st.integers(-(2**63), 2**63 - 1) | st.integers(-5, 5),
            st.none() | st.integers(-(10**18) + 1, 10**18 - 1).map(lambda n: Decimal(n).scaleb(-18)),
        ),
        max_size=5,
    )
)
def test_decimals_are_exact_or_fail(rows: list) -> None:
    def fits(value: Decimal, digits: int, scale: int) -> Any:
        scaled = int(value.scaleb(scale))
        return value if abs(scaled) < 10**digits else Fails

    cases = [
        (col("x") + col("y"), decimal(11, 3), lambda r: r[0] + r[1]),
        (col("x") - col("y"), decimal(11, 3), lambda r: r[0] - r[1]),
        (col("x") * col("y"), decimal(14, 5), lambda r: r[0] * r[1]),
        (col("x") * 2, decimal(10, 2), lambda r: r[0] * 2),
        (2 + col("x"), decimal(10, 2), lambda r: r[0] + 2),
        (col("z") + col("z"), decimal(19, 0), lambda r: r[2] + r[2]),
        (col("z") * col("z"), decimal(36, 0), lambda r: r[2] * r[2]),
        (col("z") - col("x"), decimal(21, 2), lambda r: r[2] - r[0]),
        (-col("x"), decimal(9, 2), lambda r: -r[0]),
        (col("x").abs(), decimal(9, 2), lambda r: abs(r[0])),
        (col("i").cast("decimal(18,2)"), decimal(18, 2), lambda r: Decimal(r[3])),
        (min_of(col("x"), col("y")), decimal(10, 3), lambda r: min(r[0], r[1])),
        (max_of(col("x"), Decimal("1.5")), decimal(9, 2), lambda r: max(r[0], Decimal("1.5"))),
        (when(col("i") > 0, col("x")).otherwise(col("y")), decimal(10, 3), lambda r: r[0] if r[3] > 0 else r[1]),
        (coalesce(col("w"), 0), decimal(18, 18), lambda r: r[4] or Decimal(0)),
    ]
    for expression, type_, means in cases:
        assert bind(expression, MONEY, Symbols()).type == type_, expression
        with localcontext(Context(prec=60)):
            expected = [fits(means(row), type_.precision, type_.scale) for row in rows]
        assert evaluate(expression, MONEY, rows) == expected, expression
    for row in rows:
        assert evaluate(col("z") < col("w"), MONEY, [row]) == [None if row[4] is None else row[2] < row[4]]
        assert evaluate(col("x") == col("y"), MONEY, [row]) == [row[0] == row[1]]
        assert evaluate(col("x") > Decimal("1.005"), MONEY, [row]) == [row[0] > Decimal("1.005")]
        assert evaluate(col("i") >= Decimal("0.5"), MONEY, [row]) == [row[3] >= Decimal("0.5")]
        assert evaluate(col("z") != 3, MONEY, [row]) == [row[2] != 3]
        for expression, scale in ((col("y").cast("decimal(5,1)"), 1), (col("x").cast("decimal(9,0)"), 0)):
            given_value = row[1] if scale else row[0]
            rounded = given_value.quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP)
            assert evaluate(expression, MONEY, [row]) == [rounded]
        assert evaluate(col("y").cast(int), MONEY, [row]) == [math.trunc(row[1])]
        assert evaluate(col("y").cast(float), MONEY, [row]) == [float(row[1])]
        assert evaluate(col("x").cast(str).cast("decimal(9,2)"), MONEY, [row]) == [row[0]]


DAY = datetime.date(2020, 2, 29)
NOON = datetime.datetime(2020, 2, 29, 12, 30, 45, 678, tzinfo=datetime.UTC)
TIMES = Schema.of({"d": "date", "t": "timestamp", "n": "timestamp?", "i": int})


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        (col("d") + 1, datetime.date(2020, 3, 1)),
        (1 + col("d"), datetime.date(2020, 3, 1)),
        (col("d") - col("i"), datetime.date(2020, 2, 22)),
        (col("d") + datetime.timedelta(days=-1), datetime.date(2020, 2, 28)),
        (col("t") + datetime.timedelta(hours=1), NOON + datetime.timedelta(hours=1)),
        (col("t") - col("i"), NOON - datetime.timedelta(microseconds=7)),
        (col("t") - NOON, 0),
        (col("t") - datetime.datetime(2020, 2, 29) > datetime.timedelta(hours=12), True),
        (col("d") - datetime.date(2020, 1, 1), 59),
        (col("n") + 1, None),
        (col("d") + None, None),
        (col("n") - col("t"), None),
        (col("t").dt.hour() * 10000 + col("t").dt.minute() * 100 + col("t").dt.second(), 123045),
        (col("t").dt.year() * 10000 + col("t").dt.month() * 100 + col("t").dt.day(), 20200229),
        (col("t").dt.weekday(), 5),
        (col("n").dt.year(), None),
        (col("t").cast("date"), DAY),
        (col("d").cast("timestamp"), datetime.datetime(2020, 2, 29, tzinfo=datetime.UTC)),
        (col("t").cast(str), "2020-02-29T12:30:45.000678+00:00"),
        (lit("2020-02-29T13:30:45.000678+01:00").cast("timestamp") == col("t"), True),
        (lit("2020-02-29").cast("date") == col("d"), True),
        (lit("29.2.2020").cast("date"), Fails),
        (col("d") + 10**9, Fails),
        (col("d") + (2**63 - 1), Fails),
        (col("t") - 2**62, Fails),
    ],
)
def test_dates_and_timestamps_are_shifted_and_have_parts(expression: object, value: object) -> None:
    assert evaluate(expression, TIMES, [(DAY, NOON, None, 7)]) == [value]


CASTS = Schema.of({"f": float, "s": str, "b": bool, "y": bytes, "n": "string?"})


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        (col("f").cast(int), -1),
        (col("f").cast("decimal(4,1)"), Decimal("-1.8")),
        (col("f").cast("decimal(1,0)"), Decimal("-2")),
        (lit(math.nan).cast(int), Fails),
        (lit(math.inf).cast("decimal(4,1)"), Fails),
        (lit(2.0**63).cast(int), Fails),
        (lit(-(2.0**63)).cast(int), LOWEST),
        (lit(-(2.0**63)).cast("int64?"), Fails),
        (lit(1000.0).cast("decimal(3,0)"), Fails),
        (col("s").cast(int), 12),
        (col("s").cast(float), 12.0),
        (col("s").cast("decimal(4,1)"), Decimal("12.0")),
        (lit("1.25").cast("decimal(4,1)"), Fails),
        (lit("1_000").cast(int), Fails),
        (lit("1_000").cast(float), Fails),
        (lit("x").cast(float), Fails),
        (lit("x").cast("decimal(4,1)"), Fails),
        (lit(str(2**63)).cast(int), Fails),
        (lit("TRUE").cast(bool), True),
        (lit("yes").cast(bool), Fails),
        (col("b").cast(int), 1),
        (col("b").cast(str), "true"),
        (lit(0).cast(bool), False),
        (col("f").cast(str), "-1.75"),
        (lit(Decimal("1.50")).cast(str), "1.50"),
        (col("y").cast(str), Fails),
        (col("s").cast(bytes), b"12"),
        (col("s").cast(bytes).cast(str), "12"),
        (col("n").cast(int), None),
        (col("n").cast(str).not_null(), Fails),
        (lit(None).cast("decimal(4,1)"), None),
        (col("y").str.length(), 2),
        (col("y") + b"x", b"\xff\xfex"),
    ],
)
def test_casts_give_the_counterpart_or_fail(expression: object, value: object) -> None:
    assert evaluate(expression, CASTS, [(-1.75, "12", True, b"\xff\xfe", None)]) == [value]


def test_choices_fail_only_where_the_chosen_value_failed() -> None:
    rows = [(6, 2, None), (6, 0, 1), (6, 3, None)]
    assert evaluate(when(col("b") != 0, col("a") // col("b")).otherwise(-1), INTS, rows) == [3, -1, 2]
    assert evaluate((col("b") != 0) & (col("a") // col("b") > 2), INTS, rows) == [True, False, False]
    assert evaluate((col("a") // col("b") > 2) & (col("b") != 0), INTS, rows) == [True, False, False]
    assert evaluate((col("b") == 0) | (col("a") // col("b") > 2), INTS, rows) == [True, True, False]
    assert evaluate(coalesce(col("n"), col("a") // col("b")), INTS, rows) == [3, 1, 2]
    assert evaluate(coalesce(col("n"), 10 // (col("a") - 6)), INTS, rows) == [Fails, 1, Fails]
    steps = when(col("b") == 0, "zero").when(col("b") == 2, "two").otherwise("more")
    assert evaluate(steps, INTS, rows) == ["two", "zero", "more"]
    assert evaluate(when(col("n") > 0, 1).otherwise(0), INTS, rows) == [0, 1, 0]


def test_a_hash_depends_on_the_value_alone() -> None:
    schema = Schema.of({"s": "string?", "i": int, "f": float})
    first, second = Symbols(), Symbols()
    second.intern(["other", "words", "first"])
    rows = [("x", 1, -0.0), (None, 1, 0.0), ("y", 2, math.nan)]
    for name in schema.names:
        hashes = [
            bind(col(name).hash(), schema, symbols).evaluate(encode(schema, rows, symbols)).values.tolist()
            for symbols in (first, second)
        ]
        assert hashes[0] == hashes[1]
        assert len(set(hashes[0])) == (3 if name == "s" else 2)
    assert not bind(col("s").hash(), schema, first).type.nullable


def test_bound_expressions_know_whether_they_can_fail_and_whether_they_are_a_column() -> None:
    schema, symbols = Schema.of({"a": int, "n": "int64?", "f": float, "s": "string?"}), Symbols()
    for sure in (
        *(col("a"), lit(5), col("a") > 1, (col("n") == 1) & ~(col("f") < 2), col("s").is_null(), col("s") < "x"),
        *(col("f") * 2 + 1, col("s").str.lower(), coalesce(col("n"), 0), when(col("a") > 1, 2).otherwise(None)),
        *(col("a").hash(), col("a").cast(float), col("n").is_in([1, 2]), lit(1) + 1, col("a").named("x")),
    ):
        assert not bind(sure, schema, symbols).fallible, sure
    for unsure in (col("a") + 1, -col("a"), col("f") / 2, col("s").cast(int), coalesce(col("n"), col("a") * 2)):
        assert bind(unsure, schema, symbols).fallible, unsure
    assert bind(col("f"), schema, symbols).column == 2
    assert bind(col("f").named("x"), schema, symbols).column == 2
    assert bind(col("f").named("x"), schema, symbols).name == "x"
    assert bind(col("a") + 1, schema, symbols).column is None
    assert bind((col("s") == "x") & (col("a") > 1), schema, symbols).columns == (0, 3)
    assert bind(5, schema, symbols).columns == ()
    assert bind_condition(col("a") > 1, schema, symbols).type.kind == "bool"


def test_constants_stand_for_any_number_of_rows() -> None:
    assert evaluate(lit(7), INTS, [(1, 2, 3)] * 3) == [7, 7, 7]
    assert evaluate(lit("x").str.upper(), INTS, []) == []
    assert evaluate(lit(1) // 0, INTS, [(1, 2, 3)] * 2) == [Fails, Fails]
    assert evaluate(lit(1) // 0, INTS, []) == []


def test_symbols_of_constants_survive_while_the_expression_is_bound() -> None:
    schema, symbols = Schema.of({"s": str}), Symbols()
    bound = bind(col("s").is_in(["a", "b"]) | (col("s") == "c"), schema, symbols)
    symbols.reclaim([])
    assert len(symbols) == 3
    data = encode(schema, ["z", "a", "c"], symbols)
    assert bound.evaluate(data).values.tolist() == [0, 1, 1]
    del bound
    symbols.reclaim(data[0])
    assert len(symbols) == 3
    symbols.reclaim([])
    assert len(symbols) == 0
