"""Transitive closure and same generation in DuckDB (recursive SQL), Cozo and clingo: row counts and seconds.

The load of the edges is on the clock, as ours is; converting them to the engine's format is not. DuckDB runs on one
thread.

With an argument (X17) the edges are loaded and indexed before, as ours are, and each question is written for its
engine: DuckDB and clingo start from the argument, which is possible for the closure only; Cozo derives that itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa

from kpg.bench.data.graphs import Ints
from kpg.bench.machine import peer_version
from kpg.bench.peers.duckdb_recompute import connect

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
TITLES = {"cozo": "Cozo"}  # engines with a capital


@dataclass(slots=True)
class EngineAnswer:
    """The number of rows of an answer, and the wall and CPU seconds to compute it."""

    rows: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0


@contextmanager
def timed_answer() -> Iterator[EngineAnswer]:
    """Time a block that sets the row count of an answer."""
    answer = EngineAnswer()
    began, cpu_began = time.perf_counter(), time.process_time()
    yield answer
    answer.seconds, answer.cpu_seconds = time.perf_counter() - began, time.process_time() - cpu_began


def engine_name(peer: str) -> str:
    """Return the name of an engine with its version."""
    return f"{TITLES.get(peer, peer)} {peer_version(peer)}".strip()


def edge_table(edges: Ints) -> pa.Table:
    """Return edges as an Arrow table."""
    return pa.table({"x": edges[:, 0].copy(), "y": edges[:, 1].copy()})


def ask_duckdb(program: str, edges: Ints) -> EngineAnswer:
    """Evaluate recursive SQL in DuckDB."""
    connection = connect(e=edge_table(edges))
    with timed_answer() as answer:
        connection.execute("CREATE TABLE e AS SELECT * FROM e_view")
        (count,) = connection.execute(SQL[program]).fetchone() or (0,)
        answer.rows = int(count)
    connection.close()
    return answer


def ask_cozo(program: str, edges: Ints) -> EngineAnswer:
    """Evaluate Datalog in Cozo, on a relation in memory."""
    from pycozo.client import Client

    client = Client(dataframe=False)
    rows = edges.tolist()
    with timed_answer() as answer:
        client.run(":create e {x: Int, y: Int}")
        client.import_relations({"e": {"headers": ["x", "y"], "rows": rows}})
        answer.rows = int(client.run(COZO[program])["rows"][0][0])
    client.close()
    return answer


def ask_clingo(program: str, edges: Ints) -> EngineAnswer:
    """Ground a program in clingo. The grounder computes all of a program without choices."""
    import clingo

    control = clingo.Control(["--warn=none"])
    facts = "".join(f"e({a},{b})." for a, b in edges.tolist())
    with timed_answer() as answer:
        control.add("base", [], facts + CLINGO[program])
        control.ground([("base", [])])
        answer.rows = sum(1 for _ in control.symbolic_atoms.by_signature("t", 2))
    return answer


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
BoundQuestion = tuple[str, str]  # a program, and the column of the argument
BoundAnswers = tuple[list[set[int]], list[float]]  # for each argument, the values of the other column, and seconds


def bound_duckdb(question: BoundQuestion, edges: Ints, arguments: Sequence[int]) -> BoundAnswers:
    """Evaluate recursive SQL that starts from the argument."""
    connection = connect(e=edge_table(edges))
    connection.execute("CREATE TABLE e AS SELECT * FROM e_view")
    text = BOUND_SQL[question]
    answers = timed(
        arguments, lambda argument: {row[0] for row in connection.execute(text, {"a": argument}).fetchall()}
    )
    connection.close()
    return answers


def bound_cozo(question: BoundQuestion, edges: Ints, arguments: Sequence[int]) -> BoundAnswers:
    """Evaluate Datalog that Cozo rewrites for the argument; the edges are stored in both orders."""
    from pycozo.client import Client

    client = Client(dataframe=False)
    client.run(":create e {x: Int, y: Int}")
    client.import_relations({"e": {"headers": ["x", "y"], "rows": edges.tolist()}})
    client.run("::index create e:turned {y, x}")
    text = BOUND_COZO[question]
    answers = timed(arguments, lambda argument: {row[0] for row in client.run(text, {"a": argument})["rows"]})
    client.close()
    return answers


def bound_clingo(question: BoundQuestion, edges: Ints, arguments: Sequence[int]) -> BoundAnswers:
    """Ground a program for each argument, on facts that are grounded before."""
    import clingo

    facts = "".join(f"e({a},{b})." for a, b in edges.tolist())
    controls = []
    for argument in arguments:
        control = clingo.Control(["--warn=none"])
        control.add("base", [], facts)
        control.add("asked", [], BOUND_CLINGO[question].format(a=argument))
        control.ground([("base", [])])
        controls.append(control)

    def ask(argument: int) -> set[int]:
        control = controls.pop(0)
        control.ground([("asked", [])])
        return {atom.symbol.arguments[0].number for atom in control.symbolic_atoms.by_signature("t", 1)}

    return timed(arguments, ask)


def timed(arguments: Sequence[int], ask: Callable[[int], set[int]]) -> BoundAnswers:
    """Ask for each argument, and measure the seconds of each."""
    answers, seconds = [], []
    for argument in arguments:
        began = time.perf_counter()
        answers.append(ask(argument))
        seconds.append(time.perf_counter() - began)
    return answers, seconds


BOUND: dict[str, tuple[Callable[[BoundQuestion, Ints, Sequence[int]], BoundAnswers], Collection[BoundQuestion]]] = {
    "duckdb": (bound_duckdb, tuple(BOUND_SQL)),
    "cozo": (bound_cozo, tuple(BOUND_COZO)),
    "clingo": (bound_clingo, tuple(BOUND_CLINGO)),
}
ENGINES: dict[str, Callable[[str, Ints], EngineAnswer]] = {
    "duckdb": ask_duckdb,
    "cozo": ask_cozo,
    "clingo": ask_clingo,
}
