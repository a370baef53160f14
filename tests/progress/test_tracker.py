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
    """Workers with a loop between them, which exchange progress late: body → back → (any worker) body, → after.

    A worker consumes messages at the body. It holds their times at the output of the body, and later sends from there.
    """

    def __init__(self, n: int) -> None:
        graph = Reachability()
        self.body, self.out, self.after = (graph.add_location(depth) for depth in (2, 2, 1))
        graph.add_edge(self.body, self.out, identity(2))
        graph.add_edge(self.out, self.body, step_round(2), crosses=True)
        graph.add_edge(self.out, self.after, leave(2))
        self.trackers = [Tracker(graph, shared=True, worker=worker) for worker in range(n)]
        self.in_flight: list[tuple[int, Time]] = [(0, (0, 0))]  # the worker that a message is sent to, and its time
        self.held: list[tuple[int, Time]] = []
        pairs = [(sender, receiver) for sender in range(n) for receiver in range(n) if sender != receiver]
        self.wires: dict[tuple[int, int], list[list[Change]]] = {pair: [] for pair in pairs}
        for tracker in self.trackers:
            tracker.receive([(0, self.body, (0, 0), 1)])

    def consume(self, message: int) -> None:
        """Let a worker consume a message and hold its time, once."""
        worker, time = self.in_flight.pop(message)
        self.trackers[worker].update(self.body, time, -1)
        if (worker, time) not in self.held:
            self.trackers[worker].update(self.out, time, 1)
            self.held.append((worker, time))

    def release(self, held: int, targets: Iterable[int]) -> None:
        """Let a worker give up a held time and send a message, a round later, to each target."""
        worker, (epoch, round_) = self.held.pop(held)
        tracker = self.trackers[worker]
        for target in targets:
            tracker.update(self.body, (epoch, round_ + 1), 1, target)
            self.in_flight.append((target, (epoch, round_ + 1)))
        tracker.update(self.out, (epoch, round_), -1)

    def send(self, worker: int) -> None:
        """Let a worker send its changes, if a peer may wait for them: one atomic set."""
        if self.trackers[worker].must_send():
            changes = self.trackers[worker].take_changes()
            for (sender, _), wire in self.wires.items():
                if sender == worker:
                    wire.append(changes)

    def receive(self, wire: tuple[int, int]) -> None:
        """Let a worker receive the next progress message of another, if there is one."""
        if self.wires[wire]:
            self.trackers[wire[1]].receive(self.wires[wire].pop(0))

    def deliver_all(self) -> None:
        """Let all workers send what peers may wait for, and receive everything."""
        for worker in range(len(self.trackers)):
            self.send(worker)
        for wire, messages in self.wires.items():
            while messages:
                self.receive(wire)

    def check(self) -> None:
        """Check that no frontier has passed a message for its worker, or what may become one."""
        for target, time in self.in_flight:
            assert self.trackers[target].local_frontier(self.body).beyond(time), f"a local frontier passed {time}"
        for owner, (epoch, round_) in [*self.in_flight, *self.held]:
            for worker, tracker in enumerate(self.trackers):
                assert tracker.local_frontier(self.body).beyond((epoch, round_ + 1))
                assert tracker.frontier(self.out).beyond((epoch, round_)), "a frontier must hold on all workers"
                assert worker != owner or tracker.local_frontier(self.after).beyond((epoch,))

    def due(self) -> list[int]:
        """Return the held times that the frontier of their worker has passed."""
        return [
            index
            for index, (worker, time) in enumerate(self.held)
            if not self.trackers[worker].local_frontier(self.body).beyond(time)
        ]


@given(st.data())
def test_no_order_of_arrival_lets_a_frontier_pass_a_message(data: st.DataObject) -> None:
    """A1.8: safety and liveness, for every delay and interleaving of the peers' changes."""
    peers = Peers(3)
    for _ in range(data.draw(st.integers(0, 24))):
        choice = data.draw(st.sampled_from(["consume", "release", "send", "receive"]))
        if choice == "consume" and peers.in_flight:
            peers.consume(data.draw(st.integers(0, len(peers.in_flight) - 1)))
        elif choice == "release" and peers.held:
            targets = data.draw(st.sets(st.integers(0, 2), max_size=2))
            peers.release(data.draw(st.integers(0, len(peers.held) - 1)), targets)
        elif choice == "send":
            peers.send(data.draw(st.integers(0, 2)))
        elif choice == "receive":
            peers.receive(data.draw(st.sampled_from(sorted(peers.wires))))
        peers.check()
    while peers.in_flight:
        peers.consume(0)
    while peers.held:  # those that wait for a frontier: some must be due, although covered changes are not sent
        peers.deliver_all()
        due = peers.due()
        assert due, f"no worker can go on: {peers.held}"
        peers.release(due[0], ())
    peers.deliver_all()
    for tracker in peers.trackers:
        assert tracker.is_idle and tracker.local_frontier(peers.after) == CLOSED


@given(st.data(), st.integers(2, 4), st.integers(1, 5))
def test_a_worker_sends_one_progress_message_in_each_round(data: st.DataObject, n: int, rounds: int) -> None:
    """All workers send rows to all in each round. In any order of arrival, one message for each round suffices."""
    peers, sent = Peers(n), [0] * n
    peers.in_flight = []
    for worker, tracker in enumerate(peers.trackers):  # each begins with a held time
        tracker.receive([(0, peers.body, (0, 0), -1)])
        tracker.receive([(other, peers.out, (0, 0), 1) for other in range(n)])
        peers.held.append((worker, (0, 0)))
    for round_ in range(rounds):
        while any(time[1] <= round_ for _, time in [*peers.held, *peers.in_flight]):
            moves: list[tuple[str, int]] = [("release", index) for index in peers.due()]
            moves += [("consume", index) for index in range(len(peers.in_flight))]
            moves += [("receive", index) for index, wire in enumerate(sorted(peers.wires)) if peers.wires[wire]]
            assert moves, "all workers wait"
            kind, index = data.draw(st.sampled_from(moves))
            if kind == "consume":
                worker = peers.in_flight[index][0]
                peers.consume(index)
            elif kind == "release":
                worker = peers.held[index][0]
                peers.release(index, range(n) if round_ + 1 < rounds else ())
            else:
                wire = sorted(peers.wires)[index]
                worker = wire[1]
                peers.receive(wire)
            sent[worker] += peers.trackers[worker].must_send()
            peers.send(worker)
    assert max(sent) <= rounds


@given(st.data())
def test_covered_changes_never_advance_a_frontier_of_a_peer(data: st.DataObject) -> None:
    """If a worker need not send, its changes leave the frontiers that its peers wait for as they are."""
    peers = Peers(2)
    for _ in range(data.draw(st.integers(0, 12))):
        if peers.in_flight and data.draw(st.booleans()):
            peers.consume(data.draw(st.integers(0, len(peers.in_flight) - 1)))
        elif peers.held:
            targets = data.draw(st.lists(st.integers(0, 1), max_size=3))
            peers.release(data.draw(st.integers(0, len(peers.held) - 1)), targets)
        if data.draw(st.booleans()):
            peers.deliver_all()
    for worker, tracker in enumerate(peers.trackers):
        if not tracker.must_send():
            peer = peers.trackers[1 - worker]
            locations = (peers.body, peers.out, peers.after)
            before = [peer.frontier(peers.out), *map(peer.local_frontier, locations)]
            peer.receive(tracker.take_changes())
            assert before == [peer.frontier(peers.out), *map(peer.local_frontier, locations)]


@st.composite
def graphs_without_loops(draw: st.DrawFn) -> tuple[Reachability, list[tuple[int, int, bool]]]:
    """Draw a graph of a few locations, and its edges; those that cross begin at an exit."""
    graph, size = Reachability(), draw(st.integers(2, 6))
    for _ in range(size):
        graph.add_location(1)
    pairs = [(source, target) for source in range(size) for target in range(source + 1, size)]
    chosen = draw(st.lists(st.sampled_from(pairs), min_size=1, unique=True))
    edges = [(source, target, draw(st.booleans())) for source, target in chosen]
    for source, target, crosses in edges:
        graph.add_edge(source, target, identity(1), crosses=crosses)
    for location in draw(st.sets(st.integers(0, size - 1), max_size=2)):  # other dataflows import these
        graph.add_exit(location)
    return graph, edges


@given(st.data(), graphs_without_loops())
def test_several_pointstamps_together_cover_changes_without_loops(
    data: st.DataObject, drawn: tuple[Reachability, list[tuple[int, int, bool]]]
) -> None:
    """Covered changes advance no frontier that a peer waits for, and the last ones are sent."""
    graph, edges = drawn
    trackers = [Tracker(graph, shared=True, worker=worker) for worker in range(2)]
    there = [
        (
            data.draw(st.integers(0, 1)),
            data.draw(st.integers(0, len(graph.depths) - 1)),
            (data.draw(st.integers(0, 2)),),
        )
        for _ in range(data.draw(st.integers(1, 6)))
    ]
    for tracker in trackers:
        tracker.receive([(*pointstamp, 1) for pointstamp in there])
    wires: list[list[list[Change]]] = [[], []]

    def send_and_receive(worker: int, least: int) -> None:
        if trackers[worker].must_send():
            wires[1 - worker].append(trackers[worker].take_changes())
        while len(wires[worker]) > least:
            trackers[worker].receive(wires[worker].pop(0))

    while there:
        worker, location, time = there.pop(data.draw(st.integers(0, len(there) - 1)))
        for source, target, crosses in edges:
            if source == location and data.draw(st.booleans()):
                to = data.draw(st.integers(0, 1)) if crosses else worker
                trackers[worker].update(target, time, 1, to)
                there.append((to, target, time))
        trackers[worker].update(location, time, -1)
        if data.draw(st.booleans()):
            send_and_receive(worker, data.draw(st.integers(0, 1)))
        for owner, place, at in there:
            for tracker in trackers:
                assert tracker.frontier(place).beyond(at), "a frontier has passed a message"
            assert trackers[owner].local_frontier(place).beyond(at)
        tracker, peer = trackers[worker], trackers[1 - worker]
        if not wires[1 - worker] and not tracker.must_send():
            waited = [peer.local_frontier(place) for place in range(len(graph.depths))]
            peer.receive(tracker.take_changes())
            assert waited == [peer.local_frontier(place) for place in range(len(graph.depths))]
    for _ in range(2):
        for worker in (0, 1):
            send_and_receive(worker, 0)
    assert all(tracker.is_idle for tracker in trackers)


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
