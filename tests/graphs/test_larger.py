"""Graphs of 2,000 nodes against networkx and scipy: at once, after many changes, after a third of the edges went."""

import networkx as nx
import numpy as np
import pytest
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

import kpg
from kpg import graphs
from tests.graphs import oracle

NODES, EDGES = 2_000, 6_000
ROOTS = {0, 1}
CASES = {
    "reach": (graphs.reach, oracle.reach),
    "bfs": (graphs.bfs, oracle.bfs),
    "sssp": (graphs.sssp, oracle.sssp),
    "wcc": (lambda edges, roots: graphs.wcc(edges), lambda edges, roots: oracle.wcc(edges)),
    "scc": (lambda edges, roots: graphs.scc(edges).nodes, lambda edges, roots: oracle.scc(edges)),
    "k-core": (lambda edges, roots: graphs.k_core(edges, 4), lambda edges, roots: oracle.k_core(edges, 4)),
    "triangles": (lambda edges, roots: graphs.triangles(edges).list, lambda edges, roots: oracle.triangles(edges)),
    "pagerank": (lambda edges, roots: graphs.pagerank(edges), lambda edges, roots: oracle.pagerank(edges, 20)),
}


def random_edges(random: np.random.Generator, count: int) -> list[oracle.Edge]:
    columns = random.integers(0, NODES, count), random.integers(0, NODES, count), random.integers(0, 10, count)
    return list(zip(*[column.tolist() for column in columns], strict=True))


@pytest.mark.parametrize("name", CASES)
def test_an_answer_on_2000_nodes_is_what_networkx_says(name):
    """A6.5, A6.6, A6.8, A17.11: the same answers on graphs in which every round has something to do."""
    build, meaning = CASES[name]
    random = np.random.default_rng(7)
    with kpg.open() as db:
        edges, roots = db.input("edges", src=int, dst=int, weight=int), db.input("roots", node=int)
        answer = build(edges.arrange("src"), roots).output("answer")
        have = random_edges(random, EDGES)
        edges.insert(have)
        roots.insert([(node,) for node in ROOTS])
        db.advance()
        assert answer.rows() == meaning(have, ROOTS)
        for added, kept in ((500, EDGES - 500), (0, EDGES * 2 // 3)):
            fresh = random_edges(random, added)
            order = random.permutation(len(have))
            edges.insert(fresh)
            edges.remove([have[at] for at in order[kept:]])
            have = [have[at] for at in order[:kept]] + fresh
            db.advance()
            assert answer.rows() == meaning(have, ROOTS)


@pytest.mark.parametrize("connection", ["weak", "strong"])
def test_components_on_2000_nodes_are_what_scipy_says(connection):
    random = np.random.default_rng(8)
    pairs = random.integers(0, NODES, (EDGES, 2))
    with kpg.open() as db:
        edges = db.input("edges", src=int, dst=int)
        components = graphs.wcc(edges) if connection == "weak" else graphs.scc(edges).nodes
        answer = components.output("answer")
        edges.insert(pairs)
        db.advance()
        labels = np.array(answer.rows())
    matrix = coo_array((np.ones(EDGES), (pairs[:, 0], pairs[:, 1])), (NODES, NODES))
    _, theirs = connected_components(matrix, directed=True, connection=connection)
    names = np.full(NODES, NODES)
    np.minimum.at(names, theirs, np.arange(NODES))
    assert labels[:, 0].tolist() == np.unique(pairs).tolist()
    assert labels[:, 1].tolist() == names[theirs[labels[:, 0]]].tolist()


def test_ranks_are_those_of_networkx_where_no_rank_is_lost():
    random = np.random.default_rng(9)
    circle = [(node, (node + 1) % NODES, 0) for node in range(NODES)]  # so that every node has an edge from it
    have = circle + random_edges(random, EDGES)
    with kpg.open() as db:
        edges = db.input("edges", src=int, dst=int)
        ranks = graphs.pagerank(edges, rounds=40).output("ranks")
        edges.insert([(src, dst) for src, dst, _ in have])
        db.advance()
        rank_of = dict(ranks.rows())
    graph = nx.MultiDiGraph([(src, dst) for src, dst, _ in have])
    theirs = nx.pagerank(graph, alpha=0.85, tol=1e-12, max_iter=500)
    assert max(abs(rank_of[node] / 1_000_000 / NODES - rank) for node, rank in theirs.items()) < 1e-3 / NODES
