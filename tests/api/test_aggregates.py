"""Aggregates of groups and first rows equal their denotation, with nulls, duplicates, conditions and removal."""

import math
import statistics
from itertools import groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kpg
from kpg import col, count_rows
from kpg.testing import denotations
from kpg.testing.denotations import aggregate, aggregate_all, nulls_last, of_values, rows_between
from tests.api.plays import Query, check, examples, plays

SCHEMAS = {"a": {"k": "int64?", "x": "int64?", "s": "string?", "p": "bool?", "f": "float64?"}}
ROWS = {
    "a": st.tuples(
        st.sampled_from([None, 0]),
        st.sampled_from([None, -1, 2, 2, 5]),
        st.sampled_from([None, "a", "bb", "b"]),
        st.sampled_from([None, True, False]),
        st.sampled_from([None, 0.5, -3.0, 0.1]),
    )
}
K, X, S, P, F = range(5)


def of_a(build, denotation):
    return Query(lambda db, r: build(r["a"]), denotation, ("a",))


def some(function):
    """A function of values that is null if there is none."""
    return lambda values: function(values) if values else None


def distinct(function):
    return lambda values: function(sorted(set(values)))


def between(fraction):
    """A quantile between two values, as in PostgreSQL's percentile_cont."""

    def quantile(values):
        exact = fraction * (len(values) - 1)
        low, high = float(values[math.floor(exact)]), float(values[math.ceil(exact)])
        return low if low == high else low + (high - low) * (exact - math.floor(exact))

    return some(quantile)


def first_at(fraction):
    return some(lambda values: values[max(math.ceil(fraction * len(values)), 1) - 1])


def most_frequent(values):
    runs = [(value, len(list(same))) for value, same in groupby(values)]
    return max(runs, key=lambda run: run[1])[0]  # the first of several


def positive(row):
    return None if row[X] is None else row[X] > 0


def exact_sum(values):
    return math.fsum(values)


SUMS = {
    "n": (count_rows(), len),
    "positive": (count_rows(where=col("x") > 0), lambda rows: sum(positive(row) is True for row in rows)),
    "xs": (col("x").count(), of_values(len, X)),
    "ks": (col("k").count(), of_values(len, K)),
    "sum": (col("x").sum(), of_values(some(sum), X)),
    "double": ((col("x") * 2).sum(where=col("p")), of_values(some(lambda v: 2 * sum(v)), X, lambda row: row[P])),
    "floats": (col("f").sum(), of_values(some(exact_sum), F)),
    "mean": (col("x").avg(), of_values(some(lambda v: sum(v) / len(v)), X)),
    "all": (col("p").all(), of_values(some(all), P)),
    "any": (col("p").any(where=col("x") > 0), of_values(some(any), P, positive)),
    "all positive": ((col("x") > 0).all(), of_values(some(lambda v: all(x > 0 for x in v)), X)),
}
OTHERS = {
    "different": (col("x").count_distinct(), of_values(distinct(len), X)),
    "different s": (col("s").count(distinct=True, where=col("x") > 0), of_values(distinct(len), S, positive)),
    "sum of different": (col("x").sum(distinct=True), of_values(some(distinct(sum)), X)),
    "least": (col("x").min(), of_values(some(min), X)),
    "greatest": (col("x").max(where=col("p")), of_values(some(max), X, lambda row: row[P])),
    "least s": (col("s").min(), of_values(some(min), S)),
    "greatest s": (col("s").max(hierarchical=True), of_values(some(max), S)),
    "least f": (col("f").min(hierarchical=True), of_values(some(min), F)),
}
SCANS = {
    "median": (col("x").quantile(0.5), of_values(between(0.5), X)),
    "third": (col("f").quantile(1 / 3, where=col("x") > 0), of_values(between(1 / 3), F, positive)),
    "first third": (col("s").quantile(1 / 3, interpolate=False), of_values(first_at(1 / 3), S)),
    "last": (col("x").quantile(1, interpolate=False), of_values(first_at(1), X)),
    "most frequent": (col("s").mode(), of_values(some(most_frequent), S)),
    "most frequent x": (col("x").mode(), of_values(some(most_frequent), X)),
    "variance": (col("x").variance(), of_values(some(lambda v: float(statistics.pvariance(v))), X)),
    "text": (col("s").string_agg(", "), of_values(some(", ".join), S)),
    "different text": (col("s").string_agg("", distinct=True), of_values(some(distinct("".join)), S)),
    "array": (col("x").array_agg(), lambda rows: some(tuple)(sorted((row[X] for row in rows), key=nulls_last))),
    "different array": (
        col("s").array_agg(distinct=True),
        lambda rows: some(tuple)(sorted({row[S] for row in rows}, key=nulls_last)),
    ),
    "ordered array": (
        col("s").array_agg(order=col("f").desc(), where=col("p")),
        lambda rows: some(tuple)(
            [
                row[S]
                for row in sorted(
                    (row for row in rows if row[P] is True),
                    key=lambda row: (row[F] is None, -(row[F] or 0), nulls_last(row[S])),
                )
            ]
        ),
    ),
    "ordered text": (
        col("s").string_agg("/", order=[col("x").desc(nulls_last=False), "f"]),
        lambda rows: some("/".join)(
            [
                row[S]
                for row in sorted(
                    (row for row in rows if row[S] is not None),
                    key=lambda row: (row[X] is not None, -(row[X] or 0), nulls_last(row[F]), row[S]),
                )
            ]
        ),
    ),
}


def queries(group):
    """Each aggregate by itself, and all of them together."""
    wanted = {name: aggregate for name, (aggregate, _) in group.items()}
    meanings = [meaning for _, meaning in group.values()]
    together = of_a(lambda a: a.group_by("k").aggregate(**wanted), lambda a: aggregate(a, (K,), *meanings))
    return {"together": together} | {
        name: of_a(
            lambda a, name=name: a.group_by("k").aggregate(**{name: wanted[name]}),
            lambda a, name=name: aggregate(a, (K,), group[name][1]),
        )
        for name in group
    }


def all_of(group):
    wanted = {name: aggregate for name, (aggregate, _) in group.items()}
    return of_a(
        lambda a: a.aggregate(**wanted), lambda a: aggregate_all(a, *[meaning for _, meaning in group.values()])
    )


GLOBAL = {
    "sums of all": all_of(SUMS),
    "others of all": all_of(OTHERS),
    "scans of all": all_of(SCANS),
    "all of all": all_of(SUMS | OTHERS | SCANS),
    "groups of an expression": of_a(
        lambda a: a.group_by(side=col("x") > 0).aggregate(n="count", most=("max", "x")),
        lambda a: denotations.map(
            aggregate(
                denotations.map(a, lambda row: (positive(row), *row)),
                (0,),
                len,
                of_values(some(max), 1 + X),
            ),
            lambda row: row,
        ),
    ),
    "pivot": of_a(
        lambda a: a.group_by("k").pivot("x", {"two": 2, "none": None}, count_rows(where=col("p"))),
        lambda a: aggregate(
            a,
            (K,),
            lambda rows: sum(row[X] == 2 and row[P] is True for row in rows),
            lambda rows: sum(row[X] is None and row[P] is True for row in rows),
        ),
    ),
}


def in_order(*keys):
    """Ties are broken by all columns, nulls last."""
    return lambda row: (*[key(row) for key in keys], *map(nulls_last, row))


FIRST = {
    "first by x": of_a(
        lambda a: a.group_by("k").top_k(2, by="x"),
        lambda a: rows_between(a, (K,), in_order(lambda row: nulls_last(row[X])), 2),
    ),
    "last by x": of_a(
        lambda a: a.group_by("k").top_k(2, by="-x"),
        lambda a: rows_between(a, (K,), in_order(lambda row: (row[X] is None, -(row[X] or 0))), 2),
    ),
    "last by x, nulls first": of_a(
        lambda a: a.group_by("k").first(2, col("x").desc(nulls_last=False)),
        lambda a: rows_between(a, (K,), in_order(lambda row: (row[X] is not None, -(row[X] or 0))), 2, copies=False),
    ),
    "by an expression and by text": of_a(
        lambda a: a.group_by().top_k(3, by=[(col("x") > 0).asc(nulls_last=False), "s"], offset=2),
        lambda a: rows_between(
            a,
            (),
            in_order(lambda row: (positive(row) is not None, positive(row) is True), lambda row: nulls_last(row[S])),
            3,
            2,
        ),
    ),
    "all but the first": of_a(
        lambda a: a.group_by("k").top_k(None, by="f", offset=1),
        lambda a: rows_between(a, (K,), in_order(lambda row: nulls_last(row[F])), None, 1),
    ),
    "hierarchical": of_a(
        lambda a: a.group_by().top_k(2, by="s", offset=1, hierarchical=True),
        lambda a: rows_between(a, (), in_order(lambda row: nulls_last(row[S])), 2, 1),
    ),
    "without order": of_a(
        lambda a: a.group_by("k").first(1), lambda a: rows_between(a, (K,), in_order(), 1, copies=False)
    ),
}


@examples(0.2)
@given(plays(ROWS, max_size=8, negative=False))
def test_sums_and_counts_of_values(play):
    check(play, SCHEMAS, queries(SUMS))


@examples(0.2)
@given(plays(ROWS, max_size=8, negative=False))
def test_distinct_and_extreme_values(play):
    check(play, SCHEMAS, queries(OTHERS))


@examples(0.12)
@given(plays(ROWS, max_size=8, negative=False))
def test_statistics_of_values(play):
    check(play, SCHEMAS, queries(SCANS))


@examples(0.1)
@given(plays(ROWS, max_size=8, negative=False))
def test_aggregates_of_all_rows_and_of_expressions(play):
    check(play, SCHEMAS, GLOBAL)


@examples(0.2)
@given(plays(ROWS, max_size=8, negative=False))
def test_first_rows_with_nulls_and_offsets(play):
    check(play, SCHEMAS, FIRST)


@examples(0.1)
@given(plays(ROWS, coordinates=2, largest=1, max_size=5, negative=False))
def test_aggregates_where_times_have_two_coordinates(play):
    check(play, SCHEMAS, GLOBAL | FIRST)


@pytest.fixture
def table():
    with kpg.open() as db:
        yield db.input("t", k=int, x=int, s=str, f=float)


def test_several_sums_share_one_index(table):
    aggregates = {"n": "count", "a": col("x").sum(), "b": (col("x") + 1).avg(where=col("f") > 0), "c": col("s").count()}
    answer = table.group_by("k").aggregate(**aggregates).output()
    assert answer.explain().count("arrange k (of") == 1


def test_samples_of_one_have_no_variance(table):
    answer = table.group_by("k").aggregate(v=col("x").variance(sample=True), d=col("f").stddev(sample=True)).output()
    table.insert([(1, 5, "", 1.0), (2, 1, "", 0.1), (2, 4, "", 0.7)])
    table.db.advance()
    assert answer.rows() == [(1, None, None), (2, 4.5, statistics.stdev([0.1, 0.7]))]


def test_variance_is_exact_and_nan_beside_infinity(table):
    answer = table.group_by("k").aggregate(v=col("x").variance(), f=col("f").variance()).output()
    table.insert([(1, 2**62, "", math.inf), (1, 2**62 + 2, "", 0.0), (2, 0, "", 1e200), (2, 0, "", -1e200)])
    table.db.advance()
    (_, big, of_infinity), (_, zero, huge) = answer.rows()
    assert (big, zero, huge) == (1.0, 0.0, math.inf) and math.isnan(of_infinity)


def test_text_that_is_too_long_is_an_error_of_its_group(table):
    answer = table.group_by("k").aggregate(t=col("s").string_agg(",")).output("t")
    table.insert([(1, 0, "a" * (1 << 24), 0.0), (2, 0, "b", 0.0)])
    table.db.advance()
    with pytest.raises(kpg.DataError, match="text longer"):
        answer.rows()
    table.remove([(1, 0, "a" * (1 << 24), 0.0)])
    table.db.advance()
    assert answer.rows() == [(2, "b")]


def test_mistakes_of_aggregates(table):
    group = table.group_by("k")
    with pytest.raises(kpg.BadPlan, match="no aggregate is called 'total'"):
        group.aggregate(t=("total", "x"))
    with pytest.raises(kpg.BadPlan, match="aggregate\\(\\) of nothing"):
        group.aggregate()
    with pytest.raises(kpg.TypeMismatch, match="cannot take the sum"):
        group.aggregate(t=col("s").sum())
    with pytest.raises(kpg.TypeMismatch, match="cannot take the any"):
        group.aggregate(t=col("s").any())
    with pytest.raises(kpg.BadPlan, match="fraction from 0 to 1"):
        col("x").quantile(95)
    with pytest.raises(kpg.BadPlan, match="name of another column"):
        table.group_by(x=col("x") % 10)
    with pytest.raises(kpg.UndefinedName, match="has no name"):
        table.group_by(col("x") % 10)
    with pytest.raises(kpg.BadPlan, match="at least 0"):
        group.top_k(1, by="x", offset=-1)
