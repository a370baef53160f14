"""Rows that are on the worker of their key are not sent, and several workers give the answer of one."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kpg
from kpg import col
from kpg.dataflow.channel import ExchangePact
from kpg.operators import linear
from kpg.plan.placement import OneWorker, after_projection, after_stages, common_placement, placement_of_join
from kpg.query.datalog import parse
from kpg.query.ir.compile import compile
from kpg.query.lower.lower_program import LoweredProgram
from kpg.testing.simulated_workers import SimulatedCluster
from kpg.testing.strategies import rows

Made = Callable[[kpg.Database], kpg.Collection]
Step = Callable[[kpg.Collection, kpg.Input], kpg.Collection]

# Each takes columns a, b and gives columns a, b.
STEPS: dict[str, Step] = {
    "filter": lambda now, edges: now.filter(col("a") != 2),
    "turn": lambda now, edges: now.select(a=col("b"), b=col("a")),
    "repeat": lambda now, edges: now.select(a=col("a"), b=col("a")),
    "shift": lambda now, edges: now.select(a=col("a") + 1, b=col("b")),
    "distinct": lambda now, edges: now.distinct(),
    "count": lambda now, edges: now.count("a").rename(count="b"),
    "count of b": lambda now, edges: now.count("b").select(a=col("count"), b=col("b")),
    "least": lambda now, edges: now.group_by("a").min("b"),
    "join": lambda now, edges: now.join(edges, on={"a": "b"}).select(a=col("a"), b=col("a_right")),
    "join by none": lambda now, edges: now.join(edges.count("a").count().rename(count="c"), on=()).select(
        a=col("a"), b=col("c")
    ),
    "join by none, left": lambda now, edges: now.count().join(edges, on=()).select(a=col("count"), b=col("b")),
    "all pairs": lambda now, edges: now.join(edges, on=()).select(a=col("b"), b=col("b_right")),
    "join on both": lambda now, edges: now.join(edges, on={"a": "b", "b": "a"}).select("a", "b"),
    "others": lambda now, edges: now.negate().concat(edges),
    "arrange": lambda now, edges: now.arrange("b") if isinstance(now, kpg.Input) else now.distinct(),
    "closure": lambda now, edges: now.iterate(
        lambda far: far.join(edges, on={"b": "a"}).select(a=col("a"), b=col("b_right")).concat(now).distinct()
    ),
}


def program(steps: list[str]) -> Callable[[kpg.Database], kpg.Output]:
    """Some steps one after the other, from a relation."""

    def build(db: kpg.Database) -> kpg.Output:
        edges = db.input("edges", a=int, b=int)
        now: kpg.Collection = edges
        for step in steps:
            now = STEPS[step](now, edges)
        return now.output("answer")

    return build


@given(
    steps=st.lists(st.sampled_from(sorted(STEPS)), min_size=1, max_size=4),
    epochs=st.lists(st.lists(st.tuples(st.integers(0, 2), rows(2, 4)), max_size=8), min_size=1, max_size=3),
    peers=st.sampled_from([2, 3]),
)
def test_several_workers_say_what_one_says(steps, epochs, peers):
    """A1.5: equal keys meet on one worker, however much is known about the placement of rows."""
    alone, together = SimulatedCluster(1, program(steps)), SimulatedCluster(peers, program(steps))
    for changes in epochs:
        for worker, row in changes:
            alone.insert(0, "edges", row)
            together.insert(worker % peers, "edges", row)
        alone.advance()
        together.advance()
        assert together.answer() == alone.answer()


RECURSION = """.decl e(a: number, b: number)
    .input e
    .decl p(a: number, b: number)
    {}
    .output p"""
PROGRAMS = {
    "divided": "p(x, y) :- e(x, y). p(x, z) :- p(x, y), e(y, z).",
    "by one worker": "p(x, y) :- e(a, x), e(a, y). p(x, y) :- e(a, x), p(a, b), e(b, y).",
}
READERS: dict[str, Step] = STEPS | {
    "join on both, in order": lambda now, edges: now.join(edges, on=("a", "b")).select("a", "b"),
    "others on both": lambda now, edges: edges.antijoin(now, on=("a", "b")),
    "twice": lambda now, edges: now.concat(now),
    "both": lambda now, edges: now.concat(edges),
    "copies": lambda now, edges: now.count("a", "b").select(a=col("b"), b=col("count")),
}


@pytest.mark.parametrize("recursion", PROGRAMS)
@pytest.mark.parametrize("from_index", [False, True])
@given(
    steps=st.lists(st.sampled_from(sorted(READERS)), max_size=3),
    epochs=st.lists(st.lists(st.tuples(st.integers(0, 2), rows(2, 4)), max_size=8), min_size=1, max_size=3),
    peers=st.sampled_from([2, 3]),
    late=st.booleans(),
)
def test_queries_on_an_answer_whose_rows_stay_where_they_are_derived(recursion, from_index, steps, epochs, peers, late):
    """The answer is not placed by its key: a join by the key exchanges it, and counts, reads and changes are right."""

    def build(db):
        lowered = LoweredProgram(db, compile(parse(RECURSION.format(PROGRAMS[recursion]))))
        node, installer = lowered.collections["p"].node, db.installer
        answer = installer.answers("answers", {"p": node})["p"] if from_index else installer.output(node, "p", True)
        return lowered.inputs["e"], answer

    def read(db, edges, answer):
        now = db.installer.shared(answer, answer.schema)
        for step in steps:
            now = READERS[step](now, edges)
        return now.output("reader")

    clusters = [SimulatedCluster(1), SimulatedCluster(peers)]
    for cluster in clusters:
        made = cluster.build(build)
        parts = [(db, *of_db) for db, of_db in zip(cluster.databases, made, strict=True)]
        cluster.outputs = [] if late else [read(*part) for part in parts]
        for changes in epochs:
            for worker, row in changes:
                cluster.insert(worker % len(parts), "e", row)
            cluster.advance()
            cluster.outputs = cluster.outputs or [read(*part) for part in parts]
        for worker, row in epochs[0]:
            cluster.insert((worker + 1) % len(parts), "e", row, -1)
        cluster.advance()
    alone, together = clusters
    assert together.answer() == alone.answer()


def exchanges(build: Callable[[kpg.Database], kpg.Output]) -> int:
    """How many channels send rows elsewhere, beside those that bring rows to their relation."""
    worker = SimulatedCluster(2, build).workers[0]
    flows = [flow for flow in worker.dataflows.values() if flow.name == "answer"]
    return sum(isinstance(channel.pact, ExchangePact) for flow in flows for channel in flow.channels)


@pytest.mark.parametrize(
    ("steps", "sent"),
    [
        (["least"], 0),  # the relation is by a, and so are its groups and the answer
        (["count"], 1),  # only counts that do not fit, which are errors
        (["distinct"], 1),  # an index by a and b, which others may join with
        (["count", "filter"], 1),
        (["count", "turn"], 2),  # the answer is by what was b, which says nothing of where rows are
        (["least", "count"], 1),
        (["shift", "count"], 3),  # the sums, those that overflow, and counts that do not fit
        (["join", "count"], 1),  # pairs are with their key
    ],
)
def test_rows_that_are_where_they_belong_stay_there(steps, sent):
    def build(db: kpg.Database) -> kpg.Output:
        edges = db.input("edges", a=int, b=int)
        edges.arrange("a")
        edges.arrange("b")
        now: kpg.Collection = edges
        for step in steps:
            now = STEPS[step](now, edges)
        return now.output("answer")

    assert exchanges(build) == sent


def test_one_side_of_a_join_by_no_columns_goes_to_all_workers():
    """The one that has a row by its form; the rows of the other stay where they are, and are known to."""

    def build(db: kpg.Database) -> kpg.Output:
        edges = db.input("edges", a=int, b=int)
        return edges.count().join(edges.group_by("a").min("b"), on=()).select("a", "b", "count").output("answer")

    cluster = SimulatedCluster(2, build)
    for number in range(40):
        cluster.insert(number % 2, "edges", (number, number % 3))
    cluster.advance()
    assert cluster.answer() == {(number, number % 3, 40): 1 for number in range(40)}
    assert all(output.snapshot().num_rows > 5 for output in cluster.outputs)
    text = str(cluster.outputs[0].explain())
    assert "arrange everywhere (broadcast) ← " in text and "arrange in place ← " in text


def test_what_stages_do_to_where_rows_are():
    assert after_stages((1,), [linear.PickStage((2, 1)), linear.NegateStage()]) == (1,)
    assert after_stages((1, 0), [linear.PickStage((0, 2, 1))]) == (2, 0)
    assert after_stages((1, 0), [linear.PickStage((0, 2))]) is None
    assert after_stages((0,), [linear.ComplementStage((1,))]) is None
    assert after_stages(None, [linear.NegateStage()]) is None
    assert after_stages(OneWorker(1), [linear.PickStage((0,)), linear.ComplementStage((0,))]) == OneWorker(1)
    assert common_placement([OneWorker(1), OneWorker(0)]) is None and after_projection(OneWorker(0), []) == OneWorker(0)
    assert after_projection((), ()) == () and after_projection((0,), [None, 0]) == (1,)
    assert common_placement([(0,), (0,)]) == (0,) and common_placement([(0,), None]) is None
    assert placement_of_join([(0, "v"), (1, "k2")], [("k", "k2")], kpg.Schema.of({"v": int, "k": int})) == (1,)
    wide = kpg.Schema.of({"v": "decimal(38,0)", "k": "decimal(38,0)"})
    assert placement_of_join([(0, "v"), (1, "k2")], [("k", "k2")], wide) == (2, 3)
    assert placement_of_join([(0, "v")], [("k", "k2")], kpg.Schema.of({"v": int})) is None
