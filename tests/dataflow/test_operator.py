"""An operator may keep times or advance them in the partial order; all else is an error (A1.6)."""

import pytest

import kpg
from kpg.algebra.frontier import Frontier
from kpg.dataflow.channel import LocalPact
from kpg.dataflow.operator import Inputs, Message, Operator, Times
from kpg.dataflow.worker import Worker
from kpg.operators.source import Source


class Answers(Operator):
    """Send each message on at a time that the test chooses, or hold that time."""

    def __init__(self, at: Times, holds: bool) -> None:
        super().__init__("answers")
        self.at = at
        self.holds = holds

    def step(self, inputs: Inputs) -> bool:
        if self.holds:
            self.hold(self.at)
        else:
            self.send(inputs[0][0].payload, self.at)
        return False


class Record(Operator):
    """Keep the times of its messages."""

    def __init__(self) -> None:
        super().__init__("record")
        self.times: list[Times] = []

    def step(self, inputs: Inputs) -> bool:
        self.times += [message.times for message in inputs[0]]
        return False


def run(at: Times, *, holds: bool = False) -> tuple[list[Times], Frontier]:
    """Return the times and the frontier after an operator that responds to a message at (1, 1) with `at`."""
    worker = Worker(start=(0, 0))
    source, record = Source("rows"), Record()

    def build(dataflow):
        stream = dataflow.add_source(source, lambda: worker.clock.frontier, depth=2)
        answers = dataflow.add(Answers(at, holds), [(stream, LocalPact())], depth=2)
        dataflow.add(record, [(answers, LocalPact())], depth=2)

    worker.install("times", build).feed(source, Message(((1, 1),), "row"))
    worker.advance_to(Frontier([(5, 5)]))
    worker.run()
    return record.times, record.frontier(0)


@pytest.mark.parametrize("at", [(1, 1), (2, 1), (1, 7)])
def test_a_time_may_be_kept_or_advanced(at):
    """A1.6."""
    assert run((at,))[0] == [(at,)]
    assert run((at,), holds=True)[1].beyond(at)


@pytest.mark.parametrize("at", [(0, 1), (1, 0), (0, 0), (0, 9), (9, 0)])
@pytest.mark.parametrize("holds", [False, True])
def test_a_time_that_goes_back_in_any_coordinate_raises(at, holds):
    """A1.6: (9, 0) is not before (1, 1), yet it is not at or after it either, so it may not be used."""
    with pytest.raises(AssertionError, match="may only use times at or after"):
        run((at,), holds=holds)


def test_an_operator_that_breaks_the_rule_is_stopped_and_others_continue():
    """A1.6."""
    worker = Worker()
    source, record = Source("rows"), Record()

    def wrong(dataflow):
        stream = dataflow.add_source(source, lambda: worker.clock.frontier, depth=1)
        dataflow.add(Answers(((0,),), False), [(stream, LocalPact())], depth=1)

    def right(dataflow):
        other = Source("others")
        stream = dataflow.add_source(other, lambda: worker.clock.frontier, depth=1)
        dataflow.add(record, [(stream, LocalPact())], depth=1)
        dataflow.feed(other, Message(((3,),), "row"))

    broken = worker.install("wrong", wrong)
    broken.feed(source, Message(((3,),), "row"))
    worker.install("right", right)
    with pytest.raises(AssertionError):
        worker.run()
    worker.run()
    assert broken.dropped and broken.failure is not None
    assert record.times == [((3,),)]


def test_a_delay_into_the_past_keeps_the_time():
    """A1.6: in the public API, a row can be delayed but not moved back."""
    with kpg.open(history=None) as db:
        rows = db.input("rows", x=int, until=int)
        answer = rows.delay(kpg.col("until")).output("answer")
        db.advance_to(3)
        rows.insert([(1, 0), (2, 3), (3, 5)])
        db.advance_to(9)
        assert sorted(answer.changes()) == [((1, 0), 3, 1), ((2, 3), 3, 1), ((3, 5), 5, 1)]
