"""Collections are multisets, and one program loads and maintains (A2.6, A2.7)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kpg
from kpg import col
from kpg.testing.strategies import rows


def test_copies_of_a_row_are_counted():
    """A2.6: a row counts as often as it was inserted; only distinct removes copies."""
    with kpg.open() as db:
        words = db.input("words", word=str)
        answer, once = words.output("answer"), words.distinct().output("once")
        words.insert([("a",), ("a",), ("b",)])
        db.advance()
        assert answer.rows() == [("a",), ("a",), ("b",)]
        assert answer.snapshot(counts=True).to_pylist() == [{"word": "a", "count": 2}, {"word": "b", "count": 1}]
        assert once.rows() == [("a",), ("b",)]
        words.remove([("a",)])
        db.advance()
        assert answer.rows() == [("a",), ("b",)] and once.rows() == [("a",), ("b",)]
        assert list(once.changes())[2:] == [], "one copy less changes nothing for distinct"


def test_multiplicities_multiply_in_a_join():
    """A2.6"""
    with kpg.open() as db:
        left, right = db.input("left", k=int), db.input("right", k=int)
        answer = left.join(right, on="k").output("answer")
        left.insert([(1,)] * 2)
        right.insert([(1,)] * 3)
        db.advance()
        assert answer.snapshot(counts=True).to_pylist() == [{"k": 1, "count": 6}]


def test_a_removal_may_precede_its_insertion():
    """A2.6: a negative count is legal for a while; it is shown, and becomes positive again."""
    with kpg.open() as db:
        items = db.input("items", x=int)
        answer, there, number = items.output("answer"), items.distinct().output("there"), items.count("x").output("n")
        items.remove([(1,)])
        items.insert([(2,)])
        db.advance()
        assert answer.snapshot(counts=True).to_pylist() == [{"x": 1, "count": -1}, {"x": 2, "count": 1}]
        with pytest.raises(kpg.DataError, match="fewer than zero times"):
            answer.rows()
        assert there.rows() == [(2,)] and number.rows() == [(1, -1), (2, 1)]
        items.insert([(1,)])
        db.advance()
        assert answer.rows() == there.rows() == [(2,)] and number.rows() == [(2, 1)]


def test_within_one_transaction_the_order_does_not_matter():
    """A2.6"""
    with kpg.open() as db:
        items = db.input("items", x=int)
        answer = items.output("answer")
        items.remove([(1,)])
        items.insert([(1,)])
        db.advance()
        assert answer.rows() == [] and list(answer.changes()) == []


def program(db):
    """A join, a reduction and a recursion over one relation."""
    edges = db.input("edges", src=int, dst=int)
    by_src = edges.arrange("src")
    reach = edges.iterate(
        lambda seen: (
            by_src.join(seen.rename(src="root", dst="src"), on="src")
            .select(src="root", dst="dst")
            .concat(edges)
            .distinct()
        )
    )
    return edges, [
        reach.output("reach"),
        by_src.join(edges.rename(src="from", dst="src"), on="src").select("from", "dst").output("two hops"),
        reach.count("src").filter(col("count") > 1).output("hubs"),
    ]


@given(st.lists(rows(2, 3), max_size=8), st.lists(st.tuples(rows(2, 3), st.booleans()), max_size=8))
def test_loading_and_maintaining_are_the_same_program(load, changes):
    """A2.7: the operators that load also maintain; loaded together or row by row, the answers agree."""
    with kpg.open() as batch, kpg.open() as stream:
        (all_at_once, loaded), (one_by_one, followed) = program(batch), program(stream)
        built = [operators(db) for db in (batch, stream)]
        assert built[0] == built[1]
        all_at_once.insert(load)
        batch.advance()
        for row in load:
            one_by_one.insert([row])
            stream.advance()
        compare(loaded, followed, stream)
        present = list(load)
        for row, removed in changes:
            if removed and row not in present:
                continue
            present.remove(row) if removed else present.append(row)
            for relation, db in ((all_at_once, batch), (one_by_one, stream)):
                (relation.remove if removed else relation.insert)([row])
                db.advance()
            compare(loaded, followed, stream)
        assert built == [operators(db) for db in (batch, stream)], "nothing was built anew"


def operators(db):
    return [(flow.name, [op.name for op in flow.operators]) for flow in db.worker.dataflows.values()]


def compare(loaded, followed, stream):
    if stream.sealed is not None:
        assert [answer.rows() for answer in loaded] == [answer.rows() for answer in followed]
