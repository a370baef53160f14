"""The recursions of Q1, Q2 and Q6: transitive closure (tc) and same generation (sg), and their variants.

All of them run in the recursion operator: insert-only, except with negation, which keeps levels in any case; and with
removals.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from kpg.bench.data.graphs import Ints, bernoulli_graph, binary_tree, grid
from kpg.bench.reference_answers import closure, same_generation
from kpg.bench.run import Run
from kpg.query.datalog import parse
from kpg.query.installed_program import InstalledProgram
from kpg.query.ir.compile import compile
from kpg.query.ir.program import Program

DECLARED = """
.decl e(x: number, y: number)
.input e
.decl answer(x: number, y: number)
.output answer
"""
LABELLED = """
.decl e(x: number, y: number, l: number)
.input e
.decl answer(x: number, y: number, l: number)
.output answer
"""
SKIPPING = f"""{DECLARED}
.decl skip(x: number)
.input skip
"""
TC = "answer(x, y) :- e(x, y). answer(x, z) :- answer(x, y), e(y, z)."
SG = "answer(x, y) :- e(p, x), e(p, y), x != y. answer(x, y) :- e(a, x), answer(a, b), e(b, y)."
LABELLED_TC = "answer(x, y, l) :- e(x, y, l). answer(x, z, l) :- answer(x, y, l), e(y, z, l)."
LABELLED_SG = """answer(x, y, l) :- e(p, x, l), e(p, y, l), x != y.
    answer(x, y, l) :- e(a, x, l), answer(a, b, l), e(b, y, l)."""
TC_TWICE = "answer(x, y) :- e(x, y). answer(x, z) :- answer(x, y), answer(y, z)."
SKIPPING_TC = "answer(x, y) :- e(x, y). answer(x, z) :- answer(x, y), !skip(y), e(y, z)."
SKIPPING_SG = """answer(x, y) :- e(p, x), e(p, y), x != y.
    answer(x, y) :- e(a, x), answer(a, b), !skip(a), e(b, y)."""

SQL_TC = """
    WITH RECURSIVE t(x, y) AS (SELECT src, dst FROM edges UNION SELECT t.x, dst FROM t JOIN edges ON t.y = src)
    SELECT count(*) AS n FROM t"""
SQL_SG = """
    WITH RECURSIVE s(x, y) AS (
        SELECT a.dst, b.dst FROM edges a JOIN edges b ON a.src = b.src WHERE a.dst != b.dst
        UNION SELECT a.dst, b.dst FROM s JOIN edges a ON a.src = s.x JOIN edges b ON b.src = s.y
    ) SELECT count(*) AS n FROM s"""
SQL_LABELLED_TC = """
    WITH RECURSIVE t(x, y, l) AS (
        SELECT src, dst, label FROM edges
        UNION SELECT t.x, dst, l FROM t JOIN edges ON t.y = src AND t.l = label
    ) SELECT count(*) AS n FROM t"""
SQL_LABELLED_SG = """
    WITH RECURSIVE s(x, y, l) AS (
        SELECT a.dst, b.dst, a.label FROM edges a JOIN edges b ON a.src = b.src AND a.label = b.label
        WHERE a.dst != b.dst
        UNION SELECT a.dst, b.dst, s.l FROM s JOIN edges a ON a.src = s.x AND a.label = s.l
        JOIN edges b ON b.src = s.y AND b.label = s.l
    ) SELECT count(*) AS n FROM s"""
SQL_SKIPPING_TC = """
    WITH RECURSIVE t(x, y) AS (
        SELECT src, dst FROM edges
        UNION SELECT t.x, dst FROM t JOIN edges ON t.y = src WHERE t.y NOT IN (SELECT node FROM skip)
    ) SELECT count(*) AS n FROM t"""
SQL_SKIPPING_SG = """
    WITH RECURSIVE s(x, y) AS (
        SELECT a.dst, b.dst FROM edges a JOIN edges b ON a.src = b.src WHERE a.dst != b.dst
        UNION SELECT a.dst, b.dst FROM s JOIN edges a ON a.src = s.x JOIN edges b ON b.src = s.y
        WHERE s.x NOT IN (SELECT node FROM skip)
    ) SELECT count(*) AS n FROM s"""

LABELS = 2
SKIPPED_EVERY = 10  # every tenth node is skipped


@dataclass(frozen=True)
class RecursionCase:
    """A program on some edges, in kpg and in DuckDB, with the number of rows in its answer."""

    name: str
    text: str
    sql: str
    edges: Ints
    expected: int
    kind: str = "tc"  # or sg
    facts: dict[str, Ints] = field(default_factory=dict)  # of inputs other than the edges

    @property
    def program(self) -> Program:
        """The compiled program."""
        return compile(parse(self.text))

    def insert(self, installed: InstalledProgram) -> None:
        """Insert the edges and the other facts."""
        installed.inputs["e"].insert(np.ascontiguousarray(self.edges))
        for name, rows in self.facts.items():
            installed.inputs[name].insert(rows)


def cases(run: Run) -> list[RecursionCase]:
    """Return tc on G(2,000, p = 0.005), sg on the complete binary tree of depth 11 and on the grid of 151 x 151."""
    return [
        RecursionCase(f"{kind} {name}", DECLARED + rules, sql, edges, answer_rows(kind, edges), kind)
        for kind, rules, sql, name, edges in graphs(run)
    ]


def variants(run: Run) -> list[RecursionCase]:
    """Return the same programs with a label column more, with two recursive atoms, and with negation inside.

    tc is also measured on G(1,000, p = 0.01).
    """
    recursion_cases = []
    nodes = run.size(1_000)
    smaller = ("tc", TC, SQL_TC, "G(1,000)", bernoulli_graph(nodes, 10 / nodes))
    for kind, _, _, name, edges in (smaller, *graphs(run)):
        labelled, skipping = (LABELLED_TC, SKIPPING_TC) if kind == "tc" else (LABELLED_SG, SKIPPING_SG)
        labelled_sql = SQL_LABELLED_TC if kind == "tc" else SQL_LABELLED_SG
        skipping_sql = SQL_SKIPPING_TC if kind == "tc" else SQL_SKIPPING_SG
        labels = np.random.default_rng(4).integers(0, LABELS, len(edges))
        rows = sum(answer_rows(kind, edges[labels == label]) for label in range(LABELS))
        with_labels = np.concatenate([edges, labels.reshape(-1, 1)], axis=1)
        case = RecursionCase(f"{kind} {name}, label", LABELLED + labelled, labelled_sql, with_labels, rows, kind)
        recursion_cases.append(case)
        if kind == "tc":
            rows = answer_rows(kind, edges)
            recursion_cases.append(RecursionCase(f"tc {name}, two atoms", DECLARED + TC_TWICE, SQL_TC, edges, rows))
        skip = np.unique(edges)[::SKIPPED_EVERY]
        rows = answer_rows(kind, edges, skip)
        recursion_cases.append(
            RecursionCase(
                f"{kind} {name}, negation", SKIPPING + skipping, skipping_sql, edges, rows, kind, {"skip": skip}
            )
        )
    return recursion_cases


def graphs(run: Run) -> list[tuple[str, str, str, str, Ints]]:
    """Return (program kind, rules, SQL, name, edges) of the three graphs."""
    nodes = run.size(2_000)
    return [
        ("tc", TC, SQL_TC, "G(2,000)", bernoulli_graph(nodes, 10 / nodes)),
        ("sg", SG, SQL_SG, "tree", binary_tree(tree_depth(run))),
        ("sg", SG, SQL_SG, "grid", grid(grid_side(run) - 1)),
    ]


def answer_rows(kind: str, edges: Ints, skip: Ints | None = None) -> int:
    """Return the number of rows in an answer, by semi-naive evaluation in NumPy.

    `skip` holds nodes after which a recursive rule does not continue.
    """
    nodes = int(edges.max()) + 1 if len(edges) else 1
    if kind == "tc":
        return len(closure(edges, without(edges, skip), nodes))
    return len(same_generation(edges, nodes, skip))


def without(edges: Ints, skip: Ints | None) -> Ints:
    """Return the edges whose source is not skipped."""
    return edges if skip is None else edges[~np.isin(edges[:, 0], skip)]


def tree_depth(run: Run) -> int:
    """Return the depth of the tree."""
    return max(2, int(11 + np.log2(run.scale)))


def grid_side(run: Run) -> int:
    """Return the number of nodes on a side of the grid."""
    return max(3, int(151 * run.scale**0.5))
