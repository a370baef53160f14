"""Joins of large loads with few rows: the answers are those of any other load, then and after every later change."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kpg
from kpg.trace import batcher, unsorted_batch

PAIRS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 2)), max_size=12)
CHANGES = st.lists(st.tuples(st.sampled_from(["large", "small"]), st.integers(0, 4), st.integers(0, 2)), max_size=4)


@pytest.fixture(autouse=True)
def _any_load_is_large(monkeypatch):
    monkeypatch.setattr(batcher, "MIN_LOAD_ROWS", 1)
    monkeypatch.setattr(unsorted_batch, "MIN_SCAN_RATIO", 0)


def joined(large: Counter, small: Counter) -> list[tuple[int, int, int]]:
    """Return the pairs with equal keys."""
    pairs = [(a, x, y) for a, x in large.elements() for b, y in small.elements() if a == b]
    return sorted(pairs)


@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("how", ["inner", "semi", "left"])
@given(PAIRS, PAIRS, st.lists(CHANGES, max_size=3), st.booleans())
def test_answers_do_not_depend_on_the_order_of_a_load(keep, how, first, second, epochs, late):
    with kpg.open() as db:
        large = db.input("large", keep=keep, a=int, x=int)
        small = db.input("small", keep=keep, a=int, y=int)
        if late and keep:
            large.insert(first)
            db.advance()
        answer = large.join(small, on="a", how=how).output("answer")
        other = large.count("a").output("other")
        if not (late and keep):
            large.insert(first)
        small.insert(second)
        contents = {"large": Counter(first), "small": Counter(second)}
        for epoch in [[], *epochs]:
            for name, key, value in epoch:
                sign = 1 if (key + value) % 3 or not contents[name][key, value] else -1
                (db[name].insert if sign > 0 else db[name].remove)([(key, value)])
                contents[name][key, value] += sign
            db.advance()
            assert sorted(answer.rows(), key=repr) == sorted(expected(how, contents), key=repr)
            counts = Counter(a for a, _ in contents["large"].elements())
            assert sorted(other.rows()) == sorted(counts.items())


def expected(how: str, contents: dict[str, Counter]) -> list[tuple]:
    """Return the rows of a join."""
    large, small = contents["large"], contents["small"]
    keys = {key for key, _ in small.elements()}
    if how == "semi":
        return [row for row in large.elements() if row[0] in keys]
    alone = [(*row, None) for row in large.elements() if row[0] not in keys]
    return joined(large, small) + (alone if how == "left" else [])
