"""Several workers over an adversarial network: frames arrive late, and workers build and advance at different times.

In every order, no message arrives before a frontier that was reported (safety), all work ends (liveness), and the
workers together give the answer of the query at every time (A1.2, A1.5, A1.8, A1.13, A3.17).
"""

from collections.abc import Iterator
from itertools import cycle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpg.testing.model import Update, assert_agrees
from kpg.testing.simulated_workers import SimulatedCluster, as_time
from tests.api import (
    test_joins,
    test_nested_loops,
    test_recursion,
    test_reduction_values,
    test_reductions,
    test_row_operators,
)
from tests.api.plays import Performance, Play, Query, agree, examples, plays, push

NOISE = st.lists(st.integers(0, 999), min_size=1, max_size=60)


class Adversary:
    """Make a few steps and deliveries of its choice on each call."""

    def __init__(self, cluster: SimulatedCluster, noise: list[int]) -> None:
        self.cluster = cluster
        self.peers = len(cluster.workers)
        self._noise: Iterator[int] = cycle(noise)

    def act(self) -> None:
        """Make up to seven steps and deliveries."""
        for _ in range(next(self._noise) % 8):
            choice = next(self._noise)
            kind, sender, receiver = choice % 3, choice // 3 % self.peers, choice // 9 % self.peers
            if kind == 0:
                self.cluster.step(sender)
            else:
                self.cluster.network.deliver(sender, receiver, rows=kind == 1)
            self.cluster.check()

    def order(self) -> list[int]:
        """Return the workers in an order of its choice."""
        first = next(self._noise) % self.peers
        return [(first + rank) % self.peers for rank in range(self.peers)]

    def worker(self) -> int:
        """Choose a worker."""
        return next(self._noise) % self.peers


def perform(
    play: Play, schemas: dict[str, dict[str, Any]], queries: dict[str, Query], peers: int, noise: list[int]
) -> Performance:
    """Perform a play on several workers, with each query installed early and late."""
    cluster = SimulatedCluster(peers, history=play.history, effort=play.effort, coordinates=play.coordinates)  # type: ignore[arg-type]
    adversary = Adversary(cluster, noise)
    inputs = cluster.build(lambda db: {name: db.input(name, **columns) for name, columns in schemas.items()})
    early = install(cluster, adversary, inputs, queries, "")
    late: list[dict[str, Any]] = []
    done = Performance({name: [] for name in queries}, {name: [] for name in queries}, cluster.horizon, {})
    for index, frontier in enumerate([*play.clock[1:], None]):
        if index == play.install:
            done.since = cluster.horizon
            late = install(cluster, adversary, inputs, queries, "late ")
        for item in play.pushes[index]:
            worker = adversary.worker()
            push(cluster.databases[worker], inputs[worker], [item])
        if frontier is not None:
            for worker in adversary.order():
                cluster.push_to(worker, frontier)
                adversary.act()
        if play.read[index]:  # otherwise workers continue while earlier times are in flight
            cluster.settle()
        if play.idle[index]:
            cluster.databases[adversary.worker()].worker.idle_merge(play.idle[index], 99)
    cluster.settle()
    if play.install == len(play.clock):
        done.since = cluster.horizon
        late = install(cluster, adversary, inputs, queries, "late ")
        cluster.settle()
    for outputs, into in ((early, done.early), (late, done.late)):
        for part in outputs:
            for name, output in part.items():
                into[name] += [(row, as_time(time), diff) for row, time, diff in output.changes()]
    return done


def install(
    cluster: SimulatedCluster,
    adversary: Adversary,
    inputs: list[dict[str, Any]],
    queries: dict[str, Query],
    prefix: str,
) -> list[dict[str, Any]]:
    """Build all queries on each worker in the same order, at different times."""
    outputs: list[dict[str, Any]] = [{} for _ in inputs]
    for worker in adversary.order():
        for name, query in queries.items():
            collection = query.build(cluster.databases[worker], inputs[worker])
            outputs[worker][name] = collection.output(prefix + name)
        for relation in inputs[worker].values():
            relation.base()  # also without readers, so that all workers number dataflows alike
        adversary.act()
    return outputs


def summed(updates: list[Update[Any]]) -> list[Update[Any]]:
    """Sum equal changes of several workers."""
    total: dict[tuple[Any, Any], int] = {}
    for row, time, diff in updates:
        total[row, time] = total.get((row, time), 0) + diff
    return [(row, time, diff) for (row, time), diff in total.items() if diff]


def check(play: Play, schemas: Any, queries: dict[str, Query], peers: int, noise: list[int]) -> None:
    """Check all queries, early and late."""
    done = perform(play, schemas, queries, peers, noise)
    for name, query in queries.items():
        done.early[name], done.late[name] = summed(done.early[name]), summed(done.late[name])
        done.snapshots[name] = []
        try:
            agree(done, name, query, [play.streams[relation] for relation in query.inputs])
        except AssertionError as error:
            raise AssertionError(f"{name}: {error}") from None


def some(queries: dict[str, Query], *names: str) -> dict[str, Query]:
    return {name: queries[name] for name in names}


CASES = {
    "linear": (test_row_operators, test_row_operators.LINEAR, {}),
    "joins": (test_joins, test_joins.JOINS, {"max_size": 6}),
    "counts": (test_reductions, test_reductions.REDUCTIONS, {"max_size": 6}),
    "firsts": (test_reductions, test_reductions.ORDERED, {"max_size": 6}),
    "values": (
        test_reduction_values,
        some(
            test_reduction_values.VALUES, "top by text", "count by nullable", "join by nullable", "distinct", "totals"
        ),
        {"max_size": 6},
    ),
    "programs": (
        test_recursion,
        some(test_recursion.PROGRAMS, "reach", "distances", "even", "cores"),
        {"negative": False, "largest": 1, "max_size": 5},
    ),
    "nested": (
        test_nested_loops,
        some(test_nested_loops.NESTED, "inner_begins_empty", "three_deep"),
        {"negative": False, "largest": 1, "max_size": 4},
    ),
    "scc": (
        test_recursion,
        {"scc": Query(test_recursion.scc, test_recursion.scc_of, ("edges",))},
        {"negative": False, "largest": 1, "max_size": 5},
    ),
}


@pytest.mark.parametrize("case", CASES)
@examples(0.06)
@given(data=st.data(), peers=st.sampled_from([2, 3]), noise=NOISE)
def test_workers_together_give_the_answer_of_the_query(case, data, peers, noise):
    module, queries, options = CASES[case]
    check(data.draw(plays(module.ROWS, **options)), module.SCHEMAS, queries, peers, noise)


@pytest.mark.parametrize("case", ["joins", "counts", "firsts", "programs"])
@examples(0.06)
@given(data=st.data(), noise=NOISE)
def test_workers_together_give_the_answer_where_times_have_two_coordinates(case, data, noise):
    module, queries, options = CASES[case]
    play = data.draw(plays(module.ROWS, **{**options, "coordinates": 2, "largest": 1}))
    check(play, module.SCHEMAS, queries, 2, noise)


@examples(0.15)
@given(st.data(), st.sampled_from([2, 3]), NOISE)
def test_an_input_ends_when_every_worker_has_closed_it(data, peers, noise):
    """A1.8, A1.12: rows of a worker that closes late count; then frontiers are empty and traces are released."""
    draw = data.draw
    cluster = SimulatedCluster(peers, history=None)
    adversary = Adversary(cluster, noise)
    inputs = cluster.build(lambda db: {name: db.input(name, x=int, y=int) for name in "ab"})
    outputs = [part["a"].join(part["b"], on="x").count("y").output() for part in inputs]
    streams: dict[str, list[Update[Any]]] = {"a": [], "b": []}
    open_ends = draw(st.permutations([(worker, name) for worker in range(peers) for name in "ab"]))
    for worker, name in open_ends:
        for row in draw(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1)), max_size=3)):
            inputs[worker][name].insert([row])
            streams[name].append((row, cluster.databases[worker].time.elements[0], 1))
        adversary.act()
        inputs[worker][name].close()
        assert outputs[0].frontier(), "some worker may still send rows"
        cluster.push_to(worker, cluster.databases[worker].epoch + draw(st.integers(0, 2)))
        adversary.act()
    cluster.settle()
    cluster.check()
    assert all(not output.frontier() for output in outputs)
    for db in cluster.databases:
        joins = [op for flow in db.worker.dataflows.values() for op in flow.operators if op.name == "join"]
        assert all(side.handle is None for join in joins for side in join.sides)  # type: ignore[attr-defined]
    changes = [(row, as_time(time), diff) for output in outputs for row, time, diff in output.changes()]

    def denotation(a, b):
        counts: dict[int, int] = {}
        for (x, y), n in a.items():
            counts[y] = counts.get(y, 0) + sum(n * m for (z, _), m in b.items() if z == x)
        return {(y, n): 1 for y, n in counts.items() if n}

    assert_agrees(summed(changes), denotation, streams["a"], streams["b"])
