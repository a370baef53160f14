"""The four classes of questions about a graph, asked of PostgreSQL and of an embedded graph database (ladybug).

Each receives the same graph, indexed, and the same questions one by one, as prepared statements. The answers are
returned, to be compared with ours. Seconds are wall time from asking until the rows are in hand.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from kpg.bench.data.graphs import Ints
from kpg.bench.peers.postgres import server

Rows = list[tuple[int, ...]]
Questions = dict[str, Ints]  # int64[n, 2] by class

SQL = {
    "look-up": "SELECT id, value FROM nodes WHERE id = %s",
    "one-hop": "SELECT src, dst FROM edges WHERE src = %s",
    "two-hop": "SELECT a.src, b.dst FROM edges a JOIN edges b ON b.src = a.dst WHERE a.src = %s",
    "four-path": """
        WITH q AS (SELECT %s::bigint AS a, %s::bigint AS b),
        f1 AS (SELECT DISTINCT dst AS n FROM edges, q WHERE src = a),
        f2 AS (SELECT DISTINCT dst AS n FROM edges JOIN f1 ON src = n),
        b1 AS (SELECT DISTINCT src AS n FROM edges, q WHERE dst = b),
        b2 AS (SELECT DISTINCT src AS n FROM edges JOIN b1 ON dst = n),
        f AS (SELECT a AS n, 0 AS d FROM q UNION ALL SELECT n, 1 FROM f1 UNION ALL SELECT n, 2 FROM f2),
        b AS (SELECT b AS n, 0 AS d FROM q UNION ALL SELECT n, 1 FROM b1 UNION ALL SELECT n, 2 FROM b2)
        SELECT q.a, q.b, m.d FROM q, (SELECT min(f.d + b.d) AS d FROM f JOIN b USING (n)) m WHERE m.d IS NOT NULL""",
}
CYPHER = {
    "look-up": "MATCH (a:Node) WHERE a.id = $a RETURN a.id, a.value",
    "one-hop": "MATCH (a:Node)-[:Edge]->(b:Node) WHERE a.id = $a RETURN a.id, b.id",
    "two-hop": "MATCH (a:Node)-[:Edge]->(:Node)-[:Edge]->(b:Node) WHERE a.id = $a RETURN a.id, b.id",
    "four-path": "MATCH p = (a:Node)-[:Edge* SHORTEST 1..4]->(b:Node) WHERE a.id = $a AND b.id = $b "
    "RETURN a.id, b.id, length(p)",
}


@dataclass(frozen=True, slots=True)
class StoreAnswers:
    """The seconds of each question and all rows, by class; the seconds to load and index."""

    seconds: dict[str, list[float]]
    rows: dict[str, Rows]
    load_seconds: float
    version: str


def ask_postgres(edges: Ints, values: Ints, questions: Questions) -> StoreAnswers:
    """Ask PostgreSQL, with two tables and three indexes. A first question of each class prepares its statement."""
    import psycopg

    with server() as address, psycopg.connect(address.dsn, autocommit=True, prepare_threshold=0) as connection:
        began = time.perf_counter()
        cursor = connection.cursor()
        cursor.execute("CREATE UNLOGGED TABLE edges (src bigint, dst bigint)")
        cursor.execute("CREATE UNLOGGED TABLE nodes (id bigint PRIMARY KEY, value bigint)")
        for table, rows in (("edges", edges), ("nodes", np.stack([np.arange(len(values)), values], axis=1))):
            with cursor.copy(f"COPY {table} FROM STDIN") as copy:
                for start in range(0, len(rows), 100_000):
                    copy.write("".join(f"{a}\t{b}\n" for a, b in rows[start : start + 100_000].tolist()))
        cursor.execute("CREATE INDEX by_src ON edges (src, dst)")
        cursor.execute("CREATE INDEX by_dst ON edges (dst, src)")
        cursor.execute("VACUUM ANALYZE")
        loading = time.perf_counter() - began

        def ask(name: str, pair: list[int]) -> Rows:
            arguments = pair if name == "four-path" else pair[:1]
            return cursor.execute(SQL[name], arguments).fetchall()

        return ask_all(questions, ask, loading, str(connection.info.parameter_status("server_version")))


def ask_ladybug(edges: Ints, values: Ints, questions: Questions) -> StoreAnswers:
    """Ask ladybug, in memory and on one thread, with prepared statements."""
    import ladybug

    database = ladybug.Database(":memory:")
    connection: Any = ladybug.Connection(database, num_threads=1)
    began = time.perf_counter()
    connection.execute("CREATE NODE TABLE Node(id INT64, value INT64, PRIMARY KEY(id))")
    connection.execute("CREATE REL TABLE Edge(FROM Node TO Node)")
    node_table = pa.table({"id": np.arange(len(values)), "value": values})
    edge_table = pa.table({"from": edges[:, 0].copy(), "to": edges[:, 1].copy()})
    connection.execute("COPY Node FROM $rows", {"rows": node_table})
    connection.execute("COPY Edge FROM $rows", {"rows": edge_table})
    loading = time.perf_counter() - began
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # planning each question again takes longer
        prepared = {name: connection.prepare(text) for name, text in CYPHER.items()}

    def ask(name: str, pair: list[int]) -> Rows:
        if name == "four-path" and pair[0] == pair[1]:
            return [(pair[0], pair[1], 0)]
        arguments = {"a": pair[0], "b": pair[1]} if name == "four-path" else {"a": pair[0]}
        return [tuple(row) for row in connection.execute(prepared[name], arguments).get_all()]

    answers = ask_all(questions, ask, loading, str(ladybug.__version__))
    connection.close()
    database.close()
    return answers


def ask_all(questions: Questions, ask: Callable[[str, list[int]], Rows], loading: float, version: str) -> StoreAnswers:
    """Ask and time every question."""
    seconds: dict[str, list[float]] = {}
    rows: dict[str, Rows] = {}
    for name, pairs in questions.items():
        ask(name, pairs[0].tolist())
        seconds[name], rows[name] = [], []
        for pair in pairs.tolist():
            began = time.perf_counter()
            answer = ask(name, pair)
            seconds[name].append(time.perf_counter() - began)
            rows[name] += answer
    return StoreAnswers(seconds, rows, loading, version)
