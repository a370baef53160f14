"""Least values and components on several workers, where they are loops: the answers of one worker, A6.4, A6.6, A7.2."""

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import kpg
from kpg.graphs.scc import scc
from kpg.graphs.wcc import wcc
from kpg.testing.simulated_workers import SimulatedCluster
from tests.plan.test_least_value_loops import LOOPS

edge = st.tuples(st.integers(0, 7), st.integers(0, 7), st.integers(0, 2))
states = st.lists(
    st.tuples(st.sets(st.tuples(st.integers(0, 7), st.integers(0, 2)), max_size=2), st.sets(edge, max_size=12)),
    min_size=2,
    max_size=5,
)


def components(edges, starts, plain):
    return scc(edges.select("src", "dst")).nodes


def labels(edges, starts, plain):
    return wcc(edges.select("src", "dst"))


def inputs_of(db):
    return db.input("edges", src=int, dst=int, weight=int), db.input("starts", node=int, value=int)


@pytest.mark.parametrize("build", [*LOOPS, labels, components])
@pytest.mark.parametrize("workers", [2, 3])
@settings(max_examples=8, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(history=states, schedule=st.lists(st.integers(0, 2), max_size=20))
def test_workers_have_the_answers_of_the_loop(build, workers, history, schedule):
    """Edges and starts are inserted and removed at any worker, and workers run in any order."""

    def on_worker(db):
        edges, starts = inputs_of(db)
        starts.base()
        return build(edges, starts, lambda rows: rows).output("operator")

    cluster = SimulatedCluster(workers, on_worker)
    notes = [note for flow in cluster.workers[0].dataflows.values() for note in flow.notes]
    assert any("is a loop: it runs on several workers" in note for note in notes)
    with kpg.open() as db:
        edges, starts = inputs_of(db)
        loop = build(edges, starts, lambda rows: rows.consolidate()).output("loop")
        held, turn = (set(), set()), 0
        for state in history:
            for source, name, before, after in zip((starts, edges), ("starts", "edges"), held, state, strict=True):
                source.remove(sorted(before - after))
                source.insert(sorted(after - before))
                for row, diff in [*((row, -1) for row in before - after), *((row, 1) for row in after - before)]:
                    turn += 1
                    cluster.insert(turn % workers, name, row, diff)
            held = state
            db.advance()
            cluster.advance(schedule)
            assert cluster.answer() == dict.fromkeys(map(tuple, loop.rows()), 1)
