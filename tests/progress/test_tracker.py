"""Frontiers follow from counts: they never pass a possible message, and they pass everything else."""

from collections.abc import Iterable
from time import thread_time

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
    """Build outside → body ⇄ feedback → after: a loop between two locations outside it."""
    graph = Reachability()
    outside, body, back, after = (graph.add_location(depth) for depth in (1, 2, 2, 1))
    graph.add_edge(outside, body, enter(1))
    graph.add_edge(body, back, identity(2))
    graph.add_edge(back, body, step_round(2))
    graph.add_edge(body, after, leave(2))
    return graph, [outside, body, back, after]


def test_a_message_in_a_loop_holds_back_later_rounds_and_locations_downstream() -> None:
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


def test_a_source_holds_back_the_locations_it_reaches() -> None:
    """A1.8: the clock is read only when a frontier is needed."""
    graph, (outside, body, _, after) = loop()
    tracker, clock = Tracker(graph), [Frontier.at((4,))]
    tracker.add_source(outside, lambda: clock[0])
    assert tracker.frontier(body) == Frontier([(4, 0)])
    clock[0] = Frontier.at((9,))
    assert tracker.frontier(after) == Frontier([(9,)])
    clock[0] = CLOSED
    assert tracker.has_passed(after, (9,))


def test_a_cycle_that_does_not_advance_time_is_refused() -> None:
    """A1.9: a cycle without an increment raises BadPlan."""
    graph = Reachability()
    first, second = graph.add_location(2), graph.add_location(2)
    graph.add_edge(first, second, identity(2))
    graph.add_edge(second, first, identity(2))
    with pytest.raises(BadPlan, match="does not advance time"):
        graph.check_cycles()


class Peers:
    """Workers that send messages around a loop and exchange progress late."""

    def __init__(self, n: int) -> None:
        graph, (_, self.body, _, self.after) = loop()
        self.trackers = [Tracker(graph, shared=True) for _ in range(n)]
        self.in_flight: list[tuple[int, Time]] = [(0, (0, 0))]  # the worker that a message is sent to, and its time
        pairs = [(sender, receiver) for sender in range(n) for receiver in range(n) if sender != receiver]
        self.wires: dict[tuple[int, int], list[list[Change]]] = {pair: [] for pair in pairs}
        for tracker in self.trackers:
            tracker.receive([(self.body, (0, 0), 1)])

    def consume(self, message: int, targets: Iterable[int]) -> None:
        """Let a worker consume a message and send one, a round later, to each target: one atomic set of changes."""
        worker, (epoch, round_) = self.in_flight.pop(message)
        tracker = self.trackers[worker]
        tracker.update(self.body, (epoch, round_), -1)
        for target in targets:
            tracker.update(self.body, (epoch, round_ + 1), 1)
            self.in_flight.append((target, (epoch, round_ + 1)))
        changes = tracker.take_changes()
        for (sender, _), wire in self.wires.items():
            if sender == worker:
                wire.append(changes)

    def receive(self, wire: tuple[int, int]) -> None:
        """Let a worker receive the next progress message of another, if there is one."""
        if self.wires[wire]:
            self.trackers[wire[1]].receive(self.wires[wire].pop(0))

    def check(self) -> None:
        """Check that no frontier of any worker has passed a message in flight."""
        for _, time in self.in_flight:
            for tracker in self.trackers:
                assert tracker.frontier(self.body).beyond(time), f"a frontier passed {time}"
                assert tracker.frontier(self.after).beyond(time[:1])


@given(st.data())
def test_no_order_of_arrival_lets_a_frontier_pass_a_message(data: st.DataObject) -> None:
    """A1.8: safety and liveness, for every delay and interleaving of the peers' changes."""
    peers = Peers(3)
    for _ in range(data.draw(st.integers(0, 14))):
        if peers.in_flight and data.draw(st.booleans()):
            message = data.draw(st.integers(0, len(peers.in_flight) - 1))
            peers.consume(message, data.draw(st.sets(st.integers(0, 2), max_size=2)))
        else:
            peers.receive(data.draw(st.sampled_from(sorted(peers.wires))))
        peers.check()
    while peers.in_flight:
        peers.consume(0, ())
    while any(peers.wires.values()):
        for wire in peers.wires:
            peers.receive(wire)
    for tracker in peers.trackers:
        assert tracker.is_idle and tracker.frontier(peers.after) == CLOSED


@given(st.data())
def test_the_least_epoch_is_that_of_the_first_message_or_source(data: st.DataObject) -> None:
    """A1.8: the search that ends early finds what a search of everything finds."""
    graph, (outside, body, _, after) = loop()
    tracker, clock, in_flight = Tracker(graph), [Frontier.at((0,))], list[tuple[int, Time]]()
    tracker.add_source(outside, lambda: clock[0])
    for _ in range(data.draw(st.integers(0, 20))):
        if in_flight and data.draw(st.booleans()):
            location, time = in_flight.pop(data.draw(st.integers(0, len(in_flight) - 1)))
            tracker.update(location, time, -1)
        elif data.draw(st.booleans()):
            epoch = clock[0].elements[0][0] + data.draw(st.integers(0, 2))
            clock[0] = Frontier.at((epoch,))
        else:
            epoch = clock[0].elements[0][0] + data.draw(st.integers(0, 3))  # perhaps held for later
            in_flight.append(data.draw(st.sampled_from([(body, (epoch, 7)), (after, (epoch,))])))
            tracker.update(*in_flight[-1], 1)
        epochs = [time[0] for _, time in in_flight]
        assert tracker.least_in_flight() == min(epochs, default=None)
        if data.draw(st.booleans()):
            assert tracker.least_epoch() == min([*epochs, clock[0].elements[0][0]])


def test_the_least_epoch_of_a_long_recursion_costs_little() -> None:
    """A1.8: it is asked for after each slice, while messages of all rounds may wait behind the loop."""
    graph, (_, body, _, _) = loop()
    tracker = Tracker(graph)
    for round_ in range(100_000):
        tracker.update(body, (3, round_), 1)
    tracker.least_epoch()
    began = thread_time()
    for _ in range(1_000):
        assert tracker.least_epoch() == 3
    assert thread_time() - began < 1  # a search of all messages takes 5 s
