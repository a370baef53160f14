"""Q7: how long do four interactive graph queries take, 1, 10, 100 and 1,000 arguments at once, next to PostgreSQL?

Look-up of a node, one hop, two hops, and the shortest path of at most four, on 1M nodes and 6.4M edges. An argument is
a row of an input that is joined with the shared arrangements of the edges. The clock runs from its insertion until the
answer's changes are in hand, wall time; the removal of the argument is not on it. PostgreSQL has the same tables,
indexed, and the same questions as prepared statements; arguments that come at once are compared with as many one by
one. Both are medians. A peek reads an arrangement without a dataflow.
"""

from __future__ import annotations

import numpy as np

import kpg
from kpg.bench.data.graphs import Ints
from kpg.bench.experiment import Limit, at_most, engine_experiment
from kpg.bench.interactive_queries import (
    CLASSES,
    EDGES,
    FACTOR,
    NODES,
    GraphStream,
    InstalledQuestions,
    expected_answers,
    install,
)
from kpg.bench.measure import settle, wall_stopwatch
from kpg.bench.peers.graph_stores import StoreAnswers, ask_postgres
from kpg.bench.run import Reference, Run

BATCHES = (1, 10, 100, 1_000)
ROUNDS = {1: 100, 10: 50, 100: 30, 1_000: 10}
LIMITS_MS = {"look-up": 1.0, "one-hop": 1.0, "two-hop": 2.0, "four-path": 3.0}  # median of one, without PostgreSQL
POSTGRES_TIMES = {"look-up": 5, "one-hop": 5, "two-hop": 1, "four-path": 1}  # faster than PostgreSQL, 100 at once
PEEK_MS = {"as an Arrow table": 0.045, "as rows": 0.03}  # median


def run(run: Run) -> None:
    """Measure the four classes, then a peek."""
    random = np.random.default_rng(5)
    nodes, count = max(50, run.size(NODES)), max(320, run.size(EDGES))
    graph = GraphStream(nodes, random.integers(0, nodes, (count, 2)), count, {}, 0)
    questions = {name: random.integers(0, nodes, (run.fixed_rounds(100), 2)) for name in CLASSES}
    peer = run.ask("postgresql", lambda: ask_postgres(graph.edges, FACTOR * np.arange(graph.nodes), questions))
    with kpg.open() as db:
        installed = install(db, graph, share=True)
        settle(db)
        check(run, db, installed, graph, questions, peer)
        for name in CLASSES:
            for batch in BATCHES:
                measure(run, db, installed, graph, name, batch, peer)
        peek(run, installed, graph)


def arguments(name: str, rows: Ints) -> Ints:
    """Return questions as rows of the input of their class."""
    return np.ascontiguousarray(rows if name == "four-path" else rows[:, :1])


def check(
    run: Run,
    db: kpg.Database,
    installed: InstalledQuestions,
    graph: GraphStream,
    questions: dict[str, Ints],
    peer: StoreAnswers | None,
) -> None:
    """Check the answers of the same questions against plain Python, and their number against PostgreSQL."""
    asked = {name: np.unique(rows, axis=0) if name == "four-path" else rows for name, rows in questions.items()}
    expected = expected_answers(graph.edges, {name: rows.tolist() for name, rows in asked.items()})
    for name in CLASSES:
        installed.questions[name].insert(arguments(name, asked[name]))
        db.advance()
        rows = sorted(installed.answers[name].rows())
        run.check(rows == sorted(expected[name]), f"the answers of {name}")
        if peer is not None and len(asked[name]) == len(questions[name]):
            run.check(len(rows) == len(peer.rows[name]), f"PostgreSQL has as many answers of {name}")
        installed.questions[name].remove(arguments(name, asked[name]))
        db.advance()
        run.check(not installed.answers[name].rows(), f"no answers of {name} without questions")


def measure(
    run: Run,
    db: kpg.Database,
    installed: InstalledQuestions,
    graph: GraphStream,
    name: str,
    batch: int,
    peer: StoreAnswers | None,
) -> None:
    """Measure a class of questions with some arguments at once."""
    case = f"{name}, {batch:,} at once"
    live, random = wall_stopwatch(case), np.random.default_rng(batch)
    output, relation = installed.answers[name], installed.questions[name]
    for _ in range(run.fixed_rounds(ROUNDS[batch])):
        rows = arguments(name, random.integers(0, graph.nodes, (batch, 2)))
        output.take_changes()
        with live:
            relation.insert(rows)
            db.advance()
            output.take_changes()
        relation.remove(rows)
        db.advance()
    one_by_one = None if peer is None else batch * float(np.median(peer.seconds[name]))
    note = "not asked" if peer is None else None
    reference = Reference("PostgreSQL, one by one", one_by_one, note=note)
    bar: str | None = None
    limits: list[Limit] = []
    if batch == 1 and peer is not None:
        bar, limits = "at most the time of PostgreSQL", [at_most("ratio", 1.0)]
    elif batch == 1:
        bar, limits = f"median at most {LIMITS_MS[name]:g} ms", [at_most("seconds", LIMITS_MS[name] / 1e3)]
    elif batch == 100 and peer is not None:
        times = POSTGRES_TIMES[name]
        bar = f"{times} times faster than PostgreSQL one by one" if times > 1 else "as fast as PostgreSQL one by one"
        limits = [at_most("ratio", 1 / times)]
    run.report(case, bar, limits, reference, latency=live, rows=batch, seconds=live.p50_ms / 1e3)


def peek(run: Run, installed: InstalledQuestions, graph: GraphStream) -> None:
    """Measure reading the edges of one node from the arrangement."""
    with installed.edges.arrange("src") as by_src:
        ways = {"as an Arrow table": by_src.lookup, "as rows": by_src.lookup_rows}
        for form, read in ways.items():
            live = wall_stopwatch(f"peek, {form}")
            for node in np.random.default_rng(9).integers(0, graph.nodes, run.fixed_rounds(1_000)).tolist():
                with live:
                    read(node)
            bar, limits = f"p50 at most {PEEK_MS[form]:g} ms", [at_most("p50_ms", PEEK_MS[form])]
            run.report(f"peek, {form}", bar, limits, latency=live, seconds=live.p50_ms / 1e3)


EXPERIMENT = engine_experiment(
    "Q7",
    "interactive graph queries",
    "1M nodes, 6.4M edges, 1 to 1,000 arguments at once",
    lambda scale: int(4e9 * scale + 5e8),
    run,
    ("postgresql",),
)
