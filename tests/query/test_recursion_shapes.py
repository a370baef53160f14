"""Every shape of recursion runs in the evaluator that the table of docs/recursion.md names, as `explain` says: A6.6."""

from pathlib import Path

import pytest

import kpg
from kpg import col, graphs, lit
from kpg.query.datalog import parse
from kpg.query.ir.compile import compile
from kpg.query.lower.lower_program import LoweredProgram

PAGE = Path(__file__).parents[2] / "docs" / "recursion.md"
TABLES = {"e": "x INT, y INT", "f": "x INT, y INT, l INT", "s": "x INT"}
HEAD = """
.decl e(x: number, y: number)
.input e
.decl f(x: number, y: number, l: number)
.input f
.decl s(x: number)
.input s
.decl p(x: number, y: number)
.decl q(x: number, y: number)
.decl r(x: number)
.decl t(x: number, y: number, l: number)
"""
RULES = {  # the relation that is asked for, and its rules
    "linear": ("p", "p(x, y) :- e(x, y). p(x, z) :- p(x, y), e(y, z)."),
    "one column": ("r", "r(x) :- s(x). r(y) :- r(x), e(x, y)."),
    "no column kept": ("p", "p(x, y) :- e(a, x), e(a, y). p(x, y) :- e(a, x), p(a, b), e(b, y)."),
    "two recursive atoms": ("p", "p(x, y) :- e(x, y). p(x, z) :- p(x, y), p(y, z)."),
    "two recursive atoms, other rules": (
        "p",
        "p(x, y) :- e(x, y). p(x, z) :- p(x, y), p(y, z). p(y, x) :- p(x, y), s(x).",
    ),
    "mutual": ("p", "p(x, y) :- e(x, y). q(x, z) :- p(x, y), e(y, z). p(x, z) :- q(x, y), e(y, z)."),
    "more columns": ("t", "t(x, y, l) :- f(x, y, l). t(x, z, l) :- t(x, y, l), f(y, z, l)."),
    "comparisons": ("p", "p(x, y) :- e(x, y). p(x, z) :- p(x, y), e(y, z), x < z, y != 3."),
    "negation": ("p", "p(x, y) :- e(x, y). p(x, z) :- p(x, y), !s(y), e(y, z)."),
    "least value of a column": ("p", "p(x, min(0)) :- s(x). p(y, min(v + w)) :- p(x, v), f(x, y, w)."),
    "greatest value of a column": ("p", "p(x, max(x)) :- s(x). p(y, max(v)) :- p(x, v), e(x, y)."),
    "least value, comparisons": ("p", "p(x, min(0)) :- s(x). p(y, min(v + w)) :- p(x, v), f(x, y, w), x != y, w > 3."),
    "least value, negation": ("p", "p(x, min(0)) :- s(x). p(y, min(v + w)) :- p(x, v), f(x, y, w), !s(y), !e(x, y)."),
    "least value, further atoms": (
        "p",
        "p(x, min(0)) :- s(x). p(y, min(v + w)) :- p(x, v), f(x, y, w), s(x), e(y, _).",
    ),
    "least value, compared": ("p", "p(x, min(0)) :- s(x). p(y, min(v + w)) :- p(x, v), f(x, y, w), v < 100."),
    "least value of several columns": (
        "t",
        "t(x, y, min(l)) :- f(x, y, l). t(x, z, min(l + m)) :- t(x, y, l), f(y, z, m).",
    ),
    "least value of several columns, negation": (
        "t",
        "t(x, y, min(l)) :- f(x, y, l). t(x, z, min(l + m)) :- t(x, y, l), f(y, z, m), !s(z), m > 3.",
    ),
    "least value, all columns joined": (
        "t",
        """.decl g(x: number, y: number, u: number, v: number)
        g(x, y, u, v) :- e(x, y), e(u, v).
        t(x, y, min(l)) :- f(x, y, l). t(u, v, min(l + 1)) :- t(x, y, l), g(x, y, u, v).""",
    ),
    "constants": ("p", "p(x, y) :- e(x, y). p(x, 1) :- p(x, y), s(y)."),
    "computed values": ("r", "r(x) :- s(x). r(x + 1) :- r(x), x < 5."),
    "equivalence relation": (
        "u",
        ".decl u(x: number, y: number) eqrel u(x, y) :- e(x, y). u(x, z) :- u(x, y), e(y, z).",
    ),
    "subsumption": ("p", "p(x, y) :- e(x, y). p(x, z) :- p(x, y), e(y, z). p(x, y) <= p(x, z) :- y < z."),
    "choice": ("u", ".decl u(x: number, y: number) choice-domain y u(x, y) :- e(x, y). u(x, z) :- u(x, y), e(y, z)."),
}
QUERIES = {
    "linear": "p(x, y) AS (SELECT * FROM e UNION SELECT p.x, e.y FROM p JOIN e ON p.y = e.x)",
    "one column": "p(x) AS (SELECT x FROM s UNION SELECT e.y FROM p JOIN e ON p.x = e.x)",
    "no column kept": """p(x, y) AS (SELECT a.y, b.y FROM e a JOIN e b ON a.x = b.x
        UNION SELECT a.y, b.y FROM p JOIN e a ON a.x = p.x JOIN e b ON b.x = p.y)""",
    "more columns": """p(x, y, l) AS (SELECT * FROM f
        UNION SELECT p.x, f.y, p.l FROM p JOIN f ON p.y = f.x AND p.l = f.l)""",
    "comparisons": "p(x, y) AS (SELECT * FROM e UNION SELECT p.x, e.y FROM p JOIN e ON p.y = e.x WHERE e.x <> 3)",
    "negation": """p(x, y) AS (SELECT * FROM e UNION SELECT p.x, e.y FROM p JOIN e ON p.y = e.x
        WHERE NOT EXISTS (SELECT 1 FROM s WHERE s.x = e.x))""",
    "constants": "p(x, y) AS (SELECT * FROM e UNION SELECT p.x, 1 FROM p JOIN s ON p.y = s.x)",
    "computed values": "p(x) AS (SELECT x FROM s UNION SELECT x + 1 FROM p WHERE x < 5)",
    "UNION ALL": "p(x, y) AS (SELECT * FROM e UNION ALL SELECT p.x, e.y FROM p JOIN e ON p.y = e.x AND e.y > p.y)",
}  # fmt: skip


def onward(rows, e):
    return rows.join(e, on={"y": "x"}).select(x="x", y="y_right")


def mutual(db, e):
    with db.loop() as loop:
        p, q = loop.variable(x=int, y=int), loop.variable(x=int, y=int)
        everything = p.concat(e).distinct()
        q.set(onward(everything, e).distinct())
        p.set(onward(q, e))
        return loop.leave(everything)


def least(starts, f, restricted):
    """Return the least sum for each node, along edges with a condition."""

    def step(p):
        rows = restricted(p.join(f.select(x="x", z="y", l="l"), on="x"))
        return rows.select(x="z", y=col("y") + col("l")).concat(p).group_by("x").min("y")

    return starts.iterate(step)


def loops(db, e, f, s):
    """Return the collections of each shape that `iterate` and `db.loop` can express, and those of the graph library."""
    starts, edges = s.select("x", y=lit(0)), e.select(src="x", dst="y")
    weighted, roots = f.select(src="x", dst="y", weight="l"), s.select(node="x")
    return {
        "linear": e.iterate(lambda p: onward(p, e).concat(p).distinct()),
        "one column": s.iterate(lambda r: r.join(e, on="x").select(x="y").concat(r).distinct()),
        "two recursive atoms": e.iterate(lambda p: onward(p, p).concat(p).distinct()),
        "mutual": mutual(db, e),
        "more columns": f.iterate(
            lambda t: t.join(f, on={"y": "x", "l": "l"}).select(x="x", y="y_right", l="l").concat(t).distinct()
        ),
        "comparisons": e.iterate(lambda p: onward(p, e).filter(col("x") < col("y")).concat(p).distinct()),
        "negation": e.iterate(lambda p: onward(p.antijoin(s, on={"y": "x"}), e).concat(p).distinct()),
        "constants": e.iterate(lambda p: p.semijoin(s, on={"y": "x"}).select("x", y=lit(1)).concat(p).distinct()),
        "least value of a column": least(starts, f, lambda rows: rows),
        "least value, comparisons": least(starts, f, lambda rows: rows.filter((col("x") != col("z")) & (col("l") > 3))),
        "least value, negation": least(starts, f, lambda rows: rows.antijoin(s, on={"z": "x"})),
        "least value, further atoms": least(
            starts, f, lambda rows: rows.semijoin(s, on="x").join(e.select(at="x", to="y"), on={"z": "at"})
        ),
        "least value, compared": least(starts, f, lambda rows: rows.filter(col("y") < 100)),
        "greatest value of a column": starts.iterate(
            lambda p: p.join(e.select(x="x", z="y"), on="x").select(x="z", y="y").concat(p).group_by("x").max("y")
        ),
        "least value of several columns": f.iterate(
            lambda t: (
                t.join(f.select(y="x", z="y", m="l"), on="y")
                .select(x="x", y="z", l=col("l") + col("m"))
                .concat(t)
                .group_by("x", "y")
                .min("l")
            )
        ),
        "least value of several columns, negation": f.iterate(
            lambda t: (
                t.join(f.select(y="x", z="y", m="l"), on="y")
                .antijoin(s, on={"z": "x"})
                .select(x="x", y="z", l=col("l") + col("m"))
                .concat(t)
                .group_by("x", "y")
                .min("l")
            )
        ),
        "least value, all columns joined": f.iterate(
            lambda t: (
                t.join(f.select(x="x", y="y", u="y", v="l"), on=["x", "y"])
                .select(x="u", y="v", l=col("l") + 1)
                .concat(t)
                .group_by("x", "y")
                .min("l")
            )
        ),
        "counts": s.iterate(
            lambda r: r.join(e, on="x").count("y").filter(col("count") > 1).select(x="y").concat(r).distinct()
        ),
        "computed values": s.iterate(lambda r: r.filter(col("x") < 5).select(x=col("x") + 1).concat(r).distinct()),
        "`graphs.reach`": graphs.reach(edges, roots),
        "`graphs.bfs`": graphs.bfs(edges, roots),
        "`graphs.sssp`": graphs.sssp(weighted, roots),
        "`graphs.wcc`": graphs.wcc(edges),
        "`graphs.scc`": graphs.scc(edges).nodes,
        "`graphs.k_core`": graphs.k_core(edges, 2),
    }


def evaluator(explained):
    """Return the evaluator of the recursion in an explained dataflow."""
    if "saturate" in explained:
        divided, gathered = "each worker derives" in explained, "one worker derives all" in explained
        return "levels, divided" if divided else "levels, on one worker" if gathered else "levels"
    if "least values of" in explained:
        if "each worker has the rows of its values" in explained:
            return "least values, divided"
        return "least values, then a loop" if " is a loop: " in explained else "least values"
    return "components" if "components of scc" in explained else "loop" if " is a loop: " in explained else "none"


def explained_evaluator(collection):
    output = collection.output()
    try:
        return evaluator(output.explain())
    finally:
        output.release()


def evaluators(db, *, not_null=False):
    """Return the evaluator of each shape, by the way in which it is written; of tables without null if `not_null`."""
    for name, columns in TABLES.items():
        db.sql(f"CREATE TABLE {name} ({columns.replace('INT', 'INT NOT NULL') if not_null else columns})")
    inputs = {
        "e": db.input("edges", x=int, y=int),
        "f": db.input("labelled", x=int, y=int, l=int),
        "s": db.input("starts", x=int),
    }
    rules = {
        name: LoweredProgram(db, compile(parse(f"{HEAD}{text}\n.output {relation}")), inputs=inputs).collections[
            relation
        ]
        for name, (relation, text) in RULES.items()
    }
    queries = {name: db.query(f"WITH RECURSIVE {text} SELECT * FROM p") for name, text in QUERIES.items()}
    ways = (rules, queries, loops(db, **inputs))
    return [{name: explained_evaluator(collection) for name, collection in way.items()} for way in ways]


@pytest.fixture(scope="module")
def table():
    """The rows of the page's table: the evaluators of a shape in each way of writing it, and on several workers."""
    lines = PAGE.read_text().split("## Which evaluator runs")[1].splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    return {shape: cells for shape, *cells in rows[2:]}


@pytest.mark.parametrize("not_null", [False, True])
def test_explain_names_the_evaluator_of_the_page(table, not_null):
    with kpg.open() as db:
        found = evaluators(db, not_null=not_null)
    assert {shape: cells[:3] for shape, cells in table.items()} == {
        shape: [way.get(shape, "") for way in found] for shape in table
    }
    assert set().union(*found) == set(table)  # no shape is missing from the page


@pytest.mark.parametrize("not_null", [False, True])
def test_explain_names_the_evaluator_of_the_page_on_several_workers(table, not_null):
    """Loops stay loops; least values of `iterate` become loops, too, unless workers divide them."""
    with kpg.open(workers=2) as db:
        ways = evaluators(db, not_null=not_null)
    for number, way in enumerate(ways):
        for shape, found in way.items():
            one, several = table[shape][number], table[shape][3]
            is_written = number == 2 and not shape.startswith("`graphs") and one != "levels"
            is_written_loop = is_written and several != "least values, divided"
            assert found == ("loop" if one == "loop" or is_written_loop else several), shape
