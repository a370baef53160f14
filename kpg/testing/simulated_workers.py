"""Several workers in one process. A test steps them in any order, and decides when the network delivers each frame.

Each worker has its own db with the same inputs and outputs, built in the same order. Workers exchange rows by key, and
send progress in frames. The sum of the outputs of all workers must equal the output of a single worker. Also, at every
moment:

    safety     no message arrives at a time that a reported frontier has passed, and reported frontiers never go back
    liveness   when no work and no frame is left, every frontier is that of the clock

`check` asserts safety, `settle` asserts both. A test may step workers and deliver frames one by one, or call `advance`.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from kpg.algebra.frontier import Frontier
from kpg.api.embedded_database import EmbeddedDatabase
from kpg.api.embedded_output import EmbeddedOutput
from kpg.columns.symbols import Symbols
from kpg.columns.updates import Updates
from kpg.config import Config, Effort
from kpg.dataflow.operator import Message, Operator
from kpg.dataflow.transport import DataFrame, FailureFrame, Frame, ProgressFrame
from kpg.dataflow.worker import Worker

Program = Callable[[EmbeddedDatabase], EmbeddedOutput]


class SimulatedNetwork:
    """Frames in transit between workers: rows and progress each keep their order, but not relative to each other."""

    def __init__(self, peers: int) -> None:
        self.transports = [SimulatedTransport(self, index) for index in range(peers)]
        wires = [(source, target) for source in range(peers) for target in range(peers) if source != target]
        self.rows: dict[tuple[int, int], deque[Frame]] = {wire: deque() for wire in wires}
        self.progress: dict[tuple[int, int], deque[Frame]] = {wire: deque() for wire in wires}

    def deliver(self, source: int, target: int, *, rows: bool) -> bool:
        """Deliver the next frame from one worker to another; return False if there is none."""
        wires = self.rows if rows else self.progress
        queue = wires.get((source, target))
        if not queue:
            return False
        self.transports[target].arrived.append(queue.popleft())
        return True

    def deliver_all(self) -> bool:
        """Deliver all frames; return False if none was in transit."""
        busy = False
        for wires in (self.progress, self.rows):
            for (_, target), queue in wires.items():
                busy |= bool(queue)
                self.transports[target].arrived += queue
                queue.clear()
        return busy

    def messages(self) -> Iterator[tuple[int, DataFrame]]:
        """Yield the data frames that no worker has received yet, each with its target."""
        for (_, target), queue in self.rows.items():
            yield from ((target, frame) for frame in queue if isinstance(frame, DataFrame))
        for target, transport in enumerate(self.transports):
            yield from ((target, frame) for frame in transport.arrived if isinstance(frame, DataFrame))


class SimulatedTransport:
    """One worker's connection to the network."""

    def __init__(self, network: SimulatedNetwork, index: int) -> None:
        self.network = network
        self.index = index
        self.arrived: list[Frame] = []

    def send_data(
        self, peer: int, dataflow: int, channel: int, message: Message, symbolic: tuple[int, ...] = ()
    ) -> int:
        """Send rows to a peer, not encoded, and return their bytes; `symbolic` are the lanes that hold symbols."""
        self.network.rows[self.index, peer].append(DataFrame(dataflow, channel, message))
        assert isinstance(message.payload, Updates)
        return message.payload.nbytes

    def broadcast(self, frame: ProgressFrame | FailureFrame) -> int:
        """Send a frame to all peers."""
        for (source, _), queue in self.network.progress.items():
            if source == self.index:
                queue.append(frame)
        return 0

    def receive(self) -> list[Frame]:
        """Return the frames that have arrived, and clear them."""
        frames, self.arrived = self.arrived, []
        return frames


class SimulatedRank(EmbeddedDatabase):
    """The db of one worker; the cluster decides for all workers how far history is compacted."""

    def __init__(self, cluster: SimulatedCluster, config: Config, worker: Worker) -> None:
        super().__init__(config, worker, cluster.symbols)
        self.cluster = cluster

    def horizon(self, relations: frozenset[str] | None = None) -> Frontier:
        """Return the earliest time that can still be read, which is the same on all workers."""
        return self.cluster.horizon


class SimulatedCluster:
    """A program that runs on `peers` workers."""

    def __init__(
        self,
        peers: int,
        program: Program | None = None,
        history: int | None = 0,
        effort: Effort = "default",
        coordinates: int = 1,
    ) -> None:
        config = Config(history=history, effort=effort, coordinates=coordinates)
        self.symbols = Symbols()
        self.horizon = Frontier.start(coordinates)
        self.network = SimulatedNetwork(peers)
        start = (0,) * coordinates
        self.workers = [
            Worker(index, peers, transport, start) for index, transport in enumerate(self.network.transports)
        ]
        self.databases = [SimulatedRank(self, config, worker) for worker in self.workers]
        self.outputs: list[EmbeddedOutput] = []
        self.changes: list[tuple[tuple[Any, ...], tuple[int, ...], int]] = []
        self._reported: dict[tuple[Operator, int], Frontier] = {}
        self._before = [db.time for db in self.databases]
        if program is not None:
            self.outputs = self.build(program)

    def build(self, program: Callable[[EmbeddedDatabase], Any]) -> list[Any]:
        """Run the program on every worker; return the results."""
        return [program(db) for db in self.databases]

    # Rows and time

    def insert(self, worker: int, name: str, row: tuple[Any, ...], diff: int = 1) -> None:
        """Insert (or remove) a row at one worker; the exchange routes it to its owner."""
        source = self.databases[worker].inputs[name]
        source.insert([row]) if diff > 0 else source.remove([row])

    def push_to(self, worker: int, time: Any) -> None:
        """Advance one worker's clock, without doing any work."""
        self.databases[worker].push_to(time)

    def advance(self, schedule: Iterable[int] = ()) -> None:
        """Advance by one epoch: step the workers in the order of the schedule, then in turn until no work is left."""
        for index, db in enumerate(self.databases):
            self.push_to(index, db.epoch + 1)
        for index in schedule:
            self.network.deliver_all()
            self.workers[index % len(self.workers)].step()
        self.settle()
        for output in self.outputs:
            self.changes += [(row, as_time(when), diff) for row, when, diff in output.changes()]

    # Work

    def step(self, worker: int) -> bool:
        """Step one worker, which processes the frames that have arrived; return whether it did any work."""
        return self.workers[worker].step()

    def settle(self) -> None:
        """Deliver and step until no work is left; then assert that every frontier is the clock's."""
        while self.network.deliver_all() | bool(sum(worker.step() for worker in self.workers)):  # every worker steps
            self.check()
        for db, before in zip(self.databases, self._before, strict=True):
            assert not db.worker._early_frames, "frames for a dataflow that no worker builds"
            now = db.worker.clock.frontier
            for dataflow in db.worker.dataflows.values():
                for counts in dataflow.tracker.all_counts():
                    for time, count in counts.items():  # only capabilities for later times may remain
                        assert count > 0 and now.extend(len(time)).beyond(time), f"{dataflow.name} is stuck at {time}"
            db.seal(before)
        self._before = [db.time for db in self.databases]
        self.horizon = EmbeddedDatabase.horizon(self.databases[0])
        for db in self.databases[1:]:
            self.horizon = self.horizon.meet(EmbeddedDatabase.horizon(db))

    def check(self) -> None:
        """Assert safety: no frontier went back, and no frame in transit is at a time that a frontier has passed."""
        for worker in self.workers:
            for dataflow in worker.dataflows.values():
                for operator in dataflow.operators:
                    for index, queue in enumerate(operator.queues):
                        now = operator.frontier(index)
                        before = self._reported.setdefault((operator, index), now)
                        assert before.precedes(now), f"the frontier of {operator.name} went back from {before} to {now}"
                        self._reported[operator, index] = now
                        assert all(now.beyond(time) for message in queue for time in message.times)
        for target, frame in self.network.messages():
            receiver = self.workers[target].dataflows.get(frame.dataflow)
            if receiver is not None:
                channel = receiver.channels[frame.channel]
                now = channel.target.frontier(channel.target_input)
                for time in frame.message.times:
                    assert now.beyond(time), (
                        f"the frontier of {channel.target.name} is {now}, but a frame at {time} is in transit"
                    )

    # Outputs

    def answer(self) -> dict[tuple[Any, ...], int]:
        """Return the sum of all workers' changes."""
        total: defaultdict[tuple[Any, ...], int] = defaultdict(int)
        for row, _, diff in self.changes:
            total[row] += diff
        return {row: count for row, count in total.items() if count}


def as_time(time: Any) -> tuple[int, ...]:
    """Return a time as a tuple of coordinates."""
    return time if isinstance(time, tuple) else (time,)
