"""Inputs with keep=False: a query sees the rows inserted after its installation, and nothing keeps the others."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kpg

ROWS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=4)


def open_pair(db):
    return db.input("stream", keep=False, key=int, value=int), db.input("table", key=int, name=int)


def pairs(stream_rows, table_rows):
    return sorted((key, value, name) for key, value in stream_rows for other, name in table_rows if key == other)


@given(before=ROWS, epochs=st.lists(st.tuples(ROWS, ROWS), max_size=4), table=ROWS)
def test_a_query_sees_the_rows_after_its_installation(before, epochs, table):
    with kpg.open() as db:
        stream, other = open_pair(db)
        other.insert(table)
        stream.insert(before)
        db.advance()
        joined = stream.join(other, on="key").output()
        counted = stream.count("key").output()
        seen = []
        for inserted, added in epochs:
            stream.insert(inserted)
            other.insert(added)
            db.advance()
            seen += inserted
            table = table + added
            assert sorted(joined.rows()) == pairs(seen, table)
            assert dict(counted.rows()) == {key: [k for k, _ in seen].count(key) for key, _ in seen}


def test_rows_of_a_stream_may_be_removed_again():
    with kpg.open() as db:
        stream, _ = open_pair(db)
        answer = stream.output()
        stream.insert([(1, 1), (2, 2)])
        db.advance()
        stream.remove([(1, 1)])
        db.advance()
        assert answer.rows() == [(2, 2)]


def test_a_stream_on_two_workers():
    with kpg.open(workers=2) as db:
        stream, other = open_pair(db)
        other.insert([(1, 10), (2, 20)])
        stream.insert([(1, 1)])
        db.advance()
        joined = stream.join(other, on="key").output("joined")
        index = stream.arrange("value")
        stream.insert([(1, 5), (2, 6)])
        db.advance()
        assert sorted(joined.rows()) == [(1, 5, 10), (2, 6, 20)]
        assert index.lookup(5).num_rows == 1
        assert joined.reads == {"stream", "table"}


def test_a_stream_keeps_nothing_in_memory_or_on_disk(tmp_path):
    with kpg.open(tmp_path) as db:
        stream, _ = open_pair(db)
        stream.insert([(n, n) for n in range(1000)])
        db.advance()
        assert db.describe()["arrangements"] == []
    with kpg.open(tmp_path) as db:
        stream, _ = open_pair(db)
        answer = stream.output()
        stream.insert([(7, 7)])
        db.advance()
        assert answer.rows() == [(7, 7)]


def test_a_stream_is_dropped_after_its_readers():
    with kpg.open() as db:
        stream, _ = open_pair(db)
        answer = stream.output("answer")
        with pytest.raises(kpg.InUse, match="cannot drop stream"):
            stream.drop()
        answer.release()
        stream.drop()
        assert "stream" not in db.inputs


def test_a_closed_stream_completes_its_readers():
    with kpg.open() as db:
        stream, _ = open_pair(db)
        answer = stream.output()
        stream.insert([(1, 1)])
        stream.close()
        db.advance()
        assert answer.rows() == [(1, 1)] and not answer.frontier()


@pytest.mark.parametrize("call", [lambda s: s.upsert([(1, 1)]), lambda s: s.keep_by("key")])
def test_what_needs_kept_rows_is_refused(call):
    with kpg.open() as db:
        stream, _ = open_pair(db)
        with pytest.raises(kpg.KpgError):
            call(stream)


def test_the_key_of_a_stream_is_a_promise_that_is_not_checked():
    with kpg.open() as db:
        stream = db.input("stream", {"a": int, "b": int}, keep=False, key="a")
        rows = stream.output("rows")
        stream.insert([(1, 1), (1, 2)])
        db.advance()
        assert rows.rows() == [(1, 1), (1, 2)]
        with pytest.raises(kpg.BadPlan, match="keeps no rows"):
            stream.upsert([(1, 3)])
