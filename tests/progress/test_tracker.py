"""Frontiers follow from counts: never past what may still come, and past all else."""

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpg.algebra.frontier import CLOSED, Frontier
from kpg.algebra.order import Time
from kpg.errors import BadPlan
from kpg.progress.reachability import Reachability
from kpg.progress.summary import enter, identity, leave, step_round
from kpg.progress.tracker import Change, Tracker


def loop() -> tuple[Reachability, list[int]]:
    """outside → body ⇄ feedback → after: a loop between two places outside it."""
    graph = Reachability()
    outside, body, back, after = (graph.add_location(depth) for depth in (1, 2, 2, 1))
    graph.add_edge(outside, body, enter(1))
    graph.add_edge(body, back, identity(2))
    graph.add_edge(back, body, step_round(2))
    graph.add_edge(body, after, leave(2))
    return graph, [outside, body, back, after]


def test_a_message_in_a_loop_holds_back_later_rounds_and_what_follows() -> None:
    """A1.8 A1.9: the frontier inside is the next round, outside the epoch itself."""
    graph, (outside, body, back, after) = loop()
    graph.check_cycles()
    tracker = Tracker(graph)
    tracker.update(back, (3, 5), 1)
    assert tracker.frontier(body) == Frontier([(3, 6)])
    assert tracker.frontier(after) == Frontier([(3,)])
    assert tracker.frontier(outside) == CLOSED
    tracker.update(back, (3, 5), -1)
    assert tracker.frontier(after) == CLOSED and tracker.is_idle


def test_a_source_holds_back_what_it_reaches() -> None:
    """A1.8: the clock is read when asked, and only then."""
    graph, (outside, body, _, after) = loop()
    tracker, clock = Tracker(graph), [Frontier.at((4,))]
    tracker.add_source(outside, lambda: clock[0])
    assert tracker.frontier(body) == Frontier([(4, 0)])
    clock[0] = Frontier.at((9,))
    assert tracker.frontier(after) == Frontier([(9,)])
    clock[0] = CLOSED
    assert tracker.has_passed(after, (9,))


def test_a_cycle_that_does_not_advance_time_is_refused() -> None:
    """A1.9: a cycle without increment is rejected."""
    graph = Reachability()
    first, second = graph.add_location(2), graph.add_location(2)
    graph.add_edge(first, second, identity(2))
    graph.add_edge(second, first, identity(2))
    with pytest.raises(BadPlan, match="does not advance time"):
        graph.check_cycles()


class Peers:
    """Workers that pass messages round a loop and tell each other, late, what they did."""

    def __init__(self, n: int) -> None:
        graph, (_, self.body, _, self.after) = loop()
        self.trackers = [Tracker(graph, shared=True) for _ in range(n)]
        self.flying: list[tuple[int, Time]] = [(0, (0, 0))]  # the worker where a message waits, and its time
        pairs = [(sender, receiver) for sender in range(n) for receiver in range(n) if sender != receiver]
        self.wires: dict[tuple[int, int], list[list[Change]]] = {pair: [] for pair in pairs}
        for tracker in self.trackers:
            tracker.receive([(self.body, (0, 0), 1)])

    def consume(self, message: int, targets: Iterable[int]) -> None:
        """One worker takes a message and sends one, a round later, to each target: one atomic set of changes."""
        worker, (epoch, round_) = self.flying.pop(message)
        tracker = self.trackers[worker]
        tracker.update(self.body, (epoch, round_), -1)
        for target in targets:
            tracker.update(self.body, (epoch, round_ + 1), 1)
            self.flying.append((target, (epoch, round_ + 1)))
        changes = tracker.take_changes()
        for (sender, _), wire in self.wires.items():
            if sender == worker:
                wire.append(changes)

    def hear(self, wire: tuple[int, int]) -> None:
        """One worker hears the next thing that another said, if there is one."""
        if self.wires[wire]:
            self.trackers[wire[1]].receive(self.wires[wire].pop(0))

    def check(self) -> None:
        """No frontier of any worker has passed a message that is on its way."""
        for _, time in self.flying:
            for tracker in self.trackers:
                assert tracker.frontier(self.body).beyond(time), f"a frontier passed {time}"
                assert tracker.frontier(self.after).beyond(time[:1])


@given(st.data())
def test_no_order_of_arrival_lets_a_frontier_pass_a_message(data: st.DataObject) -> None:
    """A1.8: safety and liveness, however late and interleaved the peers' changes arrive."""
    peers = Peers(3)
    for _ in range(data.draw(st.integers(0, 14))):
        if peers.flying and data.draw(st.booleans()):
            message = data.draw(st.integers(0, len(peers.flying) - 1))
            peers.consume(message, data.draw(st.sets(st.integers(0, 2), max_size=2)))
        else:
            peers.hear(data.draw(st.sampled_from(sorted(peers.wires))))
        peers.check()
    while peers.flying:
        peers.consume(0, ())
    while any(peers.wires.values()):
        for wire in peers.wires:
            peers.hear(wire)
    for tracker in peers.trackers:
        assert tracker.is_idle and tracker.frontier(peers.after) == CLOSED
