"""Inputs: rows are inserted, removed and replaced, at the open epoch or later, until the input is closed (A1.10)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kpg
from tests.api.plays import examples


def test_insert_remove_advance_close():
    """A1.10: the life of an input."""
    with kpg.open() as db:
        edges = db.input("edges", src=int, dst=int)
        answer = edges.output()
        edges.insert([(1, 2), (2, 3)])
        assert db.advance() == 0 and answer.rows() == [(1, 2), (2, 3)]
        edges.remove([(1, 2)])
        edges.update_at([(5, 6)], 4)
        db.advance_to(4)
        assert answer.rows() == [(2, 3)]
        db.advance()
        assert answer.rows() == [(2, 3), (5, 6)]
        edges.close()
        assert not answer.frontier()


KEYS, VALUES = st.integers(0, 3), st.integers(0, 2)
ACTIONS = st.one_of(
    st.tuples(st.just("upsert"), st.lists(st.tuples(KEYS, VALUES), min_size=1, max_size=3)),
    st.tuples(st.just("remove"), KEYS),
    st.tuples(st.just("advance"), st.integers(1, 3)),
    st.tuples(st.just("idle"), st.just(None)),
)


@examples(0.5)
@given(st.lists(ACTIONS, max_size=12), st.sampled_from([None, 0]))
def test_upserts_keep_the_last_row_of_each_key(actions, history):
    with kpg.open(history=history) as db:
        users = db.input("users", key="id", id=int, level=int)
        answer, changes = users.output(), users.count("id").output()
        model: dict[int, int] = {}
        for kind, what in [*actions, ("advance", 1)]:
            if kind == "upsert":
                users.upsert(what)
                model.update(what)
            elif kind == "remove" and what in model:
                users.remove([(what, model.pop(what))])
            elif kind == "idle":
                db.idle()
            elif kind == "advance":
                db.advance_to(db.epoch + what)
                assert answer.rows() == sorted(model.items())
                assert changes.rows() == [(key, 1) for key in sorted(model)]


def test_an_upsert_is_refused_while_rows_for_later_times_wait():
    with kpg.open() as db:
        users = db.input("users", key="id", id=int, level=int)
        users.update_at([(1, 10)], 3)
        for _ in range(2):
            with pytest.raises(kpg.SchemaMismatch, match="while it holds rows for later times"):
                users.upsert([(1, 20)])
            db.advance()
        db.advance_to(4)
        users.upsert([(1, 20)])
        db.advance()
        assert users.output().rows() == [(1, 20)]


def test_only_inputs_with_a_key_take_upserts():
    with kpg.open() as db:
        with pytest.raises(kpg.SchemaMismatch, match="has no key"):
            db.input("plain", a=int).upsert([(1,)])


def test_several_inputs_share_one_clock():
    """A busy and a quiet input never stall each other: one advance completes both."""
    with kpg.open() as db:
        busy, quiet = db.input("busy", x=int), db.input("quiet", x=int)
        joined = busy.join(quiet, on="x").output()
        quiet.insert([(1,)])
        for epoch in range(5):
            busy.insert([(1,)])
            db.advance()
            assert len(joined.rows()) == epoch + 1


def test_pending_rows_are_invisible_until_the_advance():
    with kpg.open() as db:
        a = db.input("a", x=int)
        answer = a.output()
        a.insert([(1,)])
        db.advance()
        a.insert([(2,)])
        db.settle()
        assert answer.rows() == [(1,)]
        a.remove([(2,)])
        db.advance()
        assert answer.rows() == [(1,)]


def test_an_upsert_finds_its_key_when_another_index_was_built_first():
    """An index by another column, built before the first row, is not the base that upserts search."""
    with kpg.open() as db:
        users = db.input("users", key="id", id=int, name=str)
        by_name = users.arrange("name")
        answer = by_name.join(users.count("name"), on="name").select("name", "count").distinct().output()
        for names in (2, 3, 4):
            users.upsert([(number, f"name {number % names}") for number in range(12)])
            db.advance()
            assert sorted(answer.rows()) == [(f"name {name}", 12 // names) for name in range(names)]


def test_upserts_see_rows_that_were_pushed_but_not_processed_yet():
    with kpg.open(history=None) as db:
        prices = db.input("prices", key="what", what=str, price=int)
        kept = prices.arrange("what")
        for price in (20, 25, 30, 30):
            prices.upsert([("bolt", price)])
            db.push_to(db.epoch + 1)
        db.advance()
        assert [kept.scan(as_of=time)["price"].to_pylist() for time in range(5)] == [[20], [25], [30], [30], [30]]
