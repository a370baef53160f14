"""Sums of any floats are exact, rounded once, and undone by retraction to the last bit.

Within 2^-128 to 2^63 they are kept as parts in the diff. Others (1e300, 1e-300, infinite, not a number) are outliers:
their group is summed again at each change, with the same result.
"""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kpg
from kpg import col
from tests.api.plays import examples

INF, NAN = math.inf, math.nan


def exactly(values, count=1):
    """Return the sum as IEEE arithmetic would give it if it rounded once."""
    strange = [value for value in values if not math.isfinite(value)]
    if strange:
        return sum(strange)
    total = sum(map(Fraction, values)) / count
    try:
        return float(total)
    except OverflowError:
        return INF if total > 0 else -INF


def alike(have, want):
    return (math.isnan(have) and math.isnan(want)) or have == want


def totals(*epochs):
    """Return sum and average after each epoch of (value, diff)."""
    aggregates = []
    with kpg.open() as db:
        rows = db.input("rows", k=int, x=float)
        answer = rows.group_by("k").aggregate(n="count", total=("sum", "x"), mean=("avg", "x")).output("answer")
        for epoch in epochs:
            for value, diff in epoch:
                rows.update_at([(7, value)], db.epoch, diff)
            db.advance()
            aggregates += [row[1:] for row in answer.rows()] or [None]
    return aggregates


@pytest.mark.parametrize(
    "values",
    [
        [1e300],
        [1e-300],
        [1e300, 1.0],
        [1e300, -1e300, 1.0],
        [1e300, 1e-300, -1e300],
        [5e-324, 5e-324],
        [1.7e308, 1.7e308],
        [-1.7e308, -1.7e308],
        [1.7e308, 1.7e308, -1.7e308],
        [INF],
        [INF, 1e300, 3.0],
        [-INF, 1.0],
        [INF, -INF],
        [NAN],
        [NAN, INF, 1.0],
        [2.0**63, 2.0**-128],
        [0.1] * 10 + [1e20],
    ],
    ids=str,
)
def test_sums_of_any_floats_are_exact_sums_rounded_once(values):
    """Also where the cancelling values are far larger than the remaining ones."""
    n, total, mean = totals([(value, 1) for value in values])[0]
    assert n == len(values) and alike(total, exactly(values)) and alike(mean, exactly(values, len(values)))


def test_removing_an_outlier_restores_the_sum():
    """Infinite, not a number, huge: after their removal the sum is as if they had never been inserted."""
    plain = [(0.1, 1), (0.2, 1)]
    huge, strange = [(-INF, -1), (1e300, 1)], [(NAN, 1)]
    aggregates = totals(plain, [(INF, 1)], [(-INF, 1)], [(INF, -1)], huge, [(1e300, -1)], strange, [(NAN, -1)])
    sums = [total for _, total, _ in aggregates]
    assert sums[0] == sums[5] == sums[7] == exactly([0.1, 0.2])
    assert sums[1] == INF and math.isnan(sums[2]) and sums[3] == -INF and sums[4] == 1e300 and math.isnan(sums[6])


def test_a_group_of_only_outliers_ends_with_them():
    assert totals([(INF, 1)], [(INF, -1)], [(1e-300, 1)]) == [(1, INF, INF), None, (1, 1e-300, 1e-300)]


def test_outliers_in_one_column_leave_the_others_alone():
    """Integers and floats summed together, some of them null; groups without outliers stay on the fast path."""
    with kpg.open() as db:
        rows = db.input("rows", k=str, a=int, x=float, y=float | None)
        asked = {"a": ("sum", "a"), "x": ("sum", "x"), "y": ("sum", "y"), "my": ("avg", "y")}
        answer = rows.group_by("k").aggregate(**asked).output("answer")
        rows.insert([("p", 1, 1e300, None), ("p", 2, 2.5, None), ("r", 5, 1.0, 2.0)])
        rows.insert([("q", 3, 0.5, 1.5), ("q", 4, 0.5, NAN)])
        db.advance()
        p, q, r = sorted(answer.rows())
        assert p == ("p", 3, 1e300, None, None) and r == ("r", 5, 1.0, 2.0, 2.0)
        assert q[:3] == ("q", 7, 1.0) and math.isnan(q[3]) and math.isnan(q[4])


VALUES = st.sampled_from([0.5, 0.1, -0.1, 1e300, -1e300, 1e-300, INF, -INF, NAN, 2.0**80, -(2.0**80)])


@examples(0.5)
@given(st.lists(st.lists(st.tuples(st.integers(0, 1), VALUES), max_size=4), min_size=1, max_size=4))
def test_outliers_are_inserted_and_removed_in_any_order(epochs):
    """Present values are removed and absent ones inserted; sums are exact to the last bit."""
    with kpg.open() as db:
        rows = db.input("rows", k=int, x=float)
        answer = rows.group_by("k").sum("x").output("answer")
        present: dict[tuple[int, str], float] = {}
        for epoch in epochs:
            for key, value in epoch:
                there = (key, str(value)) in present
                (rows.remove if there else rows.insert)([(key, value)])
                if there:
                    del present[key, str(value)]
                else:
                    present[key, str(value)] = value
            db.advance()
            want = {k: exactly([v for (at, _), v in present.items() if at == k]) for k in {at for at, _ in present}}
            have = dict(answer.rows())
            assert have.keys() == want.keys() and all(alike(have[k], want[k]) for k in want), (have, want)


def test_outliers_inside_a_loop():
    """Sums in a recursion, at times of two coordinates: halving from far outside the range into it."""
    with kpg.open() as db:
        start = db.input("start", k=int, x=float)

        def step(rows):
            halved = rows.filter(col("x") > 1.0).select("k", x=col("x") / 1e10)
            return halved.concat(start).group_by("k").sum("x")

        answer = start.iterate(step, max_rounds=100).output("answer")
        start.insert([(1, 1e30)])
        db.advance()
        x, seen = 1e30, []
        while x not in seen[-1:]:
            seen.append(x)
            x = exactly([x / 1e10, 1e30]) if x > 1.0 else 1e30
        assert answer.rows() == [(1, x)]
        start.insert([(1, INF)])
        db.advance()
        assert answer.rows() == [(1, INF)]
        start.remove([(1, INF)])
        db.advance()
        assert answer.rows() == [(1, x)]


def test_without_outliers_nothing_extra_is_kept():
    """The path for outliers exists, and is empty."""
    with kpg.open() as db:
        rows = db.input("rows", k=int, x=float)
        answer = rows.group_by("k").sum("x").output("answer")
        rows.insert([(k % 5, float(k)) for k in range(100)])
        db.advance()
        held = {arrangement["name"]: arrangement["rows"] for arrangement in db.describe()["arrangements"]}
        assert held["arrange k"] == 5
        assert [count for name, count in held.items() if "outlier" in name] == [0, 0, 0]
        assert dict(answer.rows())[0] == sum(range(0, 100, 5))
