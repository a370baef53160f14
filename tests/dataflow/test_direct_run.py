"""Epochs of few rows that run directly change answers exactly as the general path does, which is the oracle here."""

import itertools
from collections import Counter
from contextlib import ExitStack, contextmanager
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kpg
from kpg import col
from kpg.api.waiting_requests import WaitingRequests
from kpg.columns.pause_points import can_pause, pause
from kpg.dataflow import sliced_run
from kpg.dataflow.direct_run import DirectRun
from kpg.operators import deferred_work
from kpg.operators.arrange import Arrange
from kpg.operators.join import Join
from kpg.operators.linear import Linear
from kpg.operators.sweep import SweepReduce
from kpg.query.datalog import parse
from kpg.query.installed_program import InstalledProgram
from kpg.query.ir.compile import compile
from tests.api.plays import examples

TRIANGLES = """
.decl e(x: number, y: number)
.input e
.decl answer(x: number, y: number, z: number)
.output answer
answer(x, y, z) :- e(x, y), e(y, z), e(z, x).
"""


def counted(a, b):
    return a.count("k")


def shared_totals(a, b):
    return a.join(b, on="k").group_by("v").sum("w")


def distinct_pairs(a, b):
    return a.select(k="v", w="k").concat(b).distinct()


def least(a, b):
    return a.group_by("k").min("v")


def failing(a, b):
    return a.select(q=col("k") // col("v"))


def delayed(a, b):
    return a.delay(col("v")).join(b, on="k").distinct()


def without_partner(a, b):
    return a.antijoin(b, on="k")


def reachable(a, b):
    by_key = a.arrange("k")

    def step(nodes):
        return by_key.join(nodes, on={"k": "node"}).select(node="v").concat(nodes).distinct()

    return b.select(node="k").iterate(step).join(a, on={"node": "k"}).count("node")


PROGRAMS = [counted, shared_totals, distinct_pairs, least, failing, delayed, without_partner, reachable]

values = st.integers(0, 3)
delays = st.sampled_from([0, 0, 0, 1])
updates = st.tuples(st.sampled_from("ab"), st.tuples(values, values), st.sampled_from([1, 1, -1]), delays)
schedules = st.lists(st.lists(updates, max_size=4), min_size=1, max_size=8)


def without_debts(schedule):
    """Return a schedule in which no row ever has a negative count: loops over such rows need not end."""
    counts = Counter()
    valid = []
    for epoch in schedule:
        valid.append([])
        for name, row, diff, _ in epoch:
            diff = diff if counts[name, row] else 1
            counts[name, row] += diff
            valid[-1].append((name, row, diff, 0))
    return valid


def play(schedule, program, directly, open_epochs=frozenset(), in_slices=False):
    """Return all changes of an answer, sorted by time, and how many epochs began to run directly."""
    schedule = without_debts(schedule) if program is reachable else schedule
    begun = []
    begin = DirectRun.begin

    def record(run):
        begun.append(directly and begin(run))
        return begun[-1]

    with mock.patch.object(DirectRun, "begin", record), kpg.open() as db:
        if in_slices:
            db.serve_requests(WaitingRequests())
        relations = {"a": db.input("a", k=int, v=int), "b": db.input("b", k=int, w=int)}
        answer = program(*relations.values()).output("answer", keep=False)
        seen = []
        for number, epoch in enumerate(schedule):
            for name, row, diff, delay in epoch:
                relations[name].update_at([row], db.epoch + delay, diff)
                if number in open_epochs:
                    db.advance_to(db.epoch)  # the rows are passed on, and the epoch stays open
            db.advance()
            error = answer.error()
            seen.append(sorted(answer.take_changes()) if error is None else str(error))
        return seen, sum(begun)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
@examples(0.2)
@given(
    schedule=schedules, slice_updates=st.sampled_from([2, 1 << 20]), open_epochs=st.sets(st.integers(0, 7), max_size=2)
)
def test_direct_runs_equal_the_general_path(program, schedule, slice_updates, open_epochs):
    with mock.patch.object(deferred_work, "SLICE_UPDATES", slice_updates):  # few: joins hold times, and end the run
        expected, _ = play(schedule, program, False, open_epochs)
        changes, _ = play(schedule, program, True, open_epochs)
    assert changes == expected


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
@examples(0.1)
@given(schedule=schedules, installed_at=st.integers(0, 4))
def test_the_first_messages_of_a_new_answer_run_directly_too(program, schedule, installed_at):
    schedule = without_debts(schedule) if program in (reachable, delayed) else schedule

    def play_late(directly):
        with ExitStack() as stack:
            if not directly:
                stack.enter_context(mock.patch.object(DirectRun, "begin", lambda run: False))
            db = stack.enter_context(kpg.open())
            relations = {"a": db.input("a", k=int, v=int), "b": db.input("b", k=int, w=int)}
            seen, answer = [], None
            for number, epoch in enumerate([*schedule, []]):
                if number == min(installed_at, len(schedule)):
                    answer = program(*relations.values()).output("answer", keep=False)
                for name, row, diff, _ in epoch:
                    relations[name].update_at([row], db.epoch, diff)
                db.advance()
                if answer is not None:
                    error = answer.error()
                    seen.append(sorted(answer.take_changes()) if error is None else str(error))
            return seen

    assert play_late(True) == play_late(False)


@contextmanager
def pausing_steps(patience):
    """Let every step pause at its beginning; with patience, only the steps of joins and reductions do, and once."""
    classes = [Join, SweepReduce] if patience else [Join, SweepReduce, Arrange, Linear]
    with ExitStack() as stack:
        stack.enter_context(mock.patch.object(sliced_run, "TURN_SECONDS", 60.0 if patience else -1.0))
        for kind in classes:
            stack.enter_context(mock.patch.object(kind, "step", pausing(kind.step, patience)))
        yield


def pausing(step, patience):
    calls = itertools.count()

    def pause_and_step(operator, inputs):
        if patience and can_pause() and next(calls) % patience == 0:
            operator.dataflow.worker._slices._turn_end = 0.0
        pause()
        return step(operator, inputs)

    return pause_and_step


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
@examples(0.15)
@given(
    schedule=schedules, slice_updates=st.sampled_from([2, 1 << 20]), patience=st.sampled_from([0, 1, 2, 5]),
    open_epochs=st.sets(st.integers(0, 7), max_size=2),
)  # fmt: skip
def test_direct_runs_in_slices_equal_the_general_path(program, schedule, slice_updates, patience, open_epochs):
    with mock.patch.object(deferred_work, "SLICE_UPDATES", slice_updates):
        expected, _ = play(schedule, program, False, open_epochs)
        with pausing_steps(patience):
            changes, _ = play(schedule, program, True, open_epochs, in_slices=True)
    assert changes == expected


@examples(0.2)
@given(schedule=st.lists(st.lists(st.tuples(st.tuples(values, values), st.booleans()), max_size=3), max_size=10))
def test_delta_queries_run_directly(schedule):
    edges: set[tuple[int, int]] = set()
    with kpg.open() as db, InstalledProgram(db, compile(parse(TRIANGLES)), distinct_inputs=True) as installed:
        answer = installed.answer("answer").output("answer")
        db.advance()
        for epoch in schedule:
            for edge, present in dict(epoch).items():
                if present != (edge in edges):
                    (installed.inputs["e"].insert if present else installed.inputs["e"].remove)([edge])
                    (edges.add if present else edges.discard)(edge)
            db.advance()
            expected = {(x, y, z) for x, y in edges for z in range(4) if (y, z) in edges and (z, x) in edges}
            assert set(answer.rows()) == expected


def test_an_epoch_of_few_rows_counts_no_messages():
    with kpg.open() as db:
        rows = db.input("rows", k=int)
        counts = rows.count("k").output("counts", keep=False)
        rows.insert([(1,)])
        db.advance()
        with mock.patch("kpg.progress.tracker.Tracker.update", side_effect=AssertionError("counted")):
            rows.insert([(1,)])
            db.advance()
        assert sorted(counts.take_changes()) == [((1, 1), 0, 1), ((1, 1), 1, -1), ((1, 2), 1, 1)]


def test_a_served_db_counts_no_messages_of_an_epoch_of_few_rows():
    with kpg.open() as db:
        db.serve_requests(WaitingRequests())
        rows = db.input("rows", k=int)
        counts = rows.count("k").output("counts", keep=False)
        rows.insert([(1,)])
        db.advance()
        with mock.patch("kpg.progress.tracker.Tracker.update", side_effect=AssertionError("counted")):
            rows.insert([(1,)])
            db.advance(wait=False)
            assert counts.complete_through == 1
        assert sorted(counts.take_changes()) == [((1, 1), 0, 1), ((1, 1), 1, -1), ((1, 2), 1, 1)]


def test_a_merge_after_a_direct_run_is_left_to_later_slices():
    with kpg.open() as db, mock.patch.object(sliced_run, "TURN_SECONDS", -1.0):
        db.serve_requests(WaitingRequests())
        rows = db.input("rows", k=int)
        counts = rows.count("k").output("counts")
        for key in range(100):
            rows.insert([(key % 7,)])
            db.advance(wait=False)
        db.settle()
        assert sorted(counts.rows()) == [(key, len(range(key, 100, 7))) for key in range(7)]


def test_many_rows_take_the_general_path_and_agree():
    schedule = [[("a", (i % 7, i), 1, 0) for i in range(n)] for n in (3, 400, 2)]
    changes, begun = play(schedule, counted, directly=True)
    assert changes == play(schedule, counted, directly=False)[0]
    assert begun == 2


def test_an_operator_that_fails_ends_only_its_dataflow():
    with kpg.open() as db:
        rows = db.input("rows", k=int)
        counts = rows.count("k").output("counts", keep=False)
        rows.insert([(1,)])
        db.advance()
        broken = rows.count("k").output("broken", keep=False)
        db.advance()
        (operator,) = [operator for operator in broken.dataflow.operators if isinstance(operator, SweepReduce)]
        with mock.patch.object(operator, "step", side_effect=kpg.KpgError("it broke")):
            rows.insert([(2,)])
            db.advance()
        assert len(counts.take_changes()) == 2
        with pytest.raises(kpg.KpgError, match="it broke"):
            broken.take_changes()


def test_merges_wait_until_all_readers_have_seen_the_epoch():
    """Many single rows through a join of a relation with itself: a merge in mid-epoch would change their times."""
    with kpg.open() as db:
        rows = db.input("rows", k=int, v=int)
        pairs = rows.join(rows.select(k="k", w="v"), on="k").output("pairs", keep=False)
        for i in range(60):
            rows.insert([(i % 3, i)])
            db.advance()
        changes = list(pairs.take_changes())
        assert [time for (_, v, w), time, _ in changes if max(v, w) != time] == []
        assert len(changes) == sum((i // 3) * 2 + 1 for i in range(60))
    assert np.all([diff == 1 for _, _, diff in changes])
