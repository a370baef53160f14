"""Query arguments are rows of an input: added and removed at will, a thousand of them one dataflow (A6.9).

The four interactive queries of the papers on a changing graph: look-up, one hop, two hops, and paths of at most four
steps between two nodes; each as one dataflow over one index of the edges, for all questions and all who ask them.
"""

from hypothesis import given
from hypothesis import strategies as st

import kpg
from kpg import col
from kpg.testing.strategies import rows
from tests.api.plays import examples


def install(db):
    """The relations, and the four answers."""
    edges = db.input("edges", src=int, dst=int)
    state = db.input("state", node=int, value=int)
    asks = {
        "look up": db.input("look up", node=int),
        "one hop": db.input("one hop", node=int),
        "two hops": db.input("two hops", node=int),
        "paths": db.input("paths", src=int, dst=int),
    }
    forward, values = edges.arrange("src"), state.arrange("node")
    one = asks["one hop"].distinct().join(forward, on={"node": "src"})
    two = asks["two hops"].distinct().join(forward, on={"node": "src"}).select("node", mid="dst")
    answers = {
        "look up": asks["look up"].distinct().join(values, on="node"),
        "one hop": one.select("node", "dst").distinct().join(values.rename(node="dst"), on="dst"),
        "two hops": two.join(forward, on={"mid": "src"}).select("node", "dst").distinct(),
        "paths": paths(asks["paths"].distinct(), forward),
    }
    return edges, state, asks, {name: answer.output(f"answer {name}") for name, answer in answers.items()}


def paths(pairs, forward):
    """The least number of steps, at most four, between the nodes of each pair."""
    at = pairs.select("src", "dst", at="src", steps=0)
    visits = at
    for steps in range(1, 5):
        at = at.join(forward.rename(src="here", dst="there"), on={"at": "here"})
        at = at.select("src", "dst", at="there", steps=steps).distinct()
        visits = visits.concat(at)
    return visits.filter(col("at") == col("dst")).group_by("src", "dst").min("steps")


def expected(edges, state, asked):
    """The same by plain search."""
    after = {}
    for src, dst in edges:
        after.setdefault(src, set()).add(dst)
    one = {(node, dst) for (node,) in asked["one hop"] for dst in after.get(node, ())}
    return {
        "look up": sorted({(node, value) for (node,) in asked["look up"] for at, value in state if at == node}),
        "one hop": sorted((node, dst, value) for node, dst in one for at, value in state if at == dst),
        "two hops": sorted(
            {(node, dst) for (node,) in asked["two hops"] for mid in after.get(node, ()) for dst in after.get(mid, ())}
        ),
        "paths": sorted((*pair, far) for pair in asked["paths"] if (far := distance(after, *pair)) is not None),
    }


def distance(after, src, dst):
    reached = {src}
    for steps in range(5):
        if dst in reached:
            return steps
        reached = {there for here in reached for there in after.get(here, ())}
    return None


node = st.tuples(st.integers(0, 3))
KINDS = {"edges": rows(2, 3), "look up": node, "one hop": node, "two hops": node, "paths": rows(2, 3)}
TOGGLES = st.one_of([st.tuples(st.just(kind), row) for kind, row in KINDS.items()])


@examples(0.4)
@given(st.lists(TOGGLES, max_size=25))
def test_four_graph_queries_whose_arguments_come_and_go(toggles):
    """A6.9: what is there goes, what is not comes; edges and questions alike, all in one set of dataflows."""
    with kpg.open() as db:
        edges, state, asks, answers = install(db)
        dataflows = list(db.worker.dataflows)
        state.insert([(n, 10 * n) for n in range(4)])
        present = {name: set() for name in KINDS}
        for kind, row in toggles:
            relation = edges if kind == "edges" else asks[kind]
            if row in present[kind]:
                relation.remove([row])
            else:
                relation.insert([row])
            present[kind] ^= {row}
            db.advance()
            want = expected(present["edges"], [(n, 10 * n) for n in range(4)], present)
            assert {name: sorted(answer.rows()) for name, answer in answers.items()} == want
        assert list(db.worker.dataflows) == dataflows, "a question is a row, not a dataflow"


def test_a_thousand_questions_cost_what_they_ask():
    """A6.9: steps of the worker do not grow with the number of questions, and each is answered."""
    with kpg.open() as db:
        edges, state, asks, answers = install(db)
        edges.insert([(n, n + 1) for n in range(1000)])
        db.advance()

        def steps(questions):
            before = db.worker.steps
            asks["two hops"].insert(questions)
            db.advance()
            return db.worker.steps - before

        assert steps([(0,)]) == steps([(n,) for n in range(1, 999)])
        assert sorted(answers["two hops"].rows()) == [(n, n + 2) for n in range(999)]
        asks["two hops"].remove([(n,) for n in range(999)])
        db.advance()
        assert answers["two hops"].rows() == []
