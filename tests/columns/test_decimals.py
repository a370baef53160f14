"""Decimals of one lane and of two compute as Python's integers and fractions do, or the row fails."""

from decimal import Decimal
from fractions import Fraction
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kpg.columns.bind import bind
from kpg.columns.decode_column import decode_list
from kpg.columns.expression import Expression
from kpg.columns.functions import coalesce, col, max_of, min_of, when
from kpg.columns.schema import Schema, Type, decimal
from kpg.columns.symbols import Symbols
from kpg.columns.table_rows import encode

types = st.integers(1, 38).flatmap(lambda p: st.integers(0, p).map(lambda s: decimal(p, s)))
FAILS = object()


def numbers(type_: Type) -> st.SearchStrategy[Decimal]:
    limit = 10**type_.precision - 1
    scaled = st.sampled_from([0, 1, -1, limit, -limit, limit // 2]) | st.integers(-limit, limit)
    return scaled.map(lambda number: Decimal(f"{number}e-{type_.scale}"))


@st.composite
def tables(draw: Any) -> tuple[Schema, list[tuple[Any, ...]]]:
    a, b = draw(types), draw(types)
    schema = Schema.of({"a": a, "b": b.optional(), "i": int})
    rows = st.tuples(numbers(a), st.none() | numbers(b), st.integers(-(2**63), 2**63 - 1) | st.integers(-9, 9))
    return schema, draw(st.lists(rows, min_size=1, max_size=5))


def exact(value: Decimal | int) -> Fraction:
    return Fraction(value)


def rounded(value: Fraction, type_: Type) -> Any:
    """The nearest number of a type, half away from zero; FAILS if the type does not have it."""
    scaled = abs(value) * 10**type_.scale
    whole = int(scaled + Fraction(1, 2))
    if whole >= 10**type_.precision:
        return FAILS
    return Fraction(whole if value >= 0 else -whole, 10**type_.scale)


def evaluate(expression: Expression, schema: Schema, rows: list[tuple[Any, ...]]) -> tuple[Type, list[Any]]:
    symbols = Symbols()
    bound = bind(expression, schema, symbols)
    result = bound.evaluate(encode(schema, rows, symbols))
    values = decode_list(bound.type, result.values, symbols)
    failed = [False] * len(rows) if result.failed is None else result.failed.tolist()
    return bound.type, [FAILS if fails else value for value, fails in zip(values, failed, strict=True)]


def agree(actual: list[Any], expected: list[Any]) -> bool:
    return [value if value in (None, FAILS) else exact(value) for value in actual] == expected


@given(tables())
def test_sums_and_products_are_exact_or_fail(table: tuple[Schema, list[tuple[Any, ...]]]) -> None:
    schema, rows = table
    a, b = schema.types[:2]
    cases: list[tuple[Expression, Any]] = [
        (col("a") + col("b"), lambda a, b, i: a + b),
        (col("a") - col("b"), lambda a, b, i: a - b),
        (col("b") + col("i"), lambda a, b, i: b + i),
        (col("b") - 7, lambda a, b, i: b - 7),
    ]
    if a.scale + b.scale <= 38:
        cases.append((col("a") * col("b"), lambda a, b, i: a * b))
    for expression, means in cases:
        type_, actual = evaluate(expression, schema, rows)
        expected = [
            None if b is None else rounded(means(exact(a), exact(b), i), type_) for a, b, i in rows
        ]  # fmt: skip
        wide = [row for row, (value, _) in enumerate(zip(actual, expected, strict=True)) if value is FAILS]
        for row in wide:  # an operand at the scale of the other may leave 38 digits before the sum returns to them
            a, b, i = rows[row]
            most = max(abs(exact(part)) for part in (a, b or 0, i, means(exact(a), exact(b or 0), i)))
            assert most * 10**type_.scale >= 10 ** min(type_.precision, 38)
            expected[row] = FAILS
        assert agree(actual, expected), (expression, actual, expected)


@given(tables())
def test_signs_and_comparisons_are_those_of_numbers(table: tuple[Schema, list[tuple[Any, ...]]]) -> None:
    schema, rows = table
    assert agree(evaluate(-col("a"), schema, rows)[1], [-exact(a) for a, _, _ in rows])
    assert agree(evaluate(col("a").abs(), schema, rows)[1], [abs(exact(a)) for a, _, _ in rows])
    for expression, means in (
        (col("a") < col("b"), lambda a, b: a < b),
        (col("a") <= col("b"), lambda a, b: a <= b),
        (col("a") == col("b"), lambda a, b: a == b),
        (col("b") != col("a"), lambda a, b: a != b),
        (col("a") > 1, lambda a, b: a > 1),
    ):
        actual = evaluate(expression, schema, rows)[1]
        reads_b = "b" in repr(expression)
        assert actual == [None if reads_b and b is None else means(exact(a), exact(b or 0)) for a, b, _ in rows]
    actual = evaluate(col("a").is_in([0, rows[0][0]]), schema, rows)[1]
    assert actual == [a in (0, rows[0][0]) for a, _, _ in rows]


@given(tables())
def test_choices_keep_the_value_chosen(table: tuple[Schema, list[tuple[Any, ...]]]) -> None:
    schema, rows = table
    for expression, means in (
        (when(col("i") > 0, col("a")).otherwise(col("b")), lambda a, b, i: a if i > 0 else b),
        (coalesce(col("b"), col("a")), lambda a, b, i: a if b is None else b),
        (min_of(col("a"), col("b")), lambda a, b, i: None if b is None else min(a, b)),
        (max_of(col("a"), col("b")), lambda a, b, i: None if b is None else max(a, b)),
    ):
        type_, actual = evaluate(expression, schema, rows)
        for value, (a, b, i) in zip(actual, rows, strict=True):
            expected = means(exact(a), None if b is None else exact(b), i)
            if value is FAILS:  # one of the values leaves 38 digits at the common scale
                assert any(abs(exact(part or 0)) * 10**type_.scale >= 10**38 for part in (a, b))
            else:
                assert (None if value is None else exact(value)) == expected, expression


@given(tables(), types)
def test_casts_round_half_away_from_zero(table: tuple[Schema, list[tuple[Any, ...]]], target: Type) -> None:
    schema, rows = table
    actual = evaluate(col("a").cast(target), schema, rows)[1]
    assert agree(actual, [rounded(exact(a), target) for a, _, _ in rows])
    actual = evaluate(col("i").cast(target), schema, rows)[1]
    assert agree(actual, [rounded(exact(i), target) for _, _, i in rows])
    actual = evaluate(col("a").cast("string").cast(schema.types[0]), schema, rows)[1]
    assert agree(actual, [exact(a) for a, _, _ in rows])
    whole = [int(a) for a, _, _ in rows]
    actual = evaluate(col("a").cast(int), schema, rows)[1]
    assert actual == [number if -(2**63) <= number < 2**63 else FAILS for number in whole]
    for value, (a, _, _) in zip(evaluate(col("a").cast(float), schema, rows)[1], rows, strict=True):
        assert abs(value - float(a)) <= 4e-16 * abs(float(a))


@given(st.lists(st.floats() | st.integers(-999, 999).map(lambda n: n / 100), min_size=1), types)
def test_floats_become_decimals_by_their_first_15_digits(floats: list[float], target: Type) -> None:
    schema = Schema.of({"f": float})
    actual = evaluate(col("f").cast(target), schema, [(value,) for value in floats])[1]
    for value, number in zip(actual, floats, strict=True):
        if number != number or number in (float("inf"), float("-inf")):
            assert value is FAILS
            continue
        assert agree([value], [rounded(Fraction(Decimal(f"{number:.15g}")), target)]), number
