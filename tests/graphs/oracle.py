"""What each algorithm means, said by networkx of a list of edges; and edges that change at random.

An edge is (src, dst, weight), and the list is a multiset. Each function returns the rows an answer should have, sorted.
"""

from collections import Counter
from collections.abc import Iterable

import networkx as nx
from hypothesis import strategies as st

Edge = tuple[int, int, int]
Rows = list[tuple]


def directed(edges: Iterable[Edge]) -> nx.DiGraph:
    """The graph, of parallel edges the one with least weight."""
    graph = nx.DiGraph()
    for src, dst, weight in sorted(edges, reverse=True):
        graph.add_edge(src, dst, weight=weight)
    return graph


def undirected(edges: Iterable[Edge]) -> nx.Graph:
    """The simple graph without direction and loops."""
    return nx.Graph([(src, dst) for src, dst, _ in edges if src != dst])


def rooted(edges: Iterable[Edge], roots: Iterable[int]) -> nx.DiGraph:
    """The graph with a node -1 before all roots."""
    graph = directed(edges)
    graph.add_edges_from([(-1, root) for root in roots], weight=0)
    graph.add_node(-1)
    return graph


def reach(edges: list[Edge], roots: Iterable[int]) -> Rows:
    return sorted((node,) for node in nx.descendants(rooted(edges, roots), -1))


def bfs(edges: list[Edge], roots: Iterable[int]) -> Rows:
    far = nx.single_source_shortest_path_length(rooted(edges, roots), -1)
    return sorted((node, distance - 1) for node, distance in far.items() if node != -1)


def sssp(edges: list[Edge], roots: Iterable[int]) -> Rows:
    far = nx.single_source_dijkstra_path_length(rooted(edges, roots), -1)
    return sorted((node, distance) for node, distance in far.items() if node != -1)


def named(components: Iterable[set[int]]) -> dict[int, int]:
    return {node: min(component) for component in components for node in component}


def wcc(edges: list[Edge]) -> Rows:
    return sorted(named(nx.weakly_connected_components(directed(edges))).items())


def scc(edges: list[Edge]) -> Rows:
    return sorted(named(nx.strongly_connected_components(directed(edges))).items())


def scc_edges(edges: list[Edge]) -> Rows:
    component = dict(scc(edges))
    return sorted((src, dst) for src, dst, _ in edges if component[src] == component[dst])


def k_core(edges: list[Edge], k: int) -> Rows:
    return sorted((node,) for node in nx.k_core(undirected(edges), k))


def triangles(edges: list[Edge]) -> Rows:
    graph = undirected(edges)
    return sorted(
        (a, b, c)
        for a, b in ((min(pair), max(pair)) for pair in graph.edges)
        for c in set(graph[a]) & set(graph[b])
        if b < c
    )


def pagerank(edges: list[Edge], rounds: int, scale: int = 1_000_000) -> Rows:
    """The definition, in whole numbers."""
    nodes = {node for src, dst, _ in edges for node in (src, dst)}
    degrees = Counter(src for src, _, _ in edges)
    ranks = dict.fromkeys(nodes, scale)
    for _ in range(rounds):
        received = dict.fromkeys(nodes, scale * 15 // 100)
        for src, dst, _ in edges:
            received[dst] += ranks[src] * 85 // (100 * degrees[src])
        ranks = received
    return sorted(ranks.items())


NODES = 7
nodes = st.integers(0, NODES - 1)
inserts = st.tuples(nodes, nodes, st.integers(0, 3))
removals = st.integers(0, 1_000)  # a position in the list of edges, modulo its length
epochs = st.lists(st.lists(inserts | removals, min_size=1, max_size=10), min_size=1, max_size=4)


def change(edges: list[Edge], changes: Iterable[Edge | int]) -> tuple[list[Edge], list[Edge]]:
    """Apply some changes to the list; what was inserted and what was removed, an edge perhaps in both."""
    added, removed = [], []
    for change in changes:
        if isinstance(change, tuple):
            edges.append(change)
            added.append(change)
        elif edges:
            removed.append(edges.pop(change % len(edges)))
    return added, removed
