"""What users write: it prints as its source, its mistakes are named when bound, and its functions fail by row."""

import datetime
import math
import warnings
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpg.columns.bind import bind, bind_condition
from kpg.columns.bound_nodes import MAX_MESSAGES
from kpg.columns.decode_column import decode_list
from kpg.columns.expression import Expression
from kpg.columns.functions import RowByRowWarning, coalesce, col, lit, max_of, min_of, row_udf, udf, when
from kpg.columns.schema import Schema, decimal
from kpg.columns.symbols import Symbols
from kpg.columns.table_rows import encode
from kpg.errors import TypeMismatch, UndefinedName
from tests.columns.row_interpreter import TERMS, Fails, Term
from tests.columns.test_expression import evaluate

SCHEMA = Schema.of(
    {"i": int, "n": "int64?", "f": float, "s": str, "t": "string?", "b": bool, "d": "date", "m": "decimal(10,2)"}
)

SOURCES = [
    'col("i") + 1',
    '(col("i") + 1) * 2 - -col("n")',
    'col("i") - (col("n") - 1)',
    '1 - col("i") % 3 // 2',
    "lit(1) + 2",
    'lit(1) < col("i")',
    '-(col("i") + 1)',
    '(col("i") > 1) & (col("n") <= 2) | ~col("b")',
    '~(col("b") & col("b"))',
    '(col("i") > 1) == col("b")',
    'col("s") == "it\'s"',
    'col("s") == \'say "so"\'',
    'col("s").str.lower().str.substring(1, 2)',
    '(col("s") + "x").str.length()',
    'col("s").str.concat(col("t"), "!")',
    'col("d").dt.year() == 2020',
    'col("i").cast("decimal(10,2)?")',
    'col("i").is_in([1, 2, 3])',
    'col("n").is_null()',
    'coalesce(col("n"), 0)',
    'min_of(col("i"), col("n") + 1, 5)',
    'when(col("i") > 0, "up").when(col("i") < 0, "down").otherwise("same")',
    '(col("i") + 1).named("next")',
    'col("i").hash() % 16',
    "col(\"m\") * Decimal('1.5')",
    'col("d") + datetime.timedelta(days=1)',
]
NAMES = {"col": col, "lit": lit, "when": when, "coalesce": coalesce, "min_of": min_of, "max_of": max_of}


@pytest.mark.parametrize("source", SOURCES)
def test_an_expression_prints_as_its_source(source: str) -> None:
    expression = eval(source, {**NAMES, "Decimal": Decimal, "datetime": datetime})
    assert repr(expression) == source
    bind(expression, SCHEMA, Symbols())


@given(st.data())
def test_the_printed_source_builds_the_same_expression(data: st.DataObject) -> None:
    term: Term = data.draw(TERMS[data.draw(st.sampled_from(sorted(TERMS)))])
    names = {**NAMES, "Decimal": Decimal, "datetime": datetime, "nan": math.nan, "inf": math.inf}
    if "<lambda>" not in repr(term.written):
        assert eval(repr(term.written), names).structure() == term.written.structure()


def test_structure_distinguishes_expressions() -> None:
    same = [col("a") + 1, col("a") + 1]
    assert same[0].structure() == same[1].structure()
    others: list[Expression] = [
        *(col("a") + 1, col("b") + 1, col("a") + 1.0, col("a") + True, col("a") - 1, lit("a") + 1),
        *(col("a").cast(int), col("a").cast(float), col("a").named("a"), col("a"), col("a").is_in([1])),
        *(udf(abs, returns=int)(col("a")), udf(len, returns=int)(col("a")), udf(abs, returns=float)(col("a"))),
    ]
    assert len({expression.structure() for expression in others}) == len(others)


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        (col("i") + "x", "'+' does not fit int64 and string"),
        (col("i") + col("s"), "'+' does not fit int64 and string"),
        (col("b") + 1, "'+' does not fit bool and int64"),
        (col("f") + col("m"), "'+' does not fit float64 and decimal(10,2)"),
        (col("m") // 2, "'//' does not fit decimal(10,2) and int64"),
        (-col("s"), "'neg' does not fit string"),
        (col("i") == col("f"), "'==' does not fit int64 and float64"),
        (col("i") == col("m"), "'==' does not fit int64 and decimal(10,2)"),
        (col("i") == "1", "'==' does not fit int64 and string"),
        (col("s") == b"x", "'==' does not fit string and binary"),
        (col("i") > 1.5, "'>' does not fit int64 and float64"),
        (col("d") > datetime.datetime(2020, 1, 1), "'>' does not fit date and timestamp"),
        (col("d") > "2020-01-01", "'>' does not fit date and string"),
        (col("d") + 1.5, "'+' does not fit date and float64"),
        (col("d") + datetime.timedelta(hours=1), "'+' does not fit date and int64"),
        (1 - col("d"), "'-' does not fit int64 and date"),
        (col("i") & col("b"), "'&' does not fit int64 and bool"),
        (~col("i"), "'~' does not fit int64"),
        (when(col("i"), 1).otherwise(2), "'when' does not fit int64"),
        (when(col("b"), 1).otherwise("x"), "'when' does not fit int64 and string"),
        (coalesce(col("n"), "x"), "'coalesce' does not fit int64? and string"),
        (min_of(col("i"), col("s")), "'min_of' does not fit int64 and string"),
        (col("i").str.lower(), "'str.lower' does not fit int64"),
        (col("s").str.contains(1), "'str.contains' does not fit string and int64"),
        (col("s").str.substring("x"), "'str.substring' does not fit string and string"),
        (col("s").dt.year(), "'dt.year' does not fit string"),
        (col("d").dt.hour(), "'dt.hour' does not fit date"),
        (col("b").cast("date"), "'cast' does not fit bool"),
        (col("i").is_in(["x"]), "'x' is not int64"),
        (col("i").is_in([None]), "is_in does not take null"),
        (lit(None), "null has no type by itself"),
        (lit(None) + None, "'+' does not fit null and null"),
        (lit(None) == None, "'==' does not fit null and null"),  # noqa: E711
        (lit(2**63), "no column can hold the constant 9223372036854775808"),
        (lit([1]), "no column can hold list"),
        (lit(Decimal("1." + "1" * 38)), f"1.{'1' * 38} has more than the 38 digits of a decimal"),
        (col("m") * col("m").cast("decimal(38,37)"), "'*' does not fit decimal(10,2) and decimal(38,37)"),
        (when(col("b"), None).otherwise(None), "'when' does not fit null and null"),
        (coalesce(), "coalesce needs at least one value"),
        (min_of(), "min_of needs at least one value"),
    ],
)
def test_types_that_do_not_fit_are_refused_when_bound(expression: object, says: str) -> None:
    with pytest.raises(TypeMismatch) as caught:
        bind(expression, SCHEMA, Symbols())
    assert caught.value.what == says


def test_an_unknown_column_is_named_when_bound() -> None:
    with pytest.raises(UndefinedName, match="no column is called 'ii'") as caught:
        bind(col("ii") + 1, SCHEMA, Symbols())
    assert caught.value.hint == "Did you mean 'i'?"


def test_an_expression_has_no_truth_value() -> None:
    for use in (lambda: bool(col("i")), lambda: 1 < col("i") < 3, lambda: col("i") and col("b"), lambda: not col("b")):
        with pytest.raises(TypeMismatch, match="no truth value"):
            use()
    with pytest.raises(TypeMismatch, match="several values"):
        col("s").is_in("abc")
    with pytest.raises(TypeMismatch, match="a condition is a bool, not int64"):
        bind_condition(col("i"), SCHEMA, Symbols())


PAIR = Schema.of(
    {"x": float, "y": "float64?", "s": "string?", "i": int, "d": "date", "t": "timestamp", "m": "decimal(4,1)"}
)
DAY, NOON = datetime.date(2020, 1, 2), datetime.datetime(2020, 1, 2, 12, tzinfo=datetime.UTC)
ROWS = [
    (3.0, 4.0, "ab", 1, DAY, NOON, Decimal("1.5")),
    (1.0, None, None, 0, DAY, NOON, 2),
    (6.0, 8.0, "", 7, DAY, NOON, 3),
]


def test_a_function_of_arrays_does_not_get_nulls() -> None:
    hypot = udf(np.hypot, returns=float)
    assert evaluate(hypot(col("x"), col("y")), PAIR, ROWS) == [5.0, None, 10.0]
    assert evaluate(hypot(col("x"), 0.0), PAIR, ROWS) == [3.0, 1.0, 6.0]
    seen: list[Any] = []

    def kinds(*arrays: Any) -> Any:
        seen.extend(array.dtype.str for array in arrays)
        assert all(isinstance(array, np.ndarray) and not array.flags.writeable for array in arrays)
        return np.zeros(len(arrays[0]), bool)

    expression = udf(kinds, returns=bool)(*map(col, PAIR.names), col("i") > 0)
    assert evaluate(expression, PAIR, ROWS) == [False, None, False]
    assert seen == ["<f8", "<f8", "|O", "<i8", "<M8[D]", "<M8[us]", "|O", "|b1"]


def test_a_function_of_arrow_arrays_sees_nulls() -> None:
    length = udf(lambda text: pc.fill_null(pc.utf8_length(text), -1), returns=int, kind="arrow")
    assert evaluate(length(col("s")), PAIR, ROWS) == [2, -1, 0]
    maybe = udf(lambda a: a, returns="float64?", kind="arrow")
    assert evaluate(maybe(col("y")), PAIR, ROWS) == [4.0, None, 8.0]
    careless = udf(lambda a: a, returns=float, kind="arrow")
    assert evaluate(careless(col("y")), PAIR, ROWS) == [4.0, Fails, 8.0]


@pytest.mark.parametrize(
    "returns", ["int64", "float64", "string", "bool", "date", "timestamp", "decimal(4,1)", "binary"]
)
def test_a_function_may_return_every_type_as_arrays_or_lists(returns: str) -> None:
    examples = {
        "int64": [1, 2],
        "float64": [0.5, 2.0],
        "string": ["a", "b"],
        "bool": [True, False],
        "date": [DAY, DAY],
        "timestamp": [NOON, NOON],
        "decimal(4,1)": [Decimal("1.5"), Decimal("2.0")],
        "binary": [b"a", b"\xff"],
    }
    values = examples[returns]
    type_ = Schema.of({"x": returns}).types[0].to_arrow()
    for function in (lambda i: [values[k] for k in i], lambda i: pa.array([values[k] for k in i], type_)):
        expression = udf(function, returns=returns)(col("i"))
        assert evaluate(expression, PAIR, [ROWS[1], ROWS[0]]) == values


@given(st.lists(st.integers(-3, 3), max_size=20))
def test_only_the_rows_on_which_a_function_raises_fail(column: list) -> None:
    def picky(numbers: Any) -> Any:
        if (numbers == 0).any():
            raise ValueError("no zero, please")
        return numbers * 2

    schema = Schema.of({"i": int})
    expected = [Fails if value == 0 else 2 * value for value in column]
    assert evaluate(udf(picky, returns=int)(col("i")), schema, column) == expected
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        by_row = row_udf(lambda i: 12 // i, returns=int)
    assert evaluate(by_row(col("i")), schema, column) == [Fails if i == 0 else 12 // i for i in column]


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (lambda i: i[:0], "it returned 0 values for 1 rows"),
        (lambda i: 5, "it returned int for 1 rows"),
        (lambda i: "x", "it returned 1 values for 1 rows"),
        (lambda i: i / 2, "int64, not double"),
        (lambda i: None, "it returned NoneType for 1 rows"),
        (lambda i: [None] * len(i), "Null is not int64"),
        (lambda i: i.__setitem__(0, 1), "read-only"),
        (lambda i: 1 / 0, "ZeroDivisionError: division by zero"),
    ],
)
def test_a_function_that_does_not_return_a_column_fails_its_rows(function: Any, says: str) -> None:
    schema, symbols = Schema.of({"i": int}), Symbols()
    result = bind(udf(function, returns=int)(col("i")), schema, symbols).evaluate(encode(schema, [7], symbols))
    assert result.failed is not None and result.failed.all()
    assert says in result.reason(0), result.reason(0)


def test_a_function_is_called_once_a_batch_and_not_for_rows_that_failed_or_were_not_chosen() -> None:
    calls: list[list] = []

    def noted(numbers: Any) -> Any:
        calls.append(numbers.tolist())
        return numbers

    schema = Schema.of({"i": int})
    noting = udf(noted, returns=int)
    column = [0, 1, 2, 3]
    assert evaluate(noting(col("i")), schema, column) == column
    assert evaluate(noting(6 // col("i")), schema, column) == [Fails, 6, 3, 2]
    assert evaluate(when(col("i") > 1, noting(col("i"))).otherwise(-1), schema, column) == [-1, -1, 2, 3]
    assert evaluate(noting(col("i")), schema, []) == []
    assert calls == [[0, 1, 2, 3], [6, 3, 2], [2, 3]]


def test_a_row_function_warns_once_and_gets_python_values() -> None:
    with pytest.warns(RowByRowWarning, match="runs once for each row"):
        shown = row_udf(lambda *given: repr(given), returns=str)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        expression = shown(col("x"), col("s"), col("d"), col("m"))
        actual = evaluate(expression, PAIR, ROWS)
    assert actual == [
        "(3.0, 'ab', datetime.date(2020, 1, 2), Decimal('1.5'))",
        None,
        "(6.0, '', datetime.date(2020, 1, 2), Decimal('3.0'))",
    ]


def test_messages_are_kept_up_to_a_limit() -> None:
    def complain(numbers: Any) -> Any:
        raise ValueError(f"not {numbers[0]}")

    schema, symbols = Schema.of({"i": int}), Symbols()
    n = MAX_MESSAGES + 50
    result = bind(udf(complain, returns=int)(col("i")), schema, symbols).evaluate(encode(schema, range(n), symbols))
    assert result.reason(3) == "complain raised ValueError: not 3"
    assert "the first 1,000 different messages" in result.reason(n - 1)
    assert len(result.failures) <= MAX_MESSAGES + 1


def test_kinds_of_functions_are_named() -> None:
    with pytest.raises(TypeMismatch, match="unknown kind of udf"):
        udf(abs, returns=int, kind="pandas")
    assert repr(udf(np.hypot, returns=float)(col("x"), 1.0)) == 'hypot(col("x"), 1.0)'


# Dates, powers, rounding and regular expressions

MOMENTS = Schema.of({"at": "timestamp", "day": "date?", "m": "decimal(5,3)", "i": int, "s": str})


def of_moments(expression, *rows):
    symbols = Symbols()
    data = encode(MOMENTS, list(rows), symbols)
    bound = bind(expression, MOMENTS, symbols)
    result = bound.evaluate(data)
    values = decode_list(bound.type, result.values, symbols)
    failed = [False] * len(rows) if result.failed is None else result.failed.tolist()
    return ["fails" if bad else value for bad, value in zip(failed, values, strict=True)]


def moment(at, m="0", i=0, s=""):
    return (at, at.date(), Decimal(m), i, s)


STARTS = {
    "year": {"month": 1, "day": 1},
    "month": {"day": 1},
    "day": {},
}


@given(st.datetimes(datetime.datetime(1, 1, 2), datetime.datetime(9999, 12, 31)))
def test_truncation_of_dates_and_timestamps(at):
    midnight = at.replace(hour=0, minute=0, second=0, microsecond=0)
    expected = {unit: midnight.replace(**fields) for unit, fields in STARTS.items()}
    expected["quarter"] = midnight.replace(month=3 * ((at.month - 1) // 3) + 1, day=1)
    expected["week"] = midnight - datetime.timedelta(days=at.weekday())
    row = moment(at)
    for unit, start in expected.items():
        assert of_moments(col("at").dt.truncate(unit), row) == [start.replace(tzinfo=datetime.UTC)], unit
        assert of_moments(col("day").dt.truncate(unit), row) == [start.date()], unit
    for unit, zeros in (("hour", ("minute", "second", "microsecond")), ("second", ("microsecond",))):
        start = at.replace(**dict.fromkeys(zeros, 0), tzinfo=datetime.UTC)
        assert of_moments(col("at").dt.truncate(unit), row) == [start]
    quarter_hours = col("at").dt.truncate(datetime.timedelta(minutes=15))
    start = at.replace(minute=at.minute // 15 * 15, second=0, microsecond=0, tzinfo=datetime.UTC)
    assert of_moments(quarter_hours, row) == [start]


def test_decimals_round_half_away_from_zero_and_keep_room():
    row = moment(datetime.datetime(2020, 1, 1), "99.995")
    assert bind(col("m").round(2), MOMENTS, Symbols()).type == decimal(5, 2)
    assert of_moments(col("m").round(2), row) == [Decimal("100.00")]
    assert of_moments(col("m").round(3), row) == [Decimal("99.995")]
    assert of_moments(col("m").round(), row) == [Decimal(100)]
    assert of_moments(col("i").round(2), row) == [0]
    with pytest.raises(TypeMismatch, match="'round' does not fit string"):
        bind(col("s").round(), MOMENTS, Symbols())


@pytest.mark.parametrize(
    "base, exponent",
    [(2**63 - 1, 1), (-(2**63), 1), (-2, 63), (-8, 21), (2, 62), (3037000499, 2)]
    + [(-(2**63), 2), (2, 63), (-2, 64), (3037000500, 2), (-3, 40)],
)
def test_powers_near_the_ends_of_64_bits(base, exponent):
    fits = -(2**63) <= base**exponent < 2**63
    row = moment(datetime.datetime(2020, 1, 1), "2", exponent, "")
    assert of_moments(lit(base) ** col("i"), row) == [base**exponent if fits else "fails"]


def test_powers_and_patterns_that_fail():
    row = moment(datetime.datetime(2020, 1, 1), "2", -1, "(")
    assert of_moments(lit(2) ** col("i"), row) == ["fails"]
    assert of_moments(lit(2.0) ** col("i"), row) == [0.5]
    assert of_moments(col("m") ** 2, row) == [4.0]
    assert of_moments(lit("a(").str.matches(col("s")), row) == ["fails"]
    assert of_moments(col("s").str.replace_regex(r"(.)", r"\1\1"), row) == ["(("]
    for wrong in (col("s").str.matches("("), col("s").str.replace_regex("a", r"\2")):
        with pytest.raises(TypeMismatch, match="not a regular expression"):
            bind(wrong, MOMENTS, Symbols())
    with pytest.raises(TypeMismatch, match="does not fit"):
        bind(col("day").dt.truncate("hour"), MOMENTS, Symbols())


def test_powers_print_as_they_are_written():
    written = ['-col("a") ** 2', '(-col("a")) ** 2', 'col("a") ** col("b") ** 2', '(col("a") ** col("b")) ** 2']
    written += ['lit(-2) ** col("a")', 'col("a") * col("b") ** 2', 'col("a").round(2)', 'col("a") ** (-col("b"))']
    for text in written:
        assert repr(eval(text)) == text
