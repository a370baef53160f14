"""The recursions of Q1, Q2 and Q6: transitive closure and same generation, on a random graph, a tree and a grid."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks import data
from benchmarks.lines import Run

DECLARED = """
.decl e(x: number, y: number)
.input e
.decl answer(x: number, y: number)
.output answer
"""
TC = "answer(x, y) :- e(x, y). answer(x, z) :- answer(x, y), e(y, z)."
SG = "answer(x, y) :- e(p, x), e(p, y), x != y. answer(x, y) :- e(a, x), answer(a, b), e(b, y)."
SQL_TC = """
    WITH RECURSIVE t(x, y) AS (SELECT src, dst FROM edges UNION SELECT t.x, dst FROM t JOIN edges ON t.y = src)
    SELECT count(*) AS n FROM t"""
SQL_SG = """
    WITH RECURSIVE s(x, y) AS (
        SELECT a.dst, b.dst FROM edges a JOIN edges b ON a.src = b.src WHERE a.dst != b.dst
        UNION SELECT a.dst, b.dst FROM s JOIN edges a ON a.src = s.x JOIN edges b ON b.src = s.y
    ) SELECT count(*) AS n FROM s"""


@dataclass(frozen=True)
class Question:
    """A program on some edges, to kpg and to DuckDB."""

    name: str
    rules: str
    sql: str
    edges: data.Ints


def questions(run: Run) -> list[Question]:
    """tc on G(2,000, p = 0.005), sg on the complete binary tree of depth 11 and on the grid of 151 x 151 nodes."""
    nodes, depth, side = run.size(2_000), tree_depth(run), grid_side(run)
    return [
        Question("tc G(2,000)", TC, SQL_TC, random_graph(nodes, 10 / nodes)),
        Question("sg tree", SG, SQL_SG, tree(depth)),
        Question("sg grid", SG, SQL_SG, grid(side)),
    ]


def tree_depth(run: Run) -> int:
    """The depth of the tree."""
    return max(2, int(11 + np.log2(run.scale)))


def grid_side(run: Run) -> int:
    """The nodes on a side of the grid."""
    return max(3, int(151 * run.scale**0.5))


def random_graph(nodes: int, probability: float) -> data.Ints:
    """Each of all pairs with some probability."""
    chosen = np.random.default_rng(1).random((nodes, nodes)) < probability
    return np.argwhere(chosen).astype(np.int64)


def tree(depth: int) -> data.Ints:
    """The complete binary tree, from parents to children."""
    children = np.arange(1, 2 ** (depth + 1) - 1)
    return np.stack([(children - 1) // 2, children], axis=1).astype(np.int64)


def grid(side: int) -> data.Ints:
    """A square of nodes with edges right and down."""
    nodes = np.arange(side * side).reshape(side, side)
    right = np.stack([nodes[:, :-1].ravel(), nodes[:, 1:].ravel()], axis=1)
    down = np.stack([nodes[:-1].ravel(), nodes[1:].ravel()], axis=1)
    return np.concatenate([right, down]).astype(np.int64)
