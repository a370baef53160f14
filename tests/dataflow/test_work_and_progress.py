"""Work and coordination follow the change: not the data already there, and not the number of logical times."""

import gc
import weakref

import numpy as np
import pytest

import kpg
from kpg import col
from kpg.algebra.frontier import Frontier
from kpg.columns.updates import Updates, constant
from kpg.dataflow import channel
from kpg.dataflow.channel import Channel, LocalPact
from kpg.dataflow.direct_run import DirectRun
from kpg.dataflow.operator import Message, Operator
from kpg.dataflow.transport import ProgressFrame
from kpg.dataflow.worker import PROMPT_BYTES, Worker
from kpg.operators.arrange import arrange
from kpg.operators.payload import updates_of
from kpg.operators.small_loop import SmallLoop
from kpg.operators.source import Source
from kpg.testing.simulated_workers import SimulatedCluster, SimulatedTransport
from kpg.trace.batch import Batch
from kpg.trace.description import Description
from kpg.trace.handle import TraceHandle
from kpg.trace.merge_policy import PRESETS
from kpg.trace.spine import Spine


@pytest.fixture
def delivered(monkeypatch):
    """The number of updates in each message that any channel delivers, in order; all epochs take the general path."""
    sizes = []
    monkeypatch.setattr(DirectRun, "begin", lambda run: False)
    monkeypatch.setattr(SmallLoop, "can_take_over", lambda unit: False)
    deliver = Channel.deliver

    def count(self, message):
        sizes.append(channel.rows_of(message.payload))
        deliver(self, message)

    monkeypatch.setattr(Channel, "deliver", count)
    return sizes


def churn(size, changed, delivered):
    """Load `size` keys into a join, a count and a loop; return the updates delivered for a change of some rows."""
    with kpg.open() as db:
        left, right = db.input("left", k=int, v=int), db.input("right", k=int, w=int)
        keys = np.arange(size)
        left.arrange("k").join(right, on="k").count("k").output("pairs")
        reached = left.select(n=col("v")).iterate(
            lambda now: now.join(right, on={"n": "k"}).select(n=col("w")).consolidate().concat(now).distinct()
        )  # consolidated, so that it stays a loop
        reached.output("reached")
        left.insert({"k": keys, "v": keys})
        right.insert({"k": keys, "w": keys // 2})
        db.advance()
        delivered.clear()
        left.insert({"k": keys[:changed], "v": keys[:changed] + 1})
        db.advance()
        return sum(delivered)


def test_updates_delivered_for_a_change_do_not_grow_with_the_data_already_there(delivered):
    """A2.9: the same change costs the same messages in a collection of a thousand rows and of thirty thousand."""
    small, large = churn(1_000, 3, delivered), churn(30_000, 3, delivered)
    assert 3 <= large <= small
    assert churn(1_000, 300, delivered) > 10 * small  # the count does follow the change


@pytest.fixture
def frames(monkeypatch):
    """The progress frames that workers broadcast, in order."""
    sent = []
    broadcast = SimulatedTransport.broadcast

    def record(self, frame):
        if isinstance(frame, ProgressFrame):
            sent.append(frame)
        broadcast(self, frame)

    monkeypatch.setattr(SimulatedTransport, "broadcast", record)
    return sent


def progress_of(times, frames):
    """Feed 600 rows at a number of distinct times in one advance; return the progress frames and count changes."""
    cluster = SimulatedCluster(2, lambda db: db.input("rows", k=int, v=int).arrange("k").count("k").output("counts"))
    cluster.advance()
    frames.clear()
    for index, db in enumerate(cluster.databases):
        rows = np.arange(index, 600, 2)
        at = db.epoch + rows * times // 600
        db.inputs["rows"].update_at({"k": rows % 7, "v": rows}, at, np.ones(len(rows), np.int64))
        db.push_to(db.epoch + times)
    cluster.settle()
    for output in cluster.outputs:
        cluster.changes += list(output.changes())
    assert sum(row[1] * diff for row, _, diff in cluster.changes) == 600
    assert len({time for _, time, _ in cluster.changes}) == times
    return len(frames), sum(len(changes) for frame in frames for _, changes in frame.changes)


def test_progress_messages_do_not_grow_with_the_number_of_times_that_an_advance_retires(frames):
    """A1.14: an advance over 300 distinct times sends about as many progress frames and counts as one over one time."""
    one_time, many_times = progress_of(1, frames), progress_of(300, frames)
    assert 0 < many_times[0] <= one_time[0] + 1  # rows that arrive late may be at earlier times than those before
    assert many_times[1] <= 2 * one_time[1]


@pytest.mark.parametrize("peers", [2, 3, 4])
def test_a_loop_sends_one_progress_frame_in_each_round(frames, peers):
    """A1.14: a worker that has sent its rows of a round tells its peers once, and sends nothing when theirs arrive."""

    def count_up(db):
        start = db.input("start", n=int)
        return start.iterate(lambda now: steps(now).concat(start).distinct()).output("numbers")

    def steps(now):  # every row leads to several in the next round, of several workers
        following = (col("n") // 1000 + 1) * 1000
        lanes = [now.select(n=following + lane) for lane in range(8)]
        return lanes[0].concat(*lanes[1:]).filter(col("n") < 1000 * 40)

    cluster = SimulatedCluster(peers, count_up)
    cluster.advance()
    frames.clear()
    cluster.insert(0, "start", (0,))
    cluster.advance()
    assert len(cluster.answer()) > 40
    assert len(frames) <= peers * (40 + 4)


def test_the_counts_of_many_rows_leave_before_the_next_step(monkeypatch):
    """A worker that has sent many rows lets its peers process them while it goes on."""
    events = []

    def record(cls, method, worker_of):
        plain = getattr(cls, method)

        def call(self, *args, **kwargs):
            events.append((method, worker_of(self)))
            return plain(self, *args, **kwargs)

        monkeypatch.setattr(cls, method, call)

    record(SimulatedTransport, "send_data", lambda transport: transport.index)
    record(SimulatedTransport, "broadcast", lambda transport: transport.index)
    record(Operator, "run", lambda operator: operator.dataflow.worker.index)

    def pairs(db):
        left, right = db.input("left", k=int, v=int), db.input("right", k=int, v=int)
        return left.concat(right).select(v=col("v")).count("v").output("counts")

    cluster = SimulatedCluster(2, pairs)
    cluster.advance()
    for rows in (100, 10 * PROMPT_BYTES // 16):
        for name in ("left", "right"):
            numbers = np.arange(rows)
            cluster.databases[0].inputs[name].insert({"k": numbers, "v": numbers})
        events.clear()
        cluster.advance()
        own = [event for event, index in events if index == 0]
        followed = {own[at + 1] for at, event in enumerate(own[:-1]) if event == "send_data"}
        assert "send_data" in own and ("run" in followed) == (rows == 100)
    assert sum(cluster.answer().values()) == rows


def test_an_advance_seals_one_batch_however_many_times_it_covers():
    """A3.6: 300 distinct times become one batch of the shared arrangement."""
    with kpg.open() as db:
        rows = db.input("rows", k=int, v=int)
        shared = rows.arrange("k")
        db.advance()
        sealed = []
        spine = shared.installed.publisher.spine()
        append = type(spine).append

        def record(self, batch):
            if self is spine:
                sealed.append(batch)
            return append(self, batch)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(type(spine), "append", record)
            start = db.epoch
            rows.update_at({"k": np.arange(300), "v": np.arange(300)}, start + np.arange(300), np.ones(300, np.int64))
            db.advance_to(start + 300)
        (batch,) = [batch for batch in sealed if len(batch)]
        assert len(np.unique(np.broadcast_to(batch.updates.times[0], len(batch)))) == 300


class CollectRows(Operator):
    """Remembers the rows of all batches that arrive."""

    def __init__(self):
        super().__init__("collect")
        self.rows = []

    def step(self, inputs):
        for message in inputs[0]:
            for updates in updates_of(message.payload):
                self.rows += updates.data.T.tolist()
        return False


def test_batches_still_flow_after_the_trace_of_an_arrangement_is_freed():
    """A3.10: arrange holds its trace weakly. Without handles the trace is freed, and batches go on downstream."""
    gc.disable()  # the trace must go by its reference count alone
    try:
        worker, source, collect, added = Worker(), Source("rows"), CollectRows(), []

        def build(dataflow):
            stream = dataflow.add_source(source, lambda: worker.clock.frontier, depth=1)
            added.extend(
                arrange(
                    dataflow, "by key", stream, LocalPact(), key_lanes=1, lanes=1, width=1, policy=PRESETS["default"]
                )
            )
            dataflow.add(collect, [(added[1].stream, LocalPact())], depth=1)

        dataflow = worker.install("arranged", build)
        for epoch in range(3):
            updates = Updates(np.array([[epoch]]), constant((epoch,)), constant((1,)))
            dataflow.feed(source, Message(((epoch,),), updates))
            worker.advance_to(Frontier.at((epoch + 1,)))
            worker.run()
            if epoch == 0:
                operator, arranged = added
                spine = weakref.ref(operator.spine())
                assert spine() is not None
                arranged.handle.release()
                assert spine() is None and operator.spine() is None
        assert collect.rows == [[0], [1], [2]]
    finally:
        gc.enable()


def test_rows_of_a_long_running_loop_stay_bounded_while_since_advances():
    """A17.2: after 600 epochs of churn the traces inside a loop hold no more than after 100."""
    draw = np.random.default_rng(3)
    with kpg.open() as db:
        edges, roots = db.input("edges", src=int, dst=int), db.input("roots", node=int)
        kpg.graphs.bfs(edges, roots).output("distances")
        graph = {tuple(edge) for edge in draw.integers(0, 60, (150, 2)).tolist()}
        edges.insert(sorted(graph))
        roots.insert([(0,)])
        db.advance()
        held = []
        for epoch in range(600):
            gone = sorted(graph)[int(draw.integers(len(graph)))]
            new = tuple(draw.integers(0, 60, 2).tolist())
            graph.discard(gone)
            edges.remove([gone])
            if new not in graph:
                graph.add(new)
                edges.insert([new])
            db.advance()
            if epoch >= 50:
                held.append(sum(entry["rows"] for entry in db.describe()["arrangements"]))
        assert max(held[-200:]) <= 1.5 * max(held[:100])


@pytest.mark.slow
@pytest.mark.jit
def test_a_million_empty_epochs_leave_no_batch_and_no_byte():
    """A17.4: an idle trace keeps its batches and its size while time advances."""
    spine = Spine(1, 1, 1)
    with TraceHandle(spine, "reader", Frontier.start(1)) as handle:
        data = np.arange(10).reshape(1, 10)
        first = Updates(data, constant((0,)), constant((1,)))
        start = Frontier.start(1)
        spine.insert(Batch(first, 1, Description(start, Frontier.at((1,)), start)))
        batches, nbytes = spine.batches_through(None), spine.nbytes
        nothing = Updates(data[:, :0].copy(), constant((0,)), constant((1,)))
        lower = Frontier.at((1,))
        for epoch in range(2, 1_000_002):
            upper = Frontier.at((epoch,))
            spine.insert(Batch(nothing, 1, Description(lower, upper, start)))
            lower = upper
        assert spine.batches_through(None) == batches and spine.nbytes == nbytes
        assert spine.upper == Frontier.at((1_000_001,))
        handle.release()
