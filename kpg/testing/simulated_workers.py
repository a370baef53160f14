"""Several workers in one process, stepped in whatever order a test chooses, over a network that delivers when told.

Each worker has its own db with the same inputs and answers, built in the same order; rows are exchanged by key and
progress by frames. What the workers' answers say together must be what one worker says, and at every moment

    safety     no message arrives where a frontier that was told has passed its time, and told frontiers never go back
    liveness   when nothing is left to do and nothing is on its way, every frontier is that of the clock

`check` asserts the first, `settle` both. A test may step workers and deliver frames one by one, or just `advance`.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from kpg.algebra.frontier import Frontier
from kpg.api.embedded_database import EmbeddedDatabase
from kpg.api.embedded_output import EmbeddedOutput
from kpg.columns.symbols import Symbols
from kpg.config import Config, Effort
from kpg.dataflow.operator import Message, Operator
from kpg.dataflow.transport import DataFrame, FailureFrame, Frame, ProgressFrame
from kpg.dataflow.worker import Worker

Program = Callable[[EmbeddedDatabase], EmbeddedOutput]


class SimulatedNetwork:
    """Frames on their way between workers: rows and progress each in their order, but not with each other."""

    def __init__(self, peers: int) -> None:
        self.ends = [End(self, index) for index in range(peers)]
        wires = [(source, target) for source in range(peers) for target in range(peers) if source != target]
        self.rows: dict[tuple[int, int], deque[Frame]] = {wire: deque() for wire in wires}
        self.progress: dict[tuple[int, int], deque[Frame]] = {wire: deque() for wire in wires}

    def deliver(self, source: int, target: int, *, rows: bool) -> bool:
        """Let the next frame from one worker to another arrive; False if there is none."""
        wires = self.rows if rows else self.progress
        queue = wires.get((source, target))
        if not queue:
            return False
        self.ends[target].arrived.append(queue.popleft())
        return True

    def deliver_all(self) -> bool:
        """Let everything arrive; False if nothing was on its way."""
        busy = False
        for wires in (self.progress, self.rows):
            for (_, target), queue in wires.items():
                busy |= bool(queue)
                self.ends[target].arrived += queue
                queue.clear()
        return busy

    def messages(self) -> Iterator[tuple[int, DataFrame]]:
        """The rows that have not been taken, and the worker they are for."""
        for (_, target), queue in self.rows.items():
            yield from ((target, frame) for frame in queue if isinstance(frame, DataFrame))
        for target, end in enumerate(self.ends):
            yield from ((target, frame) for frame in end.arrived if isinstance(frame, DataFrame))


class End:
    """One worker's connection with the network."""

    def __init__(self, network: SimulatedNetwork, index: int) -> None:
        self.network = network
        self.index = index
        self.arrived: list[Frame] = []

    def send_data(
        self, peer: int, dataflow: int, channel: int, message: Message, symbolic: tuple[int, ...] = ()
    ) -> None:
        """Send rows to a peer; `symbolic` are the lanes that hold symbols."""
        self.network.rows[self.index, peer].append(DataFrame(dataflow, channel, message))

    def broadcast(self, frame: ProgressFrame | FailureFrame) -> None:
        """Tell all peers what changed."""
        for (source, _), queue in self.network.progress.items():
            if source == self.index:
                queue.append(frame)

    def receive(self) -> list[Frame]:
        """Take what has arrived."""
        frames, self.arrived = self.arrived, []
        return frames


class SimulatedRank(EmbeddedDatabase):
    """The db of one worker; how far history is forgotten is decided once for all of them."""

    def __init__(self, cluster: SimulatedCluster, config: Config, worker: Worker) -> None:
        super().__init__(config, worker, cluster.symbols)
        self.cluster = cluster

    def horizon(self, relations: frozenset[str] | None = None) -> Frontier:
        """The earliest time that can still be read: the same on all workers."""
        return self.cluster.horizon


class SimulatedCluster:
    """A program on `peers` workers."""

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
        self.workers = [Worker(index, peers, end, start) for index, end in enumerate(self.network.ends)]
        self.databases = [SimulatedRank(self, config, worker) for worker in self.workers]
        self.outputs: list[EmbeddedOutput] = []
        self.changes: list[tuple[tuple[Any, ...], tuple[int, ...], int]] = []
        self._told: dict[tuple[Operator, int], Frontier] = {}
        self._before = [db.time for db in self.databases]
        if program is not None:
            self.outputs = self.build(program)

    def build(self, program: Callable[[EmbeddedDatabase], Any]) -> list[Any]:
        """Build the same on every worker."""
        return [program(db) for db in self.databases]

    # Rows and time

    def insert(self, worker: int, name: str, row: tuple[Any, ...], diff: int = 1) -> None:
        """One worker takes in a row; where it belongs is for exchange to find out."""
        source = self.databases[worker].inputs[name]
        source.insert([row]) if diff > 0 else source.remove([row])

    def push_to(self, worker: int, time: Any) -> None:
        """One worker's clock moves on; no work is done yet."""
        self.databases[worker].push_to(time)

    def advance(self, schedule: Iterable[int] = ()) -> None:
        """One epoch further: the workers step in the order of the schedule, then in turn until all is done."""
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
        """One step of one worker, with what has arrived there."""
        return self.workers[worker].step()

    def settle(self) -> None:
        """Deliver and step until nothing is left to do; then every frontier is the clock's."""
        while self.network.deliver_all() | bool(sum(worker.step() for worker in self.workers)):  # every worker steps
            self.check()
        for db, before in zip(self.databases, self._before, strict=True):
            assert not db.worker._early_frames, "frames for a dataflow that nobody builds"
            now = db.worker.clock.frontier
            for dataflow in db.worker.dataflows.values():
                for counts in dataflow.tracker.counts.values():
                    for time, count in counts.items():  # only what is held for a time to come
                        assert count > 0 and now.extend(len(time)).beyond(time), f"{dataflow.name} is stuck at {time}"
            db.seal(before)
        self._before = [db.time for db in self.databases]
        self.horizon = EmbeddedDatabase.horizon(self.databases[0])
        for db in self.databases[1:]:
            self.horizon = self.horizon.meet(EmbeddedDatabase.horizon(db))

    def check(self) -> None:
        """Safety: what was told of frontiers still holds, and nothing on its way contradicts it."""
        for worker in self.workers:
            for dataflow in worker.dataflows.values():
                for operator in dataflow.operators:
                    for index, queue in enumerate(operator.queues):
                        now = operator.frontier(index)
                        before = self._told.setdefault((operator, index), now)
                        assert before.precedes(now), f"{operator.name} was told {before}, now {now}"
                        self._told[operator, index] = now
                        assert all(now.beyond(time) for message in queue for time in message.times)
        for target, frame in self.network.messages():
            found = self.workers[target].dataflows.get(frame.dataflow)
            if found is not None:
                channel = found.channels[frame.channel]
                now = channel.target.frontier(channel.target_input)
                for time in frame.message.times:
                    assert now.beyond(time), f"{channel.target.name} was told {now}, but {time} is on its way"

    # Answers

    def answer(self) -> dict[tuple[Any, ...], int]:
        """What all workers' changes add up to."""
        total: defaultdict[tuple[Any, ...], int] = defaultdict(int)
        for row, _, diff in self.changes:
            total[row] += diff
        return {row: count for row, count in total.items() if count}


def as_time(time: Any) -> tuple[int, ...]:
    """A time as its coordinates."""
    return time if isinstance(time, tuple) else (time,)
