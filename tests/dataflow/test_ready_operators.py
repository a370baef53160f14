"""The order of ready operators in slices: a sweep reaches the last operator, whatever arrives at the first ones."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kpg
from kpg import col
from kpg.api.waiting_requests import WaitingRequests
from kpg.dataflow import sliced_run
from kpg.dataflow.ready_operators import ReadyOperators

STEPS = 10
EPOCHS = 240
STEPS_PER_EPOCH = 3  # fewer than the joins that new rows reach


@dataclass
class Numbered:
    """What the order depends on."""

    order: int
    depth: int = 1


@given(st.permutations(range(6)))
def test_a_sweep_is_in_the_order_of_operators(orders):
    ready = ReadyOperators()
    for order in orders:
        ready.add(Numbered(order), later=False)
    assert [ready.take().order for _ in range(6)] == list(range(6)) and not ready


def test_an_operator_behind_the_sweep_waits_for_the_next_one():
    ready = ReadyOperators()
    first, second, third = (Numbered(order) for order in range(3))
    for operator in (first, second, third):
        ready.add(operator, later=False)
    taken = []
    while len(taken) < 9:
        taken.append(ready.take())
        ready.add(taken[-1], later=False)
    assert taken == [first, second, third] * 3


def test_a_loop_goes_on_before_the_operators_that_follow_it():
    ready = ReadyOperators()
    head, body, after = Numbered(0, depth=2), Numbered(1, depth=2), Numbered(2)
    ready.add(head, later=False)
    ready.add(after, later=False)
    taken = []
    for _ in range(3):
        taken.append(ready.take())
        ready.add(body, later=False)
        taken.append(ready.take())
        ready.add(head, later=False)
    assert taken == [head, body] * 3


def test_an_operator_that_asks_again_waits_for_all_others():
    ready = ReadyOperators()
    first, second = Numbered(0), Numbered(1)
    ready.add(first, later=True)
    ready.add(second, later=False)
    assert [ready.take(), ready.take()] == [second, first]


@pytest.mark.parametrize("kept", [True, False], ids=["kept", "passed on"])
def test_a_long_chain_of_joins_answers_while_its_relation_changes_without_a_pause(monkeypatch, kept):
    """Each slice is one step, and new rows reach all joins after a few of them."""
    monkeypatch.setattr(sliced_run, "TURN_SECONDS", 0.0)
    with kpg.open() as db:
        db.serve_requests(WaitingRequests())
        edges = db.input("edges", x=int, y=int)
        edges.insert([(node, node + 1) for node in range(STEPS + 1)])
        db.advance(wait=False)
        walks = edges
        for _ in range(STEPS):
            walks = walks.join(edges, on={"y": "x"}).select(x=col("x"), y=col("y_right")).distinct()
        answer = walks.output("walks", keep=kept)
        complete = []
        for number in range(EPOCHS):
            (edges.insert if number % 2 == 0 else edges.remove)([(-1, -2)])
            db.advance(wait=False)
            for _ in range(STEPS_PER_EPOCH):
                db.work(0.0)
            complete.append(answer.complete_through)
        assert complete[EPOCHS // 2] is not None, "it has its first answer"
        assert complete[-1] > complete[EPOCHS // 2], "and goes on"
