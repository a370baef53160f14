"""How far an arrangement is reused: until the key changes, an operator loses it, or a copy is asked for (A3.19, A5.2).

The operators of a query show it: "arrange ..." is an index of its own, "import ..." one that it shares.
"""

import pytest

import kpg
from kpg import col


@pytest.fixture
def db():
    with kpg.open() as opened:
        opened.input("edges", src=int, dst=int)
        opened.input("nodes", node=int)
        yield opened


def arranges(query):
    """The indexes that a query makes for itself."""
    names = [operator.name for operator in query.probe()._dataflow.operators]
    return [name for name in names if name.startswith("arrange")]


def test_a_join_on_the_key_reuses_it(db):
    """A3.19: both sides, under any name."""
    by_src, by_node = db["edges"].arrange("src"), db["nodes"].arrange("node")
    assert arranges(by_src.join(by_node, on={"src": "node"})) == []


@pytest.mark.parametrize("keeping", ["filter", "negate", "concat"])
def test_operators_that_keep_the_key_keep_the_arrangement(db, keeping):
    """A3.19: they are views of the index."""
    by_src, by_node = db["edges"].arrange("src"), db["nodes"].arrange("node")
    view = {
        "filter": lambda: by_src.filter(col("dst") > 1),
        "negate": lambda: by_src.negate(),
        "concat": lambda: by_src.concat(by_src.negate().filter(col("dst") == 0)),
    }[keeping]()
    assert arranges(view.join(by_node, on={"src": "node"})) == []


def test_reuse_goes_on_through_a_reduction_by_the_same_key(db):
    """A3.19: its output is an arrangement too; reductions and joins by one key make none."""
    by_src, by_node = db["edges"].arrange("src"), db["nodes"].arrange("node")
    least = by_src.group_by("src").min("dst")
    assert arranges(least.join(by_node, on={"src": "node"})) == []
    assert arranges(least.join(by_src.group_by("src").top_k(2, by="dst"), on="src")) == []


def test_another_key_needs_another_arrangement(db):
    """A3.19: by that key, and only that."""
    by_src, by_node = db["edges"].arrange("src"), db["nodes"].arrange("node")
    assert arranges(by_src.join(by_node, on={"dst": "node"})) == ["arrange dst"]


@pytest.mark.parametrize("altering", ["select", "same columns", "flat_map", "explode"])
def test_operators_that_may_alter_the_key_give_a_stream(db, altering):
    """A3.19 A5.2: for any function of rows; a reader that needs an index of the result makes one."""
    by_src, by_node = db["edges"].arrange("src"), db["nodes"].arrange("node")
    altered = {
        "select": lambda: by_src.select(src=col("src") + 1, dst="dst"),
        "same columns": lambda: by_src.select("src", dst=col("dst") + 1),
        "flat_map": lambda: by_src.flat_map(lambda table: (range(table.num_rows), table), src=int, dst=int),
        "explode": lambda: by_src.select("src", "dst", n=2).explode("n"),
    }[altering]()
    assert arranges(altered.join(by_node, on={"src": "node"})) == ["arrange src"]
    assert not isinstance(altered, kpg.Arrangement)


def twice(table):
    """Each row two times, however the rows are cut into tables."""
    rows = [*range(table.num_rows)] * 2
    return rows, table.take(rows)


def test_a_stream_from_an_arrangement_has_its_rows(db):
    """A5.2: select and flat_map of an index see every update of it once, early or late."""
    edges = db["edges"]
    by_src = edges.arrange("src")
    doubled = by_src.select(src=col("src") * 2, dst="dst").output("early")
    edges.insert([(1, 2), (2, 3)])
    db.advance()
    edges.remove([(1, 2)])
    db.advance()
    late = by_src.flat_map(twice, src=int, dst=int).output("late")
    assert list(doubled.changes()) == [((2, 2), 0, 1), ((4, 3), 0, 1), ((2, 2), 1, -1)]
    assert late.rows() == [(2, 3), (2, 3)]


def test_a_copy_is_made_where_one_is_asked_for(db):
    """A3.19: arrange() of a view is an index of its own, which later queries share."""
    by_src, by_node = db["edges"].arrange("src"), db["nodes"].arrange("node")
    few = by_src.filter(col("dst") == 1).arrange("src")
    assert few.installed is not by_src.installed
    assert arranges(few.join(by_node, on={"src": "node"})) == []
    assert few.installed.publisher is not by_src.installed.publisher
    db["edges"].insert([(1, 1), (1, 2)])
    db.advance()
    assert (few.rows, by_src.rows) == (1, 2)


def test_an_arrangement_asked_for_twice_is_one(db):
    """A3.19"""
    assert db["edges"].arrange("src").installed is db["edges"].arrange("src").installed
