"""One writer, many readers: each at its own pace, with its own version, early or late (A3.18, A4.5, A4.6, A4.8)."""

import gc

import numpy as np
import pytest

import kpg
from kpg.algebra.frontier import Frontier
from kpg.columns.updates import Updates, constant
from kpg.dataflow.channel import LocalPact
from kpg.operators.arrange import Publisher
from kpg.operators.deliver_updates import DeliverUpdates
from kpg.operators.import_arrangement import import_arrangement
from kpg.trace.batch import Batch
from kpg.trace.description import Description
from kpg.trace.key_history import read


def churn(db, rows, epochs):
    """Remove one row and insert the next in each epoch."""
    for epoch in range(epochs):
        rows.insert([(0, epoch)])
        if epoch:
            rows.remove([(0, epoch - 1)])
        db.advance()


# Import


def test_an_import_with_full_history_shows_every_time():
    """A4.5: the late query answers as the early one did."""
    with kpg.open(history=None) as db:
        rows = db.input("rows", k=int, v=int)
        by_key = rows.arrange("k")
        early = by_key.count("k", "v").output("early")
        churn(db, rows, 10)
        while db.idle():
            pass
        late = by_key.count("k", "v").output("late")
        assert sorted(late.changes()) == sorted(early.changes())
        assert [late.rows(as_of=time) for time in range(10)] == [[(0, time, 1)] for time in range(10)]


def test_an_import_from_an_advanced_frontier_shows_one_time():
    """A4.5 A17.5: rows that were inserted and removed before since are invisible; the others exist from since on."""
    with kpg.open(history=2) as db:
        rows = db.input("rows", k=int, v=int)
        by_key = rows.arrange("k")
        churn(db, rows, 10)
        late = by_key.count("k", "v").output("late")
        assert sorted(late.changes()) == [
            ((0, 7, 1), 7, 1),
            ((0, 7, 1), 8, -1),
            ((0, 8, 1), 8, 1),
            ((0, 8, 1), 9, -1),
            ((0, 9, 1), 9, 1),
        ]
        with pytest.raises(kpg.TimeTooEarly):
            late.rows(as_of=6)


def test_an_import_begins_at_the_since_of_its_handle():
    """A4.5: two imports of one trace, one from a handle that kept the past and one from a handle that did not."""
    with kpg.open(history=0) as db:
        rows = db.input("rows", k=int, v=int)
        by_key = rows.arrange("k")
        keeps = by_key.installed.handle.clone("keeps the past")
        keeps.set_physical(Frontier())
        churn(db, rows, 5)
        updates = {}
        for name, handle in (("advanced", by_key.installed.handle), ("full", keeps)):
            seen = updates[name] = []

            def build(dataflow, handle=handle, seen=seen):
                arranged = import_arrangement(dataflow, "rows", by_key.installed.publisher, handle)
                dataflow.add(DeliverUpdates("watch", seen.append), [(arranged.stream, LocalPact())], depth=1)
                arranged.handle.release()

            db.install(name, build)
        db.settle()
        times = {name: sorted({t for u in seen for t in u.times[0].tolist()}) for name, seen in updates.items()}
        assert times == {"advanced": [4], "full": [0, 1, 2, 3, 4]}
        keeps.release()


# No special mode


def test_a_query_attached_to_a_running_stream_is_built_as_any_other():
    """A4.6: the same operators in the same order, before the first row, amid the stream, with rows in flight."""
    with kpg.open() as db:
        rows, names = db.input("rows", k=int, v=int), db.input("names", k=int, name=str)
        by_key = rows.arrange("k")
        answers = []

        def attach():
            answers.append(by_key.join(names, on="k").count("name").output())

        attach()
        names.insert([(0, "zero"), (1, "one")])
        churn(db, rows, 3)
        attach()
        rows.insert([(1, 1), (1, 2)])
        attach()  # the inserted rows are pending
        db.push_to(db.epoch + 1)
        attach()  # the dataflow has received them, and has not processed any
        db.advance()
        attach()
        shapes = [
            [(type(op), op.name.replace(answer.name, "")) for op in answer._dataflow.operators] for answer in answers
        ]
        assert all(shape == shapes[0] for shape in shapes)
        assert [sorted(answer.rows()) for answer in answers] == [[("one", 2), ("zero", 1)]] * 5
        rows.remove([(1, 1)])
        db.advance()
        assert [sorted(answer.rows()) for answer in answers] == [[("one", 1), ("zero", 1)]] * 5


# One writer, many readers at their own pace


def test_readers_at_different_paces_each_see_their_own_version():
    """A4.8: the writer is far ahead of the slow reader, which still reads each version exactly."""
    with kpg.open() as db:
        rows = db.input("rows", k=int, v=int)
        by_key = rows.arrange("k")
        rows.insert([(key, key) for key in range(1, 100)])
        slow, fast = by_key.installed.handle.clone("slow"), by_key.installed.handle.clone("fast")
        for reader in (slow, fast):
            reader.set_physical(Frontier())
        churn(db, rows, 20)
        fast.set_since(Frontier.at((19,)))
        while db.idle():
            pass
        assert version(fast, 19) == {19}
        held = by_key.rows
        for time in range(20):
            slow.set_since(Frontier.at((time,)))
            assert version(slow, time) == {time}
            assert version(fast, 19) == {19}
        db.advance()
        for reader in (slow, fast):
            reader.set_since(Frontier.at((20,)))
        while db.idle():
            pass
        assert held > 100 and by_key.rows == 100, "rows that no reader can ask for any more are gone"
        slow.release()
        fast.release()


def version(reader, time):
    data, counts = read(reader.batches(None), (time,), np.zeros((1, 1), np.int64))
    return set(data[1][counts[0] > 0].tolist())


def test_answers_read_as_of_different_times_disagree_as_the_data_did():
    """A4.8: the same through the public API, with two queries over one index."""
    with kpg.open(history=5) as db:
        rows = db.input("rows", k=int, v=int)
        by_key = rows.arrange("k")
        least, most = by_key.group_by("k").min("v").output("least"), by_key.group_by("k").max("v").output("most")
        churn(db, rows, 8)
        for time in range(3, 8):
            assert least.rows(as_of=time) == most.rows(as_of=3 + (time - 3)) == [(0, time)]
        assert by_key.lookup(0, as_of=4).to_pylist() == [{"k": 0, "v": 4}]


def test_a_trace_has_one_writer():
    """A3.18: only its publisher appends batches, and readers have no way to write."""
    with kpg.open() as db:
        rows = db.input("rows", k=int, v=int)
        by_key = rows.arrange("k")
        queries = [by_key.count("k"), by_key.group_by("k").max("v"), by_key.join(rows, on="k")]
        readers = [query.output() for query in queries]
        churn(db, rows, 3)
        trace = by_key.installed.handle.spine
        writers = [
            operator
            for operator in gc.get_objects()
            if issubclass(type(operator), Publisher) and operator.spine() is trace  # isinstance fails on dead proxies
        ]
        assert writers == [by_key.installed.publisher] and len(by_key.installed.readers()) == len(readers)
        stale = Description(Frontier.at((0,)), Frontier.at((9,)), Frontier.at((0,)))
        with pytest.raises(AssertionError):
            trace.insert(Batch(Updates(np.zeros((2, 1), np.int64), constant((5,)), constant((1,))), 1, stale))
        for verb in ("insert", "remove", "upsert", "update_at"):
            assert not hasattr(by_key, verb) and not hasattr(readers[0], verb)
        with pytest.raises(kpg.InUse):
            db.input("rows", k=int, v=int)
        assert readers[1].rows() == [(0, 2)]


def test_an_advance_makes_the_pending_rows_one_transaction():
    """A3.18: rows are inserted and removed; nothing has to begin, commit, roll back or lock."""
    with kpg.open() as db:
        rows = db.input("rows", k=int, v=int)
        answer = rows.output("answer")
        rows.insert([(1, 1)])
        with pytest.raises(kpg.SchemaMismatch):
            rows.insert([(2, 2), (3, "x")])
        rows.insert([(4, 4)])
        db.advance()
        assert answer.rows() == [(1, 1), (4, 4)]
