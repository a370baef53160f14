"""The order of lanes that an arrangement gives its messages itself, in place of an operator before it."""

import numpy as np
import pytest

import kpg
from kpg.algebra.frontier import Frontier
from kpg.columns.updates import Updates, constant
from kpg.dataflow.operator import Message
from kpg.operators import picked_lanes
from kpg.operators.picked_lanes import PickedLanes
from kpg.trace.batch import Batch
from kpg.trace.description import Description

TIMES = ((3,),)


def updates_with(data):
    return Updates(np.array(data, np.int64), constant((3,)), constant((2,)))


@pytest.mark.parametrize("slice_rows", [1, 2, 3, 100])
def test_lanes_come_in_the_order_and_rows_stay_together(monkeypatch, slice_rows):
    monkeypatch.setattr(picked_lanes, "SLICE_ROWS", slice_rows)
    first, second = updates_with([[1, 2, 3], [4, 5, 6], [7, 8, 9]]), updates_with([[1], [2], [3]])
    batch = Batch(second, 1, Description(Frontier.at((3,)), Frontier.at((4,)), Frontier.at((3,))))
    messages = [Message(TIMES, first), Message(TIMES, (batch,)), Message(TIMES, ())]
    found = PickedLanes((2, 0, 1)).pick(messages)
    assert [message.times for message in found] == [TIMES, TIMES]
    assert [message.payload.data.tolist() for message in found] == [[[7, 8, 9], [1, 2, 3], [4, 5, 6]], [[3], [1], [2]]]
    for message in found:
        assert message.payload.data.flags.c_contiguous and not message.payload.consolidated
        assert message.payload.times.tolist() == [[3]] and message.payload.diffs.tolist() == [[2]]


def test_an_index_outside_of_loops_needs_no_operator_for_the_order_of_its_lanes():
    with kpg.open() as db:
        edges, names = db.input("edges", src=int, dst=int), db.input("names", node=int, name=str)
        answer = edges.select("src", "dst").join(names, on={"dst": "node"}).output("answer")
        assert "pick" not in [operator.name for operator in answer.dataflow.operators]
        edges.insert([(1, 2), (3, 2), (2, 1)])
        names.insert([(2, "two"), (4, "four")])
        db.advance()
        assert sorted(answer.rows()) == [(1, 2, 2, "two"), (3, 2, 2, "two")]
        edges.remove([(1, 2)])
        db.advance()
        assert sorted(answer.rows()) == [(3, 2, 2, "two")]
