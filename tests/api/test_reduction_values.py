"""Reductions over text, nulls, floats and decimals: in the order of values, never of arrival (A5.13, A5.14)."""

import datetime
import itertools
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kpg
from kpg.testing import denotations
from kpg.testing.denotations import nulls_last
from tests.api.plays import Multiset, Query, check, examples, plays

SCHEMAS = {"a": {"k": str, "s": str | None, "n": int | None, "f": float}}
TEXTS = st.sampled_from(["b", "a", "", "ä", "B", "aa"])
ROW = st.tuples(
    st.sampled_from(["y", "x"]), TEXTS | st.none(), st.integers(-1, 1) | st.none(), st.sampled_from([0.5, -2.0, 1e9])
)
ROWS = {"a": ROW}


def of_a(build, denotation) -> Query:
    return Query(lambda db, r: build(r["a"]), denotation, ("a",))


def first(limit: int, *by: str, copies: bool = True):
    """Return the first rows of each k by some columns, then by all others; nulls are last."""
    columns = ["k", "s", "n", "f"]

    def denotation(a: Multiset) -> Multiset:
        kept: Multiset = {}
        for group in denotations.groups(a, (0,)).values():
            rows = sorted(
                (row for row in group if group[row] > 0), key=lambda row: [nulls_last(value) for value in row]
            )
            for column in reversed(by):
                index = columns.index(column.removeprefix("-"))
                rows.sort(key=lambda row: nulls_last(row[index]), reverse=column.startswith("-"))
                rows.sort(key=lambda row: row[index] is None)
            left = limit
            for row in rows:
                taken = min(left, group[row] if copies else 1)
                if taken:
                    kept[row] = taken
                left -= taken
        return kept

    return denotation


def extreme(choose, column: int):
    """Return the least or greatest value that is not null."""

    def denotation(a: Multiset) -> Multiset:
        there = denotations.distinct(denotations.select(a, (0, column)))
        groups = denotations.groups({row: 1 for row in there if row[1] is not None}, (0,))
        return {(*key, choose(row[1] for row in group)): 1 for key, group in groups.items()}

    return denotation


def totals(a: Multiset) -> Multiset:
    """Nulls count as rows, but not in sums and means, which are null when all values are."""
    totals_by_key = {}
    for (key,), group in denotations.groups(a, (0,)).items():
        count = sum(group.values())
        numbers = [(row[2], n) for row, n in group.items() if row[2] is not None]
        parts = sum(n for _, n in numbers)
        total = sum(value * n for value, n in numbers)
        floats = sum(Fraction(row[3]) * n for row, n in group.items())
        if count:
            mean = None if parts == 0 else total / parts
            totals_by_key[key, count, None if parts == 0 else total, mean, float(floats)] = 1
    return totals_by_key


def listed(key, rows):
    """Return all rows, in the order of arrival, as one text."""
    return [("|".join(f"{row}×{count}" for row, count in rows),)]


def in_order(a: Multiset) -> Multiset:
    lists_by_key = {}
    for key, group in denotations.groups(a, (0,)).items():
        rows = sorted(group.items(), key=lambda item: [(value is not None, value) for value in item[0][1:]])
        lists_by_key[(*key, *listed(key, [(row[1:], count) for row, count in rows])[0])] = 1
    return lists_by_key


VALUES = {
    "top by text": of_a(lambda a: a.group_by("k").top_k(2, by="s"), first(2, "s")),
    "top by text, descending": of_a(lambda a: a.group_by("k").top_k(2, by="-s"), first(2, "-s")),
    "top by number and text": of_a(lambda a: a.group_by("k").top_k(2, by=("-n", "s")), first(2, "-n", "s")),
    "top by text and number": of_a(lambda a: a.group_by("k").top_k(3, by=("-s", "-n")), first(3, "-s", "-n")),
    "top by nullable number": of_a(lambda a: a.group_by("k").top_k(1, by="n"), first(1, "n")),
    "top by float": of_a(lambda a: a.group_by("k").top_k(2, by="-f"), first(2, "-f")),
    "hierarchical top": of_a(lambda a: a.group_by("k").first(2, "-s", copies=True, hierarchical=True), first(2, "-s")),
    "argmin": of_a(lambda a: a.group_by("k").argmin("f"), first(1, "f", copies=False)),
    "argmax": of_a(lambda a: a.group_by("k").argmax("s"), first(1, "-s", copies=False)),
    "hierarchical argmin": of_a(lambda a: a.group_by("k").argmin("n", hierarchical=True), first(1, "n", copies=False)),
    "min of text": of_a(lambda a: a.group_by("k").min("s"), extreme(min, 1)),
    "max of text": of_a(lambda a: a.group_by("k").max("s", hierarchical=True), extreme(max, 1)),
    "min of nullable": of_a(lambda a: a.group_by("k").min("n"), extreme(min, 2)),
    "max of float": of_a(lambda a: a.group_by("k").max("f"), extreme(max, 3)),
    "totals": of_a(
        lambda a: a.group_by("k").aggregate(c="count", n=("sum", "n"), m=("avg", "n"), f=("sum", "f")), totals
    ),
    "reduce": of_a(lambda a: a.group_by("k").reduce(listed, text=str), in_order),
    "count by nullable": of_a(lambda a: a.count("s", "n"), lambda a: denotations.count(a, (1, 2))),
    "distinct": of_a(lambda a: a.distinct(), denotations.distinct),
    "join by nullable": of_a(
        lambda a: a.select("n", "s").join(a.select("n", "k"), on="n").select("s", "k"),
        lambda a: denotations.select(
            denotations.join(denotations.select(a, (2, 1)), denotations.select(a, (2, 0)), (0,), (0,)), (1, 2)
        ),
    ),
}


@examples(0.3)
@given(plays(ROWS, max_size=8))
def test_reductions_of_every_type(play):
    check(play, SCHEMAS, VALUES)


@examples(0.2)
@given(plays(ROWS, max_size=6, coordinates=2, largest=1))
def test_reductions_of_every_type_where_times_have_two_coordinates(play):
    check(play, SCHEMAS, VALUES)


@examples(0.1)
@given(plays({"a": st.tuples(st.just("y"), st.none(), st.integers(0, 1) | st.none(), st.just(0.5))}, max_size=5))
def test_rows_without_any_text_are_ordered_by_their_other_columns(play):
    check(play, SCHEMAS, {name: query for name, query in VALUES.items() if "text" in name})


@pytest.mark.parametrize("order", list(itertools.permutations(["pear", "apple", "fig"])))
def test_ties_between_rows_are_broken_by_text_not_by_arrival(order):
    with kpg.open() as db:
        offers = db.input("offers", item=int, price=int, seller=str)
        best = offers.group_by("item").argmin("price").output()
        for seller in order:
            offers.insert([(1, 10, seller)])
            db.advance()
        assert best.rows() == [(1, 10, "apple")]


def test_dates_and_decimals_have_first_and_last():
    with kpg.open() as db:
        when = datetime.date
        a = db.input("a", k=int, d=datetime.date, p=kpg.decimal(10, 2))
        last = a.group_by("k").max("d").output()
        total = a.group_by("k").sum("p").output()
        mean = a.group_by("k").avg("p").output()
        a.insert([(1, when(2024, 2, 29), Decimal("1.10")), (1, when(1969, 7, 20), Decimal("-2.35"))])
        db.advance()
        assert last.rows() == [(1, when(2024, 2, 29))]
        assert total.rows() == [(1, Decimal("-1.25"))]
        assert mean.rows() == [(1, -0.625)]


FLOATS = st.floats(2**-30, 2**30, width=32)


@examples(0.5)
@given(st.lists(FLOATS | FLOATS.map(float.__neg__), min_size=1, max_size=8), st.randoms())
def test_a_sum_of_floats_is_the_same_in_any_order_and_exactly_undone(values, random):
    """Sums are exact until they are read, so a removal restores the sum without the row."""
    with kpg.open() as db:
        a = db.input("a", f=float)
        total = a.group_by().sum("f").output()
        noise = [1e18, -1e-18, 3.3, 1e18]
        rows = values + noise
        random.shuffle(rows)
        a.insert([(value,) for value in rows])
        db.advance()
        a.remove([(value,) for value in noise])
        db.advance()
        assert total.rows() == [(float(sum(map(Fraction, values))),)]
