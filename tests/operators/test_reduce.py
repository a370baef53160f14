"""The reduce operator: its pending times and its frontiers (A5.10, A5.11, A5.12)."""

import numpy as np

import kpg
from kpg.algebra.frontier import CLOSED, Frontier
from kpg.columns.updates import Updates, constant, spread
from kpg.dataflow.channel import LocalPact
from kpg.dataflow.graph import Dataflow
from kpg.dataflow.operator import Message
from kpg.dataflow.worker import Worker
from kpg.operators.arrange import Arranged
from kpg.operators.corrections import evaluate_presence
from kpg.operators.reduce import Reduce
from kpg.operators.source import Source
from kpg.operators.tactic import ReplayTactic
from kpg.testing.simulated_workers import SimulatedNetwork
from kpg.trace.batch import Batch
from kpg.trace.description import Description
from kpg.trace.handle import TraceHandle
from kpg.trace.spine import Spine


def test_a_retraction_at_a_pending_time_is_not_taken_for_an_insertion():
    """A5.10: no update arrives at (2, 2), the join of times at which rows were inserted and deleted."""
    with kpg.open(coordinates=2) as db:
        rows = db.input("rows", x=int)
        present = rows.distinct().output()
        for time, diff, until in [
            ((1, 0), 1, (0, 0)),
            ((2, 0), -1, (0, 1)),
            ((0, 1), 1, (0, 2)),
            ((1, 2), -1, (2, 2)),
        ]:
            rows.update_at([(7,), (8,)] if diff > 0 else [(7,)], time, diff)
            db.advance_to(until)
            db.idle()
        db.advance_to((3, 3))
        assert present.rows(as_of=(2, 2)) == [(8,)]


class Lagging(Reduce):
    """A reduce whose input frontier the test sets, as if its peers lagged behind."""

    input_frontier = Frontier([(0, 0)])

    def frontier(self, input_index: int = 0) -> Frontier:
        return self.input_frontier


def test_times_that_were_complete_on_a_worker_stay_complete_while_peers_lag():
    """A5.10, A1.8: a batch is complete on its worker before the frontier of all workers passes it.

    Then the frontier passes (1, 1), which is pending, while it is still at (0, 2), which was complete here before.
    """
    dataflow = Dataflow(Worker(0, 2, SimulatedNetwork(2).transports[0]), 0, "lagging")
    stream = dataflow.add_source(Source("rows"), lambda: CLOSED, depth=2)
    spine = Spine(1, 1, 2)
    arranged = Arranged(stream, TraceHandle(spine, "rows", spine.upper), 1, 1, 1, 2)
    output_spine = Spine(1, 1, 2)
    presence = ReplayTactic(lambda keys, *histories: evaluate_presence(1, *histories), 0)
    operator = Lagging("distinct", arranged, output_spine, presence)
    dataflow.add(operator, [(stream, LocalPact())], depth=2)
    reader = TraceHandle(output_spine, "reader", output_spine.upper)
    reader.set_physical(CLOSED)
    for time, upper in [((0, 1), [(0, 3), (1, 0)]), ((1, 0), [(0, 3), (1, 1)])]:
        rows = Updates(np.array([[7]]), constant(time), constant((1,)))
        batch = Batch(rows, 1, Description(spine.upper, Frontier(upper), Frontier([(0, 0)])))
        spine.insert(batch)
        operator.queues[0].append(Message((time,), (batch,)))
        operator.run()
    assert operator.held == ((1, 1),)
    operator.input_frontier = Frontier([(0, 2), (2, 0)])
    assert operator.is_due()
    operator.run()
    assert operator.held == ()
    updates = [(7, tuple(time), diff) for batch in reader.batches(None) for time, diff in of(batch)]
    assert sorted(updates) == [(7, (0, 1), 1), (7, (1, 0), 1), (7, (1, 1), -1)]


def of(batch: Batch):
    n = len(batch)
    return zip(spread(batch.updates.times, n).T.tolist(), spread(batch.updates.diffs, n)[0].tolist(), strict=True)
