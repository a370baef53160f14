"""Few rows are accepted without a question; a worker is asked when it may refuse, and promises are bounded."""

import hypothesis.strategies as st
import pytest
from hypothesis import given

import kpg
from kpg.cluster.row_admission import MAX_ADMITTED_BYTES, RowAdmission

MEMORY_LIMIT = 8 << 30


@given(
    spare=st.integers(0, 2 * MAX_ADMITTED_BYTES),
    sizes=st.lists(st.integers(0, MAX_ADMITTED_BYTES), max_size=8),
)
def test_what_is_admitted_fits_and_everything_else_is_asked(spare, sizes):
    admission = RowAdmission(MEMORY_LIMIT, workers=2)
    admission.note_spare(1, spare)
    admission.note_spare(1, None)  # a report that does not say
    admitted = [size for size in sizes if admission.admits(1, size)]
    assert sum(admitted) <= min(spare, MAX_ADMITTED_BYTES)
    assert admission.must_ask == (len(admitted) < len(sizes))
    assert not admission.admits(0, 1)  # it has not said what it can spare
    admission.end()
    assert not admission.must_ask and admission.admits(1, min(spare, MAX_ADMITTED_BYTES))


def test_without_a_limit_nothing_is_asked():
    admission = RowAdmission(None, workers=1)
    assert admission.admits(0, 1 << 40) and not admission.must_ask


def requests_of(db, work):
    before = db.coordinator.last_number
    work()
    return db.coordinator.last_number - before


def test_a_small_transaction_takes_one_request_with_a_memory_limit():
    with kpg.open(workers=2, memory_limit=MEMORY_LIMIT) as db:
        edges = db.input("edges", key="x", x=int, y=int)
        out = edges.count("y").output("out")

        def write(rows):
            edges.insert(rows)
            db.advance()

        write([(x, 0) for x in range(10)])
        assert requests_of(db, lambda: write([(3, 1), (4, 1)])) == 1
        many = [(x, 2) for x in range(MAX_ADMITTED_BYTES // 8)]
        assert requests_of(db, lambda: write(many)) == 2  # one asks whether all have accepted the rows
        assert requests_of(db, lambda: write([(3, 1), (4, 1)])) == 1
        assert out.rows() == [(0, 10), (1, 4), (2, len(many))]


def test_rows_that_a_worker_refuses_fail_their_advance_and_no_request_before_it():
    """A request between must neither raise the error of the rows nor let the others become an epoch without them."""
    with kpg.open(workers=2, memory_limit=MEMORY_LIMIT) as db:
        edges, others = db.input("edges", x=int, y=int), db.input("others", x=int)
        answers = [edges.output("all edges"), others.output("all others")]
        edges.insert([(1, 1)])
        db.advance()
        for rank in range(db.workers):
            db.pending.admission.note_spare(rank, 0)
        others.insert([(1,)])
        db.call_workers(f"{limit_memory.__module__}:{limit_memory.__name__}", limit=1)
        edges.insert({"x": list(range(2_000)), "y": list(range(2_000))})  # some on each worker
        db.call_workers(f"{limit_memory.__module__}:{limit_memory.__name__}", limit=MEMORY_LIMIT)
        with pytest.warns(kpg.PendingRowsWarning):
            assert [answer.rows() for answer in answers] == [[(1, 1)], []]
        with pytest.raises(kpg.OverBudget, match="All rows since the last advance were dropped"):
            db.advance()
        db.advance()
        assert [answer.rows() for answer in answers] == [[(1, 1)], []]


def limit_memory(db, limit):
    """On a worker: set the limit of its memory."""
    db.memory.limit = limit
