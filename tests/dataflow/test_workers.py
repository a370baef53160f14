"""Two and three workers together give the answer of one, for every order of steps."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kpg
from kpg import col
from kpg.dataflow.operator import Message
from kpg.operators.exchange import owners_of
from kpg.testing.simulated_workers import SimulatedCluster, SimulatedTransport
from kpg.testing.strategies import rows


def counts(db: kpg.Database) -> kpg.Output:
    """Count the edges of each node, and keep nodes with two or more."""
    edges = db.input("edges", src=int, dst=int)
    return edges.count("src").filter(col("count") > 1).output("answer")


def two_hops(db: kpg.Database) -> kpg.Output:
    """Join an index with its own reverse."""
    edges = db.input("edges", src=int, dst=int)
    by_src = edges.arrange("src")
    return by_src.join(edges.rename(src="from", dst="src"), on="src").select("from", "dst").distinct().output("answer")


def reach(db: kpg.Database) -> kpg.Output:
    """Compute the nodes that each node reaches in one or more steps."""
    edges = db.input("edges", src=int, dst=int)
    by_src = edges.arrange("src")
    return edges.iterate(
        lambda seen: (
            by_src.join(seen.rename(src="root", dst="src"), on="src")
            .select(src=col("root"), dst=col("dst") + 0)  # computed, so that it stays a loop
            .concat(edges)
            .distinct()
        )
    ).output("answer")


def least_label(db: kpg.Database) -> kpg.Output:
    """Compute for each node the least node that reaches it: min inside a loop."""
    edges = db.input("edges", src=int, dst=int)
    by_src = edges.arrange("src")
    labels = edges.select(node=col("src"), label=col("src")).concat(edges.select(node=col("dst"), label=col("dst")))
    return labels.iterate(
        lambda now: (
            by_src.join(now, on={"src": "node"})
            .select(node=col("dst"), label=col("label"))
            .concat(labels)
            .group_by("node")
            .min("label")
        )
    ).output("answer")


Step = list[tuple[int, tuple[int, ...], int]]  # worker, row, diff
steps = st.lists(st.tuples(st.integers(0, 2), rows(2, 3), st.sampled_from([1, 1, -1])), max_size=6)


@pytest.mark.parametrize("program", [counts, two_hops, reach, least_label])
@given(
    epochs=st.lists(steps, min_size=1, max_size=4),
    peers=st.sampled_from([2, 3]),
    schedule=st.lists(st.integers(0, 2), max_size=60),
)
def test_several_workers_give_the_answer_of_one(
    program: Callable[[kpg.Database], kpg.Output], epochs: list[Step], peers: int, schedule: list[int]
) -> None:
    """A1.2 A1.5 A1.8 A1.14: the same dataflows on each, rows exchanged by key, counts through a channel."""
    alone, together = SimulatedCluster(1, program), SimulatedCluster(peers, program)
    present: dict[tuple[int, ...], int] = {}
    for changes in epochs:
        for worker, row, diff in changes:
            if diff < 0 and not present.get(row):
                continue  # only present rows can be removed
            present[row] = present.get(row, 0) + diff
            alone.insert(0, "edges", row, diff)
            together.insert(worker % peers, "edges", row, diff)
        alone.advance()
        together.advance(schedule)
        assert together.answer() == alone.answer()


def test_operators_and_channels_have_the_same_numbers_everywhere() -> None:
    """A1.2: identical operators and channels on all workers."""
    cluster = SimulatedCluster(3, reach)
    shapes = [
        [
            (
                dataflow.id,
                [(operator.index, operator.name) for operator in dataflow.operators],
                [(channel.index, channel.target.index, channel.target_input) for channel in dataflow.channels],
            )
            for dataflow in worker.dataflows.values()
        ]
        for worker in cluster.workers
    ]
    assert shapes[0] == shapes[1] == shapes[2]


def test_equal_keys_are_on_one_worker() -> None:
    """A1.5: after an exchange each worker's trace holds only keys it owns, and together they hold all keys."""
    cluster = SimulatedCluster(2, two_hops)
    for node in range(40):
        cluster.insert(node % 2, "edges", (node, node + 1))
    cluster.advance()
    held: list[set[int]] = []
    for index, db in enumerate(cluster.databases):
        base = db.inputs["edges"].base()
        keys = {key for batch in base.handle.batches(None) for key in batch.updates.data[0].tolist()}
        for batch in base.handle.batches(None):
            owners = owners_of(np.ascontiguousarray(batch.updates.data[:1]), (False,), db.symbols, 2).owner
            assert set(owners.tolist()) <= {index}
        held.append(keys)
    assert held[0] | held[1] == set(range(40)) and not held[0] & held[1] and all(held)


def test_only_updates_before_an_arrangement_are_sent_to_other_workers() -> None:
    """A3.17: batches, traces and handles stay on their worker; only updates are sent, before arrange."""
    crossed: list[tuple[str, str]] = []

    def program(db: kpg.Database) -> kpg.Output:
        answer = reach(db)
        db["edges"].arrange("src").count("src").output("shares")
        return answer

    cluster = SimulatedCluster(2, program)
    for end in cluster.network.transports:
        end.send_data = recording(cluster, end, crossed)  # type: ignore[method-assign]
    for node in range(30):
        cluster.insert(node % 2, "edges", (node, node + 1))
    cluster.advance()
    assert crossed and {kind for _, kind in crossed} == {"Updates"}
    assert {name.split()[0] for name, _ in crossed} <= {"arrange", "place"}  # the latter as rows enter a loop
    traces = [{id(spine) for spine in db.spines()} for db in cluster.databases]
    batches = [
        {id(batch.updates.data) for spine in db.spines() for batch in spine.batches_through(None)}
        for db in cluster.databases
    ]
    assert not traces[0] & traces[1] and not batches[0] & batches[1]
    for db in cluster.databases:
        for dataflow in db.worker.dataflows.values():
            assert all(reader.worker is db.worker for reader in dataflow.readers)
            for operator in dataflow.operators:
                for importer in getattr(operator, "importers", ()):
                    assert importer.dataflow.worker is db.worker


def test_a_query_on_a_shared_arrangement_moves_no_rows() -> None:
    """A3.17: it is arranged by the right key already, so each worker answers from its own shard."""
    crossed: list[tuple[str, str]] = []
    cluster = SimulatedCluster(3, two_hops)
    for node in range(30):
        cluster.insert(node % 3, "edges", (node, node + 1))
    cluster.advance()
    for end in cluster.network.transports:
        end.send_data = recording(cluster, end, crossed)  # type: ignore[method-assign]

    def sharing(db: kpg.Database) -> kpg.Output:
        by_src = db["edges"].arrange("src")
        return by_src.join(by_src.group_by("src").min("dst"), on="src").output("late", keep=False)

    late = cluster.build(sharing)
    cluster.settle()
    answered = [row for output in late for row, _, _ in output.changes()]
    assert sorted(answered) == [(node, node + 1, node + 1) for node in range(30)]
    rows_of = {name for name, _ in crossed}
    assert rows_of <= {"consolidate"}, "only the answer itself is gathered by row"


def recording(cluster: SimulatedCluster, end: SimulatedTransport, crossed: list[tuple[str, str]]) -> Callable[..., int]:
    """Return a `send_data` that records the target and the payload type of each message."""
    send = end.send_data

    def record(peer: int, dataflow: int, channel: int, message: Message, symbolic: tuple[int, ...] = ()) -> int:
        target = cluster.workers[end.index].dataflows[dataflow].channels[channel].target
        crossed.append((target.name, type(message.payload).__name__))
        return send(peer, dataflow, channel, message, symbolic)

    return record


def test_a_dataflow_that_fails_on_one_worker_fails_on_all():
    """Other workers do not wait for it, and their other dataflows continue."""

    def program(db: kpg.Database) -> kpg.Output:
        numbers = db.input("numbers", n=int)
        endless = numbers.iterate(lambda now: now.select(n=col("n") + 1).concat(numbers), max_rounds=5)
        db.endless = endless.output("endless")
        return numbers.distinct().output("answer")

    cluster = SimulatedCluster(2, program)
    cluster.insert(0, "numbers", (1,))
    cluster.advance()
    for db in cluster.databases:
        with pytest.raises(kpg.TooManyRounds):
            db.endless.rows()
    cluster.insert(1, "numbers", (2,))
    cluster.advance()
    assert cluster.answer() == {(1,): 1, (2,): 1}
