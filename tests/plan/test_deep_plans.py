"""Plans may be deep: rendering works off a list, not Python's stack."""

import sys

import pytest

import kpg
from kpg import col

DEEP = 2_000
assert DEEP > sys.getrecursionlimit() * 3 // 2


def nothing_shared(rows, step):
    return rows.select(x=col("x") + 1)


def inspected(rows, step):
    """A chain that ends at each node, because an operator of its own follows."""
    return rows.inspect(lambda *update: None)


def read_twice(rows, step):
    """Every node has two readers, so none is fused with another."""
    return rows.select(x=col("x") + 1).concat(rows.filter(col("x") < 0))


def filtered(rows, step):
    return rows.filter(col("x") >= -step)


def reduced(rows, step):
    return rows.select(x=col("x") + 1) if step % 8 else rows.distinct()


@pytest.mark.parametrize("link", [nothing_shared, inspected, read_twice, filtered, reduced])
def test_a_chain_of_two_thousand_nodes_is_rendered(link):
    """One after the other, for all kinds of nodes."""
    with kpg.open() as db:
        source = db.input("source", x=int)
        rows = source
        for step in range(DEEP):
            rows = link(rows, step)
        answer = rows.output("answer")
        source.insert([(0,)])
        db.advance()
        grown = {nothing_shared: DEEP, read_twice: DEEP, reduced: DEEP * 7 // 8}.get(link, 0)
        assert answer.rows() == [(grown,)]


def test_a_chain_of_joins_is_rendered():
    """Each an arrangement and a shell: a plan of four hundred joins, inside a loop and outside."""
    with kpg.open() as db:
        edges = db.input("edges", src=int, dst=int)
        by_src = edges.arrange("src")

        def far(nodes, hops):
            for _ in range(hops):
                nodes = nodes.join(by_src, on={"node": "src"}).select(node="dst")
            return nodes

        start = db.input("start", node=int)
        answer = far(start, 400).output("answer")
        around = start.iterate(lambda nodes: far(nodes, 400).concat(start).distinct()).output("around")
        edges.insert([(n, (n + 1) % 400) for n in range(400)])
        start.insert([(7,)])
        db.advance()
        assert answer.rows() == [(7,)] and around.rows() == [(7,)]
