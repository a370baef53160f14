"""Transitive closure and same generation in DuckDB (recursive SQL), Cozo and clingo: how many rows, and wall seconds.

The load of the edges is on the clock, as ours is. DuckDB runs on one thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import pyarrow as pa

from kpg.bench.data.graphs import Ints

SQL = {
    "tc": """WITH RECURSIVE t(x, y) AS (SELECT x, y FROM e UNION SELECT t.x, e.y FROM t JOIN e ON t.y = e.x)
        SELECT count(*) FROM t""",
    "sg": """WITH RECURSIVE s(x, y) AS (
            SELECT a.y, b.y FROM e a JOIN e b ON a.x = b.x WHERE a.y != b.y
            UNION SELECT a.y, b.y FROM s JOIN e a ON a.x = s.x JOIN e b ON b.x = s.y)
        SELECT count(*) FROM s""",
}
COZO = {
    "tc": "t[x, y] := *e[x, y]\nt[x, z] := t[x, y], *e[y, z]\n?[count(x)] := t[x, y]",
    "sg": "t[x, y] := *e[p, x], *e[p, y], x != y\nt[x, y] := t[a, b], *e[a, x], *e[b, y]\n?[count(x)] := t[x, y]",
}
CLINGO = {
    "tc": "t(X,Y) :- e(X,Y). t(X,Z) :- t(X,Y), e(Y,Z).",
    "sg": "t(X,Y) :- e(P,X), e(P,Y), X != Y. t(X,Y) :- e(A,X), t(A,B), e(B,Y).",
}


def ask_duckdb(program: str, edges: Ints) -> tuple[int, float]:
    """Recursive SQL."""
    import duckdb

    table = pa.table({"x": edges[:, 0].copy(), "y": edges[:, 1].copy()})
    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    connection.register("given", table)
    began = time.perf_counter()
    connection.execute("CREATE TABLE e AS SELECT * FROM given")
    (count,) = connection.execute(SQL[program]).fetchone() or (0,)
    seconds = time.perf_counter() - began
    connection.close()
    return int(count), seconds


def ask_cozo(program: str, edges: Ints) -> tuple[int, float]:
    """Datalog on a relation that is stored in memory."""
    from pycozo.client import Client

    client = Client(dataframe=False)
    rows = edges.tolist()
    began = time.perf_counter()
    client.run(":create e {x: Int, y: Int}")
    client.import_relations({"e": {"headers": ["x", "y"], "rows": rows}})
    count = client.run(COZO[program])["rows"][0][0]
    seconds = time.perf_counter() - began
    client.close()
    return int(count), seconds


def ask_clingo(program: str, edges: Ints) -> tuple[int, float]:
    """The grounder, which computes all of a program without choices."""
    import clingo

    control = clingo.Control(["--warn=none"])
    facts = "".join(f"e({a},{b})." for a, b in edges.tolist())
    began = time.perf_counter()
    control.add("base", [], facts + CLINGO[program])
    control.ground([("base", [])])
    count = sum(1 for _ in control.symbolic_atoms.by_signature("t", 2))
    return count, time.perf_counter() - began


ENGINES: dict[str, Callable[[str, Ints], tuple[int, float]]] = {
    "duckdb": ask_duckdb,
    "cozo": ask_cozo,
    "clingo": ask_clingo,
}
