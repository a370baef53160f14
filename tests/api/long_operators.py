"""Queries that work long in one operator each, and a db with the rows they read."""

import numpy as np
import pyarrow as pa

from kpg import col, graphs
from kpg.query.datalog import parse
from kpg.query.installed_program import InstalledProgram
from kpg.query.ir.compile import compile

CLOSURE = """
.decl e(x: number, y: number)
.input e
.decl p(x: number, y: number)
p(x, y) :- e(x, y). p(x, z) :- p(x, y), e(y, z).
.output p
"""


def random_rows(seed, rows, values, *names):
    random = np.random.default_rng(seed)
    return pa.table({name: random.integers(0, values, rows) for name in names})


def fill(db, rows):
    """Create the relations that the queries read; return them by name."""
    tables = {
        "big": db.input("big", k=int, v=int),
        "dense": db.input("dense", x=int, y=int),
        "edges": db.input("edges", src=int, dst=int),
        "roads": db.input("roads", src=int, dst=int, weight=int),
        "roots": db.input("roots", node=int),
        "words": db.input("words", n=int, s=str),
    }
    tables["big"].insert(random_rows(1, rows, rows, "k", "v"))
    tables["dense"].insert(random_rows(2, 8_000, 2_000, "x", "y"))
    tables["edges"].insert(random_rows(3, rows // 2, rows // 10, "src", "dst"))
    tables["roads"].insert(random_rows(4, rows // 2, rows // 10, "src", "dst", "weight"))
    tables["roots"].insert([(0,), (1,)])
    numbers = np.random.default_rng(5).permutation(rows // 4)
    tables["words"].insert(pa.table({"n": numbers, "s": [f"a{number}b" for number in numbers.tolist()]}))
    db.advance()
    return tables


def closure(db, t):
    program = InstalledProgram(db, compile(parse(CLOSURE)), inputs={"e": t["dense"]}, distinct_inputs=False)
    return program.collections["p"]


def general_loop(db, t):
    edges = t["dense"]
    return edges.iterate(lambda rows: rows.join(edges, on={"y": "x"}).select("x", y="y_right").concat(rows).distinct())


def sql(text):
    return lambda db, t: db.query(text)


LONG = {
    "join": lambda db, t: t["big"].join(t["big"].select(k="v", w="k"), on="k").select("k", "v", "w"),
    "product": lambda db, t: t["big"].select("k").join(t["big"].select(m="v"), how="cross"),
    "min": lambda db, t: t["big"].select("v", w=col("k") * 3).group_by("v").min("w"),
    "count": lambda db, t: t["big"].count("k"),
    "distinct": lambda db, t: t["big"].select(w=col("k") + col("v")).distinct(),
    "sum": lambda db, t: t["big"].select("v", w=col("k") % 1000).group_by("w").sum("v"),
    "top_k": lambda db, t: t["big"].select("v", g=col("k") % 1000).group_by("g").top_k(3, by="v"),
    "one group": lambda db, t: t["big"].group_by().top_k(100, by="-v"),
    "rows": lambda db, t: t["big"].filter(col("v") % 3 > 0).select(w=col("k") * 7 + col("v")),
    "recursion operator": closure,
    "general loop": general_loop,
    "reach": lambda db, t: graphs.reach(t["edges"], t["roots"]),
    "shortest paths": lambda db, t: graphs.sssp(t["roads"], t["roots"]),
    "components": lambda db, t: graphs.wcc(t["edges"]),
    "strong components": lambda db, t: graphs.scc(t["edges"]).nodes,
    "triangles": lambda db, t: graphs.triangles(t["edges"]).list,
    "page rank": lambda db, t: graphs.pagerank(t["edges"], rounds=10),
    "texts": lambda db, t: t["words"].select(u=col("s").str.replace_regex("[0-3]", "x")),
    "SQL aggregates": sql(
        "SELECT k % 5000 AS g, sum(v) AS s, avg(v) AS a, max(v) AS m, count(DISTINCT v) AS c FROM big GROUP BY k % 5000"
    ),
    "SQL string_agg": sql("SELECT n % 50 AS g, string_agg(s, ',' ORDER BY s) AS a FROM words GROUP BY n % 50"),
    "SQL text functions": sql("SELECT upper(s) || '-' || substr(s, 2, 3) AS u, replace(s, 'a', 'bb') AS r FROM words"),
    "SQL hashes": sql("SELECT DISTINCT md5(s) AS u FROM words"),
    "SQL delta join": sql(
        "SELECT a.src, b.src AS x, c.src AS y FROM edges a, edges b, edges c "
        "WHERE a.dst = b.src AND b.dst = c.src AND c.dst = a.src"
    ),
    "SQL recursion": sql(
        "WITH RECURSIVE r(x, y) AS (SELECT x, y FROM dense UNION SELECT r.x, e.y FROM r JOIN dense e ON r.y = e.x) "
        "SELECT x, y FROM r"
    ),
}
