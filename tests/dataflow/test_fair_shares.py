"""Dataflows of one owner divide one share of the time, however many they are."""

import gc
from itertools import count

import pytest

import kpg
from kpg.dataflow import sliced_run
from kpg.dataflow.fair_shares import ShareOwner
from kpg.dataflow.graph import MAX_OWNERS

MANY = 300
ROWS = 300  # more than are run directly
SLICES = 12  # of one turn each: of the input, of the light answer, and as many of others


@pytest.fixture
def slices_of_a_turn(monkeypatch):
    """Let each look at the clock take as long, and each slice be one turn of a few steps."""
    ticks = count()
    monkeypatch.setattr(sliced_run, "perf_counter", lambda: next(ticks) * sliced_run.TURN_SECONDS / 10)


def counts_of_one_input(db, *owners):
    """Return an input, and one answer about it for each of some owners, which may be None."""
    numbers = db.input("n", x=int)
    answers = [numbers.count("x").output(f"answer {number}") for number in range(len(owners))]
    for answer, owner in zip(answers, owners, strict=True):
        if owner is not None:
            answer.dataflow.add_owner(owner)
    return numbers, answers


def change(db, numbers, epoch):
    numbers.insert([(epoch * ROWS + row,) for row in range(ROWS)])
    db.advance(wait=False)


def slices_until_complete(db, answer):
    for number in range(MANY * 20):
        if answer.complete_through == db.epoch - 1:
            return number
        db.work(0.0)
    raise AssertionError("the answer was never complete")


@pytest.mark.parametrize("owner", [None, ShareOwner()], ids=["none", "another"])
def test_many_dataflows_of_one_owner_do_not_delay_the_dataflow_of_another(slices_of_a_turn, owner):
    with kpg.open() as db:
        crowd = ShareOwner()
        numbers, answers = counts_of_one_input(db, *[crowd] * MANY, owner)
        for epoch in range(10):
            change(db, numbers, epoch)
            assert slices_until_complete(db, answers[-1]) <= SLICES
            behind = [answer for answer in answers if answer.complete_through != db.epoch - 1]
            assert len(behind) > MANY - SLICES
        for answer in answers:
            answer.wait()
            assert len(answer.rows()) == 10 * ROWS


def test_a_dataflow_of_several_owners_runs_for_the_one_with_the_fewest(slices_of_a_turn):
    with kpg.open() as db:
        crowd, calm = ShareOwner(), ShareOwner()
        numbers, answers = counts_of_one_input(db, *[crowd] * MANY)
        answers[-1].dataflow.add_owner(calm)
        for epoch in range(10):
            change(db, numbers, epoch)
            assert slices_until_complete(db, answers[-1]) <= SLICES
        assert (crowd.dataflow_count, calm.dataflow_count) == (MANY, 1)
        assert calm.used_seconds > 0
        answers[-1].release()
        assert (crowd.dataflow_count, calm.dataflow_count) == (MANY - 1, 0)


def test_dataflows_of_an_owner_that_is_gone_still_run(slices_of_a_turn):
    with kpg.open() as db:
        crowd, calm = ShareOwner(), ShareOwner()
        numbers, answers = counts_of_one_input(db, *[crowd] * 5, *[calm] * 5)
        for epoch in range(5):
            change(db, numbers, epoch)
            db.work(0.0)
            if epoch == 2:
                del calm
                gc.collect()
                answers.pop().release()
        for answer in answers:
            answer.wait()
            assert len(answer.rows()) == 5 * ROWS


def test_an_owner_whose_dataflow_was_completed_out_of_turn_gets_turns_again(slices_of_a_turn):
    """`contents` completes a dataflow that waits for its turn."""
    with kpg.open() as db:
        owner = ShareOwner()
        numbers, (answer, other) = counts_of_one_input(db, owner, owner)
        for epoch in range(3):
            change(db, numbers, epoch)
            while not answer.dataflow.has_share:
                db.work(0.0)
            db.worker.run_dataflow(answer.dataflow)
            db.work(0.0)
        assert slices_until_complete(db, answer) < MANY
        assert slices_until_complete(db, other) < MANY
        assert len(answer.rows()) == len(other.rows()) == 3 * ROWS


def test_a_dataflow_of_very_many_owners_has_a_share_of_its_own():
    """To choose among owners costs as much as their number."""
    with kpg.open() as db:
        owners = [ShareOwner() for _ in range(MAX_OWNERS + 2)]
        _, (answer,) = counts_of_one_input(db, None)
        for owner in owners[:MAX_OWNERS]:
            answer.dataflow.add_owner(owner)
        assert set(answer.dataflow.owners) == set(owners[:MAX_OWNERS])
        for owner in owners[MAX_OWNERS:]:
            answer.dataflow.add_owner(owner)
        assert not answer.dataflow.owners
        assert [owner.dataflow_count for owner in owners] == [0] * len(owners)
