"""A wrong call raises the documented error, and everything else continues.

After each test the db must still take rows, advance and answer.
"""

import threading

import numpy as np
import pyarrow as pa
import pytest

import kpg
from kpg.algebra.frontier import Frontier

col = kpg.col
NO_ROWS = pa.table({"a": pa.array([], pa.int64()), "b": pa.array([], pa.string())})


@pytest.fixture
def db():
    """A db with a query that the tests do not touch; it must still work afterwards."""
    with kpg.open() as db:
        witness = db.input("witness", n=int)
        total = witness.group_by().sum("n").output("total")
        witness.insert([(1,)])
        db.advance()
        yield db
        if db.time and not db._closed:
            witness.insert([(2,)])
            db.advance()
            assert total.rows() == [(3,)]


@pytest.fixture
def pairs(db):
    return db.input("pairs", a=int, b=str)


# Rows


@pytest.mark.parametrize(
    "rows",
    [
        [(1,)],
        [(1, "x", 2)],
        [("x", 1)],
        [(1, None)],
        [(None, "x")],
        [(1.5, "x")],
        [(2**63, "x")],
        [(-(2**63) - 1, "x")],
        [1, 2],
        "text",
        7,
        None,
        {"a": [1, 2], "b": ["x"]},
        {"a": [1]},
        {"a": [1], "c": ["x"]},
        pa.table({"a": [1], "c": ["x"]}),
        pa.table({"a": ["x"], "b": ["x"]}),
        np.zeros((2, 3), np.int64),
    ],
    ids=str,
)
def test_an_insert_with_one_wrong_row_inserts_nothing(db, pairs, rows):
    answer = pairs.output()
    for take in (pairs.insert, pairs.remove, lambda rows: pairs.update_at(rows, 5)):
        with pytest.raises((kpg.SchemaMismatch, kpg.UndefinedName)):
            take(rows)
    db.advance()
    assert answer.rows() == []


@pytest.mark.parametrize("rows", [[], {"a": [], "b": []}, NO_ROWS], ids=["list", "dict", "arrow"])
def test_an_empty_insert_changes_nothing(db, pairs, rows):
    answer = pairs.output()
    pairs.insert(rows)
    pairs.remove(rows)
    pairs.update_at(rows, db.epoch)
    steps = db.worker.steps
    db.advance()
    assert answer.rows() == [] and list(answer.changes()) == []
    assert db.worker.steps == steps, "nothing had to be done"


def test_the_largest_and_smallest_numbers_are_keys_like_any_other(db):
    wide = db.input("wide", k=int, v=int)
    extremes = [2**62, 2**63 - 1, -(2**63), -(2**62), 0, -1]
    joined = wide.join(wide.rename(v="w"), on="k").output()
    counted, ordered = wide.count("k").output(), wide.group_by().min("k").output()
    last = wide.group_by().max("k").output()
    reached = wide.select("k").iterate(lambda v: v.distinct()).output()
    wide.insert([(key, key) for key in extremes])
    db.advance()
    assert joined.rows() == [(key, key, key) for key in sorted(extremes)]
    assert counted.rows() == [(key, 1) for key in sorted(extremes)]
    assert ordered.rows() == [(-(2**63),)] and last.rows() == [(2**63 - 1,)]
    assert reached.rows() == [(key,) for key in sorted(extremes)]


def test_a_nullable_column_refuses_the_number_that_represents_null(db):
    maybe = db.input("maybe", n=int | None)
    with pytest.raises(kpg.SchemaMismatch):
        maybe.insert([(-(2**63),)])
    maybe.insert([(None,), (-(2**63) + 1,)])
    db.advance()
    assert maybe.output().rows() == [(None,), (-(2**63) + 1,)]


@pytest.mark.parametrize("diff", [1.5, "1", None, [1], [1, 2, 3], 2**64])
def test_diffs_are_one_integer_or_one_for_each_row(db, pairs, diff):
    with pytest.raises((kpg.SchemaMismatch, kpg.TypeMismatch)):
        pairs.update_at([(1, "x"), (2, "y")], db.epoch, diff)
    pairs.update_at([(1, "x"), (2, "y")], db.epoch, [2, 3])
    db.advance()
    assert len(pairs.output().rows()) == 5


# Columns and types


def test_an_unknown_column_is_named_in_the_error(db, pairs):
    for wrong in (
        lambda: pairs.select("c"),
        lambda: pairs.select(d=col("c") + 1),
        lambda: pairs.filter(col("c") == 1),
        lambda: pairs.join(pairs, on="c"),
        lambda: pairs.group_by("c"),
        lambda: pairs.count("c"),
        lambda: pairs.group_by("a").sum("c"),
        lambda: pairs.group_by("a").min("c"),
        lambda: pairs.group_by("a").top_k(1, by="-c"),
        lambda: pairs.arrange("c"),
        lambda: pairs.explode("c"),
        lambda: pairs.rename(c="d"),
        lambda: db.input("more", key="c", a=int),
        lambda: db["nothing"],
    ):
        with pytest.raises(kpg.UndefinedName):
            wrong()


def test_types_that_do_not_fit_are_refused_when_the_query_is_described(db, pairs):
    other = db.input("other", a=str, n=float)
    for wrong in (
        lambda: pairs.join(other, on="a"),
        lambda: pairs.semijoin(other, on="a"),
        lambda: pairs.antijoin(other, on={"b": "n"}),
        lambda: pairs.concat(other),
        lambda: pairs.subtract(pairs.select("a")),
        lambda: pairs.select(x=col("a") + col("b")),
        lambda: pairs.filter(col("a")),
        lambda: pairs.group_by("a").sum("b"),
        lambda: pairs.group_by("a").avg("b"),
        lambda: pairs.explode("b"),
        lambda: pairs.delay(col("b")),
        lambda: pairs.iterate(lambda v: v.select("a")),
        lambda: db.input("wrong", a="no such type"),
    ):
        with pytest.raises(kpg.TypeMismatch):
            wrong()


def test_queries_without_meaning_are_refused(db, pairs):
    for wrong in (
        lambda: pairs.select(),
        lambda: pairs.select("a", "a"),
        lambda: pairs.threshold(0),
        lambda: pairs.group_by("a").top_k(0, by="b"),
        lambda: pairs.group_by("a").first(0, "b"),
        lambda: pairs.group_by("a").aggregate(),
        lambda: pairs.group_by("a").aggregate(x=("median", "a")),
        lambda: pairs.group_by("a", "a"),
        lambda: pairs.arrange("a", "a"),
        lambda: pairs.group_by("a").count("a"),
        lambda: pairs.rename(a="b"),
        lambda: db.input("none"),
    ):
        with pytest.raises((kpg.BadPlan, kpg.SchemaMismatch)):
            wrong()


@pytest.mark.parametrize("by", [("a", "b"), ("b", "b"), ("b", "-b")])
def test_ordering_by_a_key_or_twice_is_harmless(db, pairs, by):
    answer = pairs.group_by("a").top_k(1, by=by).output()
    pairs.insert([(1, "y"), (1, "x")])
    db.advance()
    assert answer.rows() == [(1, "x")]


# Time


def test_rows_before_the_clock_are_refused(db, pairs):
    db.advance_to(5)
    with pytest.raises(kpg.TimeTooEarly, match="cannot insert into pairs at 4"):
        pairs.update_at([(1, "x")], 4)
    with pytest.raises(kpg.TimeTooEarly, match="at 3"):
        pairs.update_at([(1, "x"), (2, "y")], [6, 3])
    pairs.update_at([(1, "x")], 5)
    db.advance()
    assert pairs.output().rows() == [(1, "x")]


@pytest.mark.parametrize("time", [-1, 1.5, "3", None, (1, 2), (), 2**63, [1, 2, 3], [[1], [2]]])
def test_times_are_epochs(db, pairs, time):
    with pytest.raises((kpg.TypeMismatch, kpg.SchemaMismatch, kpg.TimeTooEarly)):
        pairs.update_at([(1, "x")], time)


@pytest.mark.parametrize("time", [-1, 1.5, "3", None, (1, 2), (), 2**63])
def test_the_clock_advances_to_epochs(db, time):
    with pytest.raises(kpg.TypeMismatch):
        db.advance_to(time)


def test_the_clock_does_not_go_back(db):
    db.advance_to(5)
    with pytest.raises(kpg.TimeTooEarly, match="cannot advance back to 4"):
        db.advance_to(4)
    db.advance_to(5)
    assert db.epoch == 5


def test_a_frontier_of_other_times_is_refused(db):
    with pytest.raises(kpg.TypeMismatch):
        db.advance_to(Frontier([(1, 2)]))


def test_answers_are_readable_from_completion_until_compaction(db, pairs):
    answer, index = pairs.output(), pairs.arrange("a")
    db.advance_to(7)
    for read in (answer.snapshot, answer.rows, index.scan, lambda as_of: index.lookup(1, as_of=as_of)):
        with pytest.raises(kpg.TimeNotReached, match="not complete at 7"):
            read(as_of=7)
        with pytest.raises(kpg.TimeTooEarly, match="cannot be read as of 5 any more"):
            read(as_of=5)
        with pytest.raises(kpg.TypeMismatch):
            read(as_of=-1)
        read(as_of=6)


def test_history_sets_how_far_back_answers_are_readable():
    with kpg.open(history=2) as db:
        a = db.input("a", x=int)
        answer = a.output()
        for epoch in range(6):
            a.insert([(epoch,)])
            db.advance()
        db.idle()
        for as_of in (3, 4, 5):
            assert answer.rows(as_of=as_of) == [(x,) for x in range(as_of + 1)]
        with pytest.raises(kpg.TimeTooEarly):
            answer.rows(as_of=2)


def test_a_read_before_the_first_advance_is_refused():
    with kpg.open() as db:
        answer = db.input("a", x=int).output()
        with pytest.raises(kpg.TimeNotReached, match="nothing is complete yet"):
            answer.rows()


def test_a_db_of_several_clocks_needs_advance_to():
    with kpg.open(coordinates=2) as db:
        a = db.input("a", x=int)
        with pytest.raises(kpg.KpgError, match="single clock"):
            db.advance()
        a.update_at([(1,)], (0, 3))
        db.advance_to((1, 1))
        with pytest.raises(kpg.TimeTooEarly):
            a.update_at([(1,)], (0, 5))
        assert a.output().snapshot(as_of=(0, 9)).num_rows == 1


def test_after_the_end_of_time_inserts_are_refused_and_reads_work(db, pairs):
    answer = pairs.output()
    pairs.update_at([(1, "x")], 40)
    db.advance_to(Frontier())
    assert answer.rows(as_of=40) == [(1, "x")] and answer.rows(as_of=10**6) == [(1, "x")]
    assert answer.rows(as_of=39) == []
    for refused in (
        lambda: pairs.insert([(2, "y")]),
        lambda: pairs.update_at([(2, "y")], 50),
        lambda: db.advance_to(60),
        db.advance,
    ):
        with pytest.raises((kpg.Closed, kpg.TimeTooEarly)):
            refused()


# After the end


def test_a_closed_input_takes_no_rows_and_keeps_its_own(db, pairs):
    pairs.insert([(1, "x")])
    pairs.close()
    pairs.close()
    for refused in (pairs.insert, pairs.remove, lambda rows: pairs.update_at(rows, 9)):
        with pytest.raises(kpg.Closed, match="input pairs is closed"):
            refused([(2, "y")])
    db.advance()
    assert pairs.output().rows() == [(1, "x")]


def test_a_released_answer_refuses_all_use(db, pairs):
    answer = pairs.output("gone")
    answer.release()
    answer.release()
    for refused in (answer.rows, answer.changes, answer.frontier, lambda: answer.on_change(print)):
        with pytest.raises(kpg.Closed, match="gone was released"):
            refused()
    with pytest.raises(kpg.UndefinedName):
        db["gone"]
    assert pairs.output("gone").rows() == []


def test_a_released_arrangement_refuses_all_use(db, pairs):
    index = pairs.select("a").arrange("a")
    index.release()
    index.release()
    for refused in (
        index.scan,
        lambda: index.lookup(1),
        lambda: index.count("a").output(),
        lambda: index.join(pairs, on="a").output(),
    ):
        with pytest.raises(kpg.Closed):
            refused()


def test_answers_have_different_names_even_when_unnamed(db, pairs):
    first, second = pairs.output(), pairs.output()
    first.release()
    third = pairs.output()
    assert third.name != second.name
    with pytest.raises(kpg.InUse):
        pairs.output(second.name)


def test_two_inputs_cannot_have_one_name(db, pairs):
    with pytest.raises(kpg.InUse, match="there is an input 'pairs' already"):
        db.input("pairs", a=int)


def test_a_relation_with_readers_cannot_be_dropped(db, pairs):
    answer = pairs.count("a").output("counts")
    with pytest.raises(kpg.InUse, match="counts"):
        pairs.drop()
    answer.release()
    index = pairs.arrange("a")
    with pytest.raises(kpg.InUse):
        pairs.drop()
    index.release()
    again = pairs.arrange("b")
    with pytest.raises(kpg.InUse):
        pairs.drop()
    again.release()
    pairs.insert([(1, "x")])
    pairs.drop()
    for refused in (lambda: pairs.insert([(1, "x")]), lambda: pairs.output(), lambda: pairs.count("a").output()):
        with pytest.raises(kpg.Closed):
            refused()
    fresh = db.input("pairs", a=int)
    fresh.insert([(5,)])
    db.advance()
    assert fresh.output().rows() == [(5,)]


def test_a_relation_without_readers_can_be_dropped(db, pairs):
    query = pairs.count("a")
    pairs.drop()
    with pytest.raises(kpg.Closed):
        query.output()


def test_a_closed_db_refuses_all_use(db, pairs):
    answer, index = pairs.output(), pairs.arrange("a")
    db.close()
    db.close()
    for refused in (
        db.advance,
        db.settle,
        answer.rows,
        answer.changes,
        index.scan,
        lambda: pairs.insert([(1, "x")]),
        lambda: db.input("more", a=int),
        lambda: pairs.count("a").output(),
    ):
        with pytest.raises(kpg.Closed):
            refused()
    answer.release()
    index.release()


# Threads


def test_another_thread_is_refused_and_changes_nothing(db, pairs):
    answer, index = pairs.output(), pairs.arrange("a")
    raised: list[BaseException] = []

    def elsewhere():
        for forbidden in (
            lambda: pairs.insert([(1, "x")]),
            lambda: pairs.update_at([(1, "x")], 9),
            db.advance,
            lambda: db.advance_to(9),
            db.idle,
            answer.rows,
            answer.changes,
            index.scan,
            pairs.close,
            pairs.drop,
            lambda: pairs.count("a").output(),
            lambda: db.input("more", a=int),
            answer.release,
            index.release,
            db.close,
        ):
            try:
                forbidden()
            except kpg.WrongThread as error:
                raised.append(error)

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert len(raised) == 15
    pairs.insert([(1, "x")])
    db.advance()
    assert answer.rows() == [(1, "x")]
