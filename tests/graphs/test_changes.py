"""Every algorithm against networkx while edges and roots come and go.

Rows A6.4 (loops turned round: what is fed back is not what leaves) and A6.6 (fixed points grow and shrink).
"""

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kpg
from kpg import Collection, Input, graphs
from kpg.graphs import spread
from kpg.plan import render
from tests.graphs import oracle
from tests.graphs.oracle import Edge, Rows

Build = Callable[[Input, Input], Collection]
Meaning = Callable[[list[Edge], set[int]], Rows]


def follow(build: Build, meaning: Meaning, epochs: list, roots: list[set[int]], index: str | None = None) -> None:
    """Apply the epochs, then remove all edges, then put some back; the answer has to be right after each."""
    with kpg.open() as db:
        edges, chosen = db.input("edges", src=int, dst=int, weight=int), db.input("roots", node=int)
        given_edges = edges.arrange(index) if index else edges
        answer = build(given_edges, chosen).output("answer")
        have: list[Edge] = []
        present: set[int] = set()
        everything = [[0] * (10 * len(epochs)), [(0, 1, 1), (1, 0, 1), (2, 2, 0)]]
        for epoch, changes in enumerate([*epochs, *everything]):
            wanted = roots[epoch % len(roots)]
            chosen.insert([(node,) for node in wanted - present])
            chosen.remove([(node,) for node in present - wanted])
            present = wanted
            added, removed = oracle.change(have, changes)
            edges.insert(added)
            edges.remove(removed)
            time = db.advance()
            assert answer.rows(as_of=time) == meaning(have, present)


some_roots = st.lists(st.sets(oracle.nodes, max_size=3), min_size=1, max_size=4)
indexes = st.sampled_from([None, "src", "dst"])
few = settings(max_examples=20)
evaluators = st.sampled_from(["operator", "loop"])


@few
@given(oracle.epochs, some_roots, indexes)
def test_reach_follows_edges_and_roots(epochs, roots, index):
    """A6.8: the roots are data, put against an index that is kept."""
    follow(graphs.reach, oracle.reach, epochs, roots, index)


@few
@given(oracle.epochs, some_roots, indexes)
def test_bfs_follows_edges_and_roots(epochs, roots, index):
    follow(graphs.bfs, oracle.bfs, epochs, roots, index)


@few
@given(oracle.epochs, some_roots, indexes)
def test_sssp_follows_edges_and_roots(epochs, roots, index):
    follow(graphs.sssp, oracle.sssp, epochs, roots, index)


@few
@given(oracle.epochs, indexes)
def test_wcc_follows_edges(epochs, index):
    follow(lambda edges, _: graphs.wcc(edges), lambda edges, _: oracle.wcc(edges), epochs, [set()], index)


def evaluate_components(patch: pytest.MonkeyPatch, evaluator: str) -> None:
    """Let components be one operator, or the two loops that run inside other loops."""
    if evaluator == "loop":
        patch.setattr(render, "why_components_loop", lambda renderer, leave: "the test wants a loop")


@few
@given(oracle.epochs, indexes, evaluators)
def test_scc_follows_edges(epochs, index, evaluator):
    """A6.5, A17.11: one operator; or a loop in a loop, times of three coordinates, inserts and deletes."""
    with pytest.MonkeyPatch.context() as patch:
        evaluate_components(patch, evaluator)
        follow(lambda edges, _: graphs.scc(edges).nodes, lambda edges, _: oracle.scc(edges), epochs, [set()], index)


@settings(max_examples=10)
@given(oracle.epochs, evaluators)
def test_edges_within_components_follow_edges(epochs, evaluator):
    """A6.5, A17.11: the other result, with the copies of the edges."""
    with pytest.MonkeyPatch.context() as patch:
        evaluate_components(patch, evaluator)
        follow(lambda edges, _: graphs.scc(edges).edges, lambda edges, _: oracle.scc_edges(edges), epochs, [set()])


def test_an_explanation_says_how_components_are_evaluated():
    with kpg.open() as db:
        edges = db.input("edges", src=int, dst=int)
        answer = graphs.scc(edges).nodes.output("answer")
        assert "scc is one operator: maintains the components of a graph" in str(answer.explain())
        with db.loop("outer") as loop:
            kept = loop.variable(edges)
            kept.set(graphs.scc(kept).edges)
            nested = loop.leave(kept).output("nested")
        assert "scc is a loop: it is inside another loop" in str(nested.explain())
        edges.insert([(1, 2), (2, 1), (2, 3)])
        db.advance()
        assert sorted(nested.rows()) == [(1, 2), (2, 1)]


@few
@given(oracle.epochs, st.integers(1, 4))
def test_k_core_follows_edges(epochs, k):
    follow(lambda edges, _: graphs.k_core(edges, k), lambda edges, _: oracle.k_core(edges, k), epochs, [set()])


@few
@given(oracle.epochs)
def test_triangles_follow_edges(epochs):
    follow(lambda edges, _: graphs.triangles(edges).list, lambda edges, _: oracle.triangles(edges), epochs, [set()])


@few
@given(oracle.epochs)
def test_the_count_of_triangles_follows_edges(epochs):
    def counted(edges: list[Edge], _: set[int]) -> Rows:
        return [(len(triangles),)] if (triangles := oracle.triangles(edges)) else []

    follow(lambda edges, _: graphs.triangles(edges).count, counted, epochs, [set()])


@few
@given(oracle.epochs, st.integers(0, 4), st.sampled_from([1, 1_000, 1_000_000]))
def test_pagerank_follows_edges_to_the_last_digit(epochs, rounds, scale):
    follow(
        lambda edges, _: graphs.pagerank(edges, rounds, scale),
        lambda edges, _: oracle.pagerank(edges, rounds, scale),
        epochs,
        [set()],
    )


@pytest.mark.parametrize("shift", [-3, 2**40])
def test_components_are_named_by_their_least_node_however_nodes_are_numbered(shift):
    """Labels enter by magnitude: negative ones, huge ones, and some while smaller ones are still on their way."""
    length = spread.ROUNDS_PER_BIT + 40
    with kpg.open() as db:
        edges = db.input("edges", src=int, dst=int)
        answer = graphs.wcc(edges).output("answer")
        path = [(at + 1 + shift, at + shift) for at in range(length)]
        edges.insert(path)
        db.advance()
        assert answer.rows() == [(at + shift, shift) for at in range(length + 1)]
        edges.remove([path[200]])
        db.advance()
        assert answer.rows() == [(at + shift, shift if at <= 200 else 201 + shift) for at in range(length + 1)]


def test_a_cycle_that_opens_is_many_components():
    """A6.5, A6.6: one deleted edge changes the component of every node, and putting it back changes all again."""
    length = 40
    with kpg.open() as db:
        edges = db.input("edges", src=int, dst=int)
        answer = graphs.scc(edges).nodes.output("answer")
        edges.insert([(at, (at + 1) % length) for at in range(length)])
        db.advance()
        assert answer.rows() == [(at, 0) for at in range(length)]
        edges.remove([(7, 8)])
        db.advance()
        assert answer.rows() == [(at, at) for at in range(length)]
        edges.insert([(7, 8)])
        db.advance()
        assert answer.rows() == [(at, 0) for at in range(length)]
