"""Recursive programs equal their fixed point at every time, under insertions and deletions (A2.4, A6.1, A6.2, A6.4).

Inside, times are (epoch, round) and (epoch, round, round). A deletion must undo exactly its consequences, in every
round. Each program is compared with its plain iteration on multisets.
"""

from collections.abc import Callable
from typing import Any

import networkx
from hypothesis import given
from hypothesis import strategies as st

import kpg
from kpg.testing import denotations
from kpg.testing.strategies import rows
from tests.api.plays import Multiset, Query, check, examples, plays

SCHEMAS = {"edges": {"src": int, "dst": int}, "roots": {"node": int}}
ROWS = {"edges": rows(2, 3), "roots": rows(1, 3)}
DOWNHILL = {"edges": rows(2, 3).filter(lambda row: row[0] > row[1]), "roots": rows(1, 3)}
col = kpg.col


def fixed_point(start: Any, step: Callable[..., Any]) -> Any:
    """Iterate several multisets, each defined by all, from their start until nothing changes."""
    for _ in range(100):
        following = step(*start)
        if following == start:
            return start
        start = following
    raise AssertionError("no fixed point")


def follow(nodes: Multiset, edges: Multiset) -> Multiset:
    return denotations.select(denotations.join(nodes, edges, (0,), (0,)), (1,))


# Reachability


def reach(db, r):
    return r["roots"].iterate(
        lambda v: v.join(r["edges"], on={"node": "src"}).select(node="dst").concat(r["roots"]).distinct()
    )


def reach_of(edges: Multiset, roots: Multiset) -> Multiset:
    return denotations.iterate(roots, lambda v: denotations.distinct(denotations.concat(follow(v, edges), roots)))


def closure(db, r):
    def step(paths):
        longer = paths.join(r["edges"], on={"dst": "src"}).select("src", dst="dst_right")
        return longer.concat(r["edges"]).distinct()

    return r["edges"].iterate(step)


def closure_of(edges: Multiset) -> Multiset:
    return denotations.iterate(
        edges,
        lambda v: denotations.distinct(
            denotations.concat(denotations.select(denotations.join(v, edges, (1,), (0,)), (0, 2)), edges)
        ),
    )


# Distances: a minimum that falls and, after deletions, rises again


def distances(db, r):
    start = r["roots"].select("node", far=0)

    def step(v):
        further = v.join(r["edges"], on={"node": "src"}).select(node="dst", far=col("far") + 1)
        return further.concat(start).group_by("node").min("far")

    return start.iterate(step)


def distances_of(edges: Multiset, roots: Multiset) -> Multiset:
    start = denotations.map(roots, lambda row: (row[0], 0))

    def step(v):
        further = denotations.map(denotations.join(v, edges, (0,), (0,)), lambda row: (row[2], row[1] + 1))
        return denotations.min(denotations.concat(further, start), (0,), 1)

    return denotations.iterate(start, step)


# Labels: the least node that reaches each node, through a loop that is not started from its fixed point


def labels(db, r):
    start = r["edges"].select(node="src").concat(r["edges"].select(node="dst")).distinct().select("node", label="node")

    def step(v):
        passed = v.join(r["edges"], on={"node": "src"}).select(node="dst", label="label")
        return passed.concat(start).group_by("node").min("label")

    return start.iterate(step)


def labels_of(edges: Multiset) -> Multiset:
    ends = denotations.concat(denotations.select(edges, (0,)), denotations.select(edges, (1,)))
    start = denotations.map(denotations.distinct(ends), lambda row: (row[0], row[0]))

    def step(v):
        passed = denotations.map(denotations.join(v, edges, (0,), (0,)), lambda row: (row[2], row[1]))
        return denotations.min(denotations.concat(passed, start), (0,), 1)

    return denotations.iterate(start, step)


# Same generation: two joins in a loop


def same_generation(db, r):
    parent = r["edges"]
    siblings = parent.join(parent, on="src").select(x="dst", y="dst_right").distinct()

    def step(v):
        down = v.join(parent, on={"x": "src"}).select("y", a="dst").join(parent, on={"y": "src"})
        return down.select(x="a", y="dst").concat(siblings).distinct()

    return siblings.iterate(step)


def same_generation_of(edges: Multiset) -> Multiset:
    siblings = denotations.distinct(denotations.select(denotations.join(edges, edges, (0,), (0,)), (1, 2)))

    def step(v):
        once = denotations.select(denotations.join(v, edges, (0,), (0,)), (1, 2))  # y, a
        down = denotations.select(denotations.join(once, edges, (0,), (0,)), (1, 2))
        return denotations.distinct(denotations.concat(down, siblings))

    return denotations.iterate(siblings, step)


# Even and odd: two variables defined by each other, one of which begins empty


def parities(which: str):
    def build(db, r):
        with db.loop("parity") as loop:
            even = loop.variable(r["roots"])
            odd = loop.variable(node=int)
            even.set(odd.join(r["edges"], on={"node": "src"}).select(node="dst").concat(r["roots"]).distinct())
            odd.set(even.join(r["edges"], on={"node": "src"}).select(node="dst").distinct())
            return loop.leave({"even": even, "odd": odd}[which])

    return build


def parities_of(which: int):
    def denotation(edges: Multiset, roots: Multiset) -> Multiset:
        def step(even, odd):
            return (
                denotations.distinct(denotations.concat(follow(odd, edges), roots)),
                denotations.distinct(follow(even, edges)),
            )

        return fixed_point((roots, {}), step)[which]

    return denotation


# Not monotone: a move to a lost position wins; nodes with too few neighbours are removed


def wins(db, r):
    start = r["edges"].select(node="src").filter(col("node") < 0)

    def step(v):
        return r["edges"].antijoin(v, on={"dst": "node"}).select(node="src").distinct()

    return start.iterate(step)


def wins_of(edges: Multiset) -> Multiset:
    return denotations.iterate(
        {}, lambda v: denotations.distinct(denotations.select(denotations.antijoin(edges, v, (1,), (0,)), (0,)))
    )


def cores(db, r):
    def step(v):
        kept = v.count("src").filter(col("count") >= 2)
        return v.semijoin(kept, on="src").semijoin(kept, on={"dst": "src"})

    both_ways = r["edges"].concat(r["edges"].select(src="dst", dst="src")).distinct()
    return both_ways.filter(col("src") != col("dst")).iterate(step)


def cores_of(edges: Multiset) -> Multiset:
    both = denotations.distinct(denotations.concat(edges, denotations.select(edges, (1, 0))))

    def step(v):
        kept = {row[:1]: 1 for row in denotations.count(v, (0,)) if row[1] >= 2}
        return denotations.semijoin(denotations.semijoin(v, kept, (0,), (0,)), kept, (1,), (0,))

    return denotations.iterate(denotations.filter(both, lambda row: row[0] != row[1]), step)


# Only linear operators: nothing in the loop has an arrangement in which cancelling updates would meet


def countdown(db, r):
    return r["edges"].iterate(lambda v: v.select(src=kpg.max_of(col("src") - 1, 0), dst=col("dst")))


def nested_countdown(db, r):
    def outer(v):
        inner = v.iterate(lambda w: w.select(src=kpg.max_of(col("src") - 1, 0), dst=col("dst")), name="inner")
        return inner.select(src="src", dst=kpg.max_of(col("dst") - 1, 0))

    return r["edges"].iterate(outer, name="outer")


LINEAR = {
    "countdown": Query(countdown, lambda e: denotations.map(e, lambda row: (0, row[1])), ("edges",)),
    "nested countdown": Query(nested_countdown, lambda e: denotations.map(e, lambda row: (0, 0)), ("edges",)),
}

PROGRAMS = {
    "reach": Query(reach, reach_of, ("edges", "roots")),
    "closure": Query(closure, closure_of, ("edges",)),
    "distances": Query(distances, distances_of, ("edges", "roots")),
    "labels": Query(labels, labels_of, ("edges",)),
    "same generation": Query(same_generation, same_generation_of, ("edges",)),
    "even": Query(parities("even"), parities_of(0), ("edges", "roots")),
    "odd": Query(parities("odd"), parities_of(1), ("edges", "roots")),
    "cores": Query(cores, cores_of, ("edges",)),
}


@examples(0.4)
@given(plays(ROWS, negative=False, largest=2, max_size=7))
def test_programs_under_insertions_and_deletions(play):
    """A6.1, A6.2, A6.4, A6.6."""
    check(play, SCHEMAS, PROGRAMS)


@examples(0.2)
@given(plays(ROWS, negative=False, largest=1, max_size=6, coordinates=2))
def test_programs_where_epochs_have_two_coordinates(play):
    check(play, SCHEMAS, PROGRAMS)


@examples(0.4)
@given(plays(DOWNHILL, negative=False, largest=2, max_size=8))
def test_negation_inside_a_loop_that_ends(play):
    """A6.7: winning moves of an acyclic game."""
    check(play, SCHEMAS, {"wins": Query(wins, wins_of, ("edges",))})


@examples(0.4)
@given(plays(ROWS, max_size=6))
def test_loops_of_linear_operators_alone(play):
    check(play, SCHEMAS, LINEAR)


# Strongly connected components: loops in a loop


def scc(db, r):
    """Keep the edges between equal labels, forwards and backwards, until no edge is removed: the components."""

    def trimmed(edges):
        """Return the reversed edges between nodes that the same least node reaches."""
        ends = edges.select(node="src", label="src").concat(edges.select(node="dst", label="dst")).distinct()

        def step(v):
            passed = v.join(edges, on={"node": "src"}).select(node="dst", label="label")
            return passed.concat(ends).group_by("node").min("label")

        labels = ends.iterate(step, name="labels")
        marked = edges.join(labels, on={"src": "node"}).join(labels, on={"dst": "node"})
        return marked.filter(col("label") == col("label_right")).select(src="dst", dst="src")

    edges = r["edges"].distinct()
    return edges.iterate(lambda v: trimmed(trimmed(v)), name="scc")


def scc_of(edges: Multiset) -> Multiset:
    component = {
        node: least
        for nodes in networkx.strongly_connected_components(networkx.DiGraph(list(edges)))
        for least in [min(nodes)]
        for node in nodes
    }
    return {(a, b): 1 for a, b in edges if component[a] == component[b]}


@examples(0.4)
@given(plays(ROWS, negative=False, largest=2, max_size=8))
def test_strongly_connected_components(play):
    """A6.5, A17.11: times of three coordinates, compared with networkx."""
    check(play, SCHEMAS, {"scc": Query(scc, scc_of, ("edges",))})


@examples(0.1)
@given(st.data())
def test_strongly_connected_components_of_larger_graphs_under_churn(data):
    """A6.5, A6.6: one edge is inserted and one removed, again and again."""
    draw = data.draw
    pairs = st.tuples(st.integers(0, 9), st.integers(0, 9))
    edges: set[tuple[int, int]] = draw(st.sets(pairs, min_size=5, max_size=25))
    with kpg.open() as db:
        relation = db.input("edges", src=int, dst=int)
        answer = scc(db, {"edges": relation}).output()
        relation.insert(list(edges))
        db.advance()
        for _ in range(8):
            change: Any = draw(st.sets(pairs, max_size=4))
            relation.insert([row for row in change if row not in edges])
            relation.remove([row for row in change if row in edges])
            edges ^= change
            db.advance()
            assert set(answer.rows()) == set(scc_of(dict.fromkeys(edges, 1)))
