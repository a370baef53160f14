"""Transitive closure and same generation in DuckDB (recursive SQL), Cozo and clingo: how many rows, and wall seconds.

The load of the edges is on the clock, as ours is. DuckDB runs on one thread.

With an argument (X17) the edges are there and indexed beforehand, as ours are, and each question is written for its
engine: DuckDB and clingo start from the argument, which is possible for the closure alone, Cozo finds that out itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence

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


BOUND_SQL = {
    ("tc", "x"): """WITH RECURSIVE t(y) AS (SELECT y FROM e WHERE x = $a UNION SELECT e.y FROM t JOIN e ON t.y = e.x)
        SELECT y FROM t""",
    ("tc", "y"): """WITH RECURSIVE t(x) AS (SELECT x FROM e WHERE y = $a UNION SELECT e.x FROM t JOIN e ON t.x = e.y)
        SELECT x FROM t""",
}
BOUND_CLINGO = {
    ("tc", "x"): "t(Y) :- e({a},Y). t(Z) :- t(Y), e(Y,Z).",
    ("tc", "y"): "t(X) :- e(X,{a}). t(W) :- t(X), e(W,X).",
}
BOUND_COZO = {
    ("tc", "x"): "t[x, y] := *e[x, y]\nt[x, z] := t[x, y], *e[y, z]\n?[y] := t[$a, y]",
    ("tc", "y"): "t[x, y] := *e[x, y]\nt[x, z] := *e[x, y], t[y, z]\n?[x] := t[x, $a]",
    ("sg", "x"): "t[x, y] := *e[p, x], *e[p, y], x != y\nt[x, y] := *e[a, x], t[a, b], *e[b, y]\n?[y] := t[$a, y]",
}
Question = tuple[str, str]  # a program, and the column of the argument
Answered = tuple[list[set[int]], list[float]]  # for each argument, what goes with it, and seconds


def bound_duckdb(question: Question, edges: Ints, arguments: Sequence[int]) -> Answered:
    """Recursive SQL that starts from the argument."""
    import duckdb

    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    connection.register("given", pa.table({"x": edges[:, 0].copy(), "y": edges[:, 1].copy()}))
    connection.execute("CREATE TABLE e AS SELECT * FROM given")
    text = BOUND_SQL[question]
    found = timed(arguments, lambda each: {row[0] for row in connection.execute(text, {"a": each}).fetchall()})
    connection.close()
    return found


def bound_cozo(question: Question, edges: Ints, arguments: Sequence[int]) -> Answered:
    """Datalog, which Cozo rewrites for the argument; edges are stored in both orders."""
    from pycozo.client import Client

    client = Client(dataframe=False)
    client.run(":create e {x: Int, y: Int}")
    client.import_relations({"e": {"headers": ["x", "y"], "rows": edges.tolist()}})
    client.run("::index create e:turned {y, x}")
    text = BOUND_COZO[question]
    found = timed(arguments, lambda each: {row[0] for row in client.run(text, {"a": each})["rows"]})
    client.close()
    return found


def bound_clingo(question: Question, edges: Ints, arguments: Sequence[int]) -> Answered:
    """A program for each argument, grounded on facts that are there."""
    import clingo

    facts = "".join(f"e({a},{b})." for a, b in edges.tolist())
    controls = []
    for each in arguments:
        control = clingo.Control(["--warn=none"])
        control.add("base", [], facts)
        control.add("asked", [], BOUND_CLINGO[question].format(a=each))
        control.ground([("base", [])])
        controls.append(control)

    def ask(each: int) -> set[int]:
        control = controls.pop(0)
        control.ground([("asked", [])])
        return {atom.symbol.arguments[0].number for atom in control.symbolic_atoms.by_signature("t", 1)}

    return timed(arguments, ask)


def timed(arguments: Sequence[int], ask: Callable[[int], set[int]]) -> Answered:
    """Every argument, on the clock."""
    answers, seconds = [], []
    for each in arguments:
        began = time.perf_counter()
        answers.append(ask(each))
        seconds.append(time.perf_counter() - began)
    return answers, seconds


BOUND: dict[str, tuple[Callable[[Question, Ints, Sequence[int]], Answered], Collection[Question]]] = {
    "duckdb": (bound_duckdb, tuple(BOUND_SQL)),
    "cozo": (bound_cozo, tuple(BOUND_COZO)),
    "clingo": (bound_clingo, tuple(BOUND_CLINGO)),
}
ENGINES: dict[str, Callable[[str, Ints], tuple[int, float]]] = {
    "duckdb": ask_duckdb,
    "cozo": ask_cozo,
    "clingo": ask_clingo,
}
