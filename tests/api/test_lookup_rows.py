"""Rows with a key as tuples are those of the table with that key, at any time that can be read."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kpg
from kpg.columns.rows import rows_of
from kpg.errors import Closed, DataError
from tests.api.plays import examples

updates = st.tuples(st.integers(0, 3), st.sampled_from([None, "a", "b"]), st.sampled_from([1, 1, -1]))


@examples(1)
@given(st.lists(st.lists(updates, max_size=4), min_size=1, max_size=6))
def test_tuples_are_the_rows_of_the_table_and_of_the_model(epochs):
    with kpg.open(history=100) as db:
        relation = db.input("r", s="string?", k=int)
        by_key = relation.arrange("k")
        counts, times = Counter(), []
        for epoch in epochs:
            for key, text, diff in epoch:
                relation.update_at([(text, key)], db.epoch, diff)
                counts[text, key] += diff
            times.append(counts.copy())
            db.advance()
        for time, present in enumerate(times):
            for key in range(4):
                rows = Counter({row: n for row, n in present.items() if row[1] == key and n})
                if min(rows.values(), default=0) < 0:
                    with pytest.raises(DataError, match="fewer than zero times"):
                        by_key.lookup_rows(key, as_of=time)
                    continue
                tuples = by_key.lookup_rows(key, as_of=time)
                assert Counter(tuples) == rows
                assert tuples == rows_of(by_key.lookup(key, as_of=time), by_key.schema)


def test_a_released_arrangement_has_no_rows_to_look_up():
    with kpg.open() as db:
        by_key = db.input("r", k=int).arrange("k")
        by_key.release()
        with pytest.raises(Closed, match="was released"):
            by_key.lookup_rows(1)


def test_tuples_of_a_db_in_the_background_and_on_workers():
    for options in ({"background": True}, {"workers": 2}):
        with kpg.open(**options) as db:
            relation = db.input("r", k=int, v=int)
            by_key = relation.arrange("k")
            relation.insert([(1, 2), (1, 2), (3, 4)])
            db.advance()
            assert by_key.lookup_rows(1) == [(1, 2), (1, 2)]
            assert by_key.lookup_rows(2) == []
