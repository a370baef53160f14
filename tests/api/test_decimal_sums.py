"""Sums and averages of decimals and of int64 are exact at every time, and fail only where they leave 38 digits."""

from collections import defaultdict
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kpg
from kpg import col

LIMIT = 10**38 - 1
WIDE = st.sampled_from([LIMIT, -LIMIT, 1, -1]) | st.integers(-LIMIT, LIMIT)
ROWS = st.tuples(
    st.integers(0, 1),
    st.none() | WIDE.map(lambda number: Decimal(f"{number}e-5")),
    st.integers(-(10**18) + 1, 10**18 - 1).map(lambda number: Decimal(f"{number}e-2")),
    st.integers(-(2**63), 2**63 - 1),
)
SCHEMA = {"g": int, "w": "decimal(38,5)?", "n": "decimal(18,2)", "i": int}
PLAYS = st.lists(st.lists(ROWS, max_size=4), min_size=1, max_size=4)


def rounded(value: Fraction, scale: int) -> Decimal:
    whole = int(abs(value) * 10**scale + Fraction(1, 2))
    return Decimal(f"{whole if value >= 0 else -whole}e-{scale}")


def expected_sums(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]] | None:
    """The answer: for each group its key and sums; None if a sum leaves 38 digits."""
    groups: dict[int, list[tuple[Any, ...]]] = defaultdict(list)
    for row in rows:
        groups[row[0]].append(row)
    answer = []
    for key, members in groups.items():
        wide = [Fraction(row[1]) for row in members if row[1] is not None]
        total = sum(wide) if wide else None
        if total is not None and abs(total) * 10**5 > LIMIT:
            return None
        narrow, whole = sum(Fraction(row[2]) for row in members), sum(row[3] for row in members)
        n = len(members)
        answer.append((
            key, None if total is None else rounded(total, 5), rounded(narrow, 2), Decimal(whole),
            None if total is None else rounded(total / len(wide), 5), rounded(narrow / n, 16),
            rounded(Fraction(whole, n), 16), n,
        ))  # fmt: skip
    return sorted(answer)


def sums_of(relation: Any) -> Any:
    return relation.group_by("g").aggregate(
        w=col("w").sum(),
        n=col("n").sum(),
        i=col("i").sum(returns="decimal(38,0)"),
        mw=col("w").avg(returns="decimal(38,5)"),
        mn=col("n").avg(returns="decimal(38,16)"),
        mi=col("i").avg(returns="decimal(38,16)"),
        count=kpg.count_rows(),
    )


def check(db: Any, play: list[list[tuple[Any, ...]]]) -> None:
    relation = db.input("r", kpg.Schema.of(SCHEMA))
    answer = sums_of(relation).output("sums")
    present: list[tuple[Any, ...]] = []
    for rows in play:
        relation.insert(rows)
        relation.remove(present[::2])
        present = present[1::2] + rows
        db.advance()
        expected = expected_sums(present)
        if expected is None:
            with pytest.raises(kpg.DataError, match="does not fit"):
                answer.rows()
        else:
            assert sorted(answer.rows()) == expected


@settings(max_examples=30)
@given(play=PLAYS)
def test_sums_and_averages_are_exact(play: list[list[tuple[Any, ...]]]) -> None:
    with kpg.open() as db:
        check(db, play)


def test_sums_of_two_workers_are_exact() -> None:
    big = Decimal(f"{LIMIT}e-5")
    first = [
        (0, big, Decimal("0.01"), 2**63 - 1),
        (1, big.copy_negate(), Decimal("-0.05"), -(2**63)),
        (0, None, Decimal(1), 1),
    ]
    with kpg.open(workers=2) as db:
        check(db, [first, [(0, big, Decimal(2), 2**63 - 1)], [(1, big, Decimal(3), 5)], []])


def test_a_sum_comes_back_when_it_fits_again() -> None:
    with kpg.open() as db:
        relation = db.input("r", x="decimal(38,0)")
        total = relation.group_by().sum("x").output("total")
        relation.insert([(Decimal(LIMIT),), (Decimal(LIMIT),)])
        db.advance()
        with pytest.raises(kpg.DataError, match="the sum does not fit its type"):
            total.rows()
        relation.insert([(Decimal(-LIMIT),), (Decimal(-5),)])
        db.advance()
        assert total.rows() == [(Decimal(LIMIT - 5),)]


def test_a_sum_at_another_scale_is_refused() -> None:
    with kpg.open() as db:
        relation = db.input("r", x="decimal(10,2)", f=float)
        with pytest.raises(kpg.TypeMismatch, match="is not decimal"):
            relation.group_by().aggregate(x=col("x").sum(returns="decimal(38,1)"))
        with pytest.raises(kpg.TypeMismatch, match="is not decimal"):
            relation.group_by().aggregate(x=col("f").avg(returns="decimal(38,1)"))
        with pytest.raises(kpg.BadPlan, match="not float64"):
            col("x").sum(returns=float)
