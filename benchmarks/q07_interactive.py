"""Q7: how long do four interactive graph queries take, 1, 10, 100 and 1,000 arguments at once, next to PostgreSQL?

Look-up of a node, one hop, two hops, and the shortest path of at most four, on 1M nodes and 6.4M edges. An argument is
a row of an input that is joined with the shared arrangements of the edges; the clock runs from its insertion until the
answer's rows are here, wall time; its removal afterwards is not on it. PostgreSQL has the same tables, indexed, and the
same questions as prepared statements; arguments that come at once are compared with as many one by one. A peek reads
an arrangement outside of any dataflow.
"""

from __future__ import annotations

import numpy as np

import kpg
from benchmarks.lines import Reference, Run, at_most
from benchmarks.measure import settle, wall_clock
from kpg.bench.interactive import CLASSES, EDGES, FACTOR, NODES, Installed, Neighbours, Stream, install, length
from kpg.bench.peers.graph_stores import Asked, ask_postgres
from kpg.bench.run import Absent

BATCHES = (1, 10, 100, 1_000)
ROUNDS = {1: 100, 10: 50, 100: 30, 1_000: 10}
ONE_MS = {"look-up": 1.0, "one-hop": 1.0, "two-hop": 2.0, "four-path": 3.0}
HUNDRED = {"look-up": 5, "one-hop": 5, "two-hop": 1, "four-path": 1}  # times quicker than PostgreSQL one by one
PEEK_MS = 0.1


def run(run: Run) -> None:
    """The four classes, then a peek."""
    random = np.random.default_rng(5)
    nodes, count = max(50, run.size(NODES)), max(320, run.size(EDGES))
    graph = Stream(nodes, random.integers(0, nodes, (count, 2)), count, {}, 0)
    questions = {name: random.integers(0, nodes, (run.times(100), 2)) for name in CLASSES}
    peer, note = ask_peer(run, graph, questions)
    with kpg.open() as db:
        installed = install(db, graph, share=True)
        settle(db)
        check(db, installed, graph, questions, peer)
        for name in CLASSES:
            for batch in BATCHES:
                measure(run, db, installed, graph, name, batch, peer, note)
        peek(run, db, installed, graph)


def ask_peer(run: Run, graph: Stream, questions: dict[str, np.ndarray]) -> tuple[Asked | None, str | None]:
    """What PostgreSQL takes and answers, or why it was not asked."""
    if not run.asks_peers():
        return None, "not asked"
    try:
        return ask_postgres(graph.edges, FACTOR * np.arange(graph.nodes), questions), None
    except (Absent, ImportError) as error:
        return None, str(error)


def arguments(name: str, rows: np.ndarray) -> np.ndarray:
    """Questions as rows of the input of their class."""
    return np.ascontiguousarray(rows if name == "four-path" else rows[:, :1])


def check(
    db: kpg.Database, installed: Installed, graph: Stream, questions: dict[str, np.ndarray], peer: Asked | None
) -> None:
    """The answers to the same questions: those of plain Python, and as many as PostgreSQL has."""
    ahead, behind = Neighbours(graph.edges), Neighbours(graph.edges[:, ::-1])
    for name in CLASSES:
        asked = np.unique(questions[name], axis=0) if name == "four-path" else questions[name]
        installed.questions[name].insert(arguments(name, asked))
        db.advance()
        rows = sorted(installed.answers[name].rows())
        assert rows == sorted(expected(name, asked.tolist(), ahead, behind)), name
        if peer is not None and len(asked) == len(questions[name]):
            assert len(rows) == len(peer.rows[name]), name
        installed.questions[name].remove(arguments(name, asked))
        db.advance()
        assert not installed.answers[name].rows(), name


def expected(name: str, asked: list[list[int]], ahead: Neighbours, behind: Neighbours) -> list[tuple[int, ...]]:
    """The answers, plainly."""
    match name:
        case "look-up":
            return [(a, FACTOR * a) for a, _ in asked]
        case "one-hop":
            return [(a, to) for a, _ in asked for to in ahead.of(a)]
        case "two-hop":
            return [(a, to) for a, _ in asked for by in ahead.of(a) for to in ahead.of(by)]
    return [(a, b, far) for a, b in asked if (far := length(ahead, behind, a, b)) >= 0]


def measure(
    run: Run, db: kpg.Database, installed: Installed, graph: Stream, name: str, batch: int, peer: Asked | None,
    note: str | None,
) -> None:  # fmt: skip
    """Some arguments at once, again and again."""
    case = f"{name}, {batch:,} at once"
    live, random = wall_clock(case), np.random.default_rng(batch)
    output, relation = installed.answers[name], installed.questions[name]
    for _ in range(run.times(ROUNDS[batch])):
        rows = arguments(name, random.integers(0, graph.nodes, (batch, 2)))
        output.take_changes()
        with live:
            relation.insert(rows)
            db.advance()
            output.take_changes()
        relation.remove(rows)
        db.advance()
    mean = 1e3 * sum(live.seconds) / len(live.seconds)
    one = None if peer is None else float(np.mean(peer.seconds[name]))
    reference = Reference("PostgreSQL, one by one", None if one is None else batch * one, note=note)
    bar, bars = None, []
    if batch == 1:
        bar, bars = f"mean at most {ONE_MS[name]:g} ms", [at_most("seconds", ONE_MS[name] / 1e3)]
    elif batch == 100 and one is not None:
        times = HUNDRED[name]
        bar = f"{times} times quicker than PostgreSQL one by one" if times > 1 else "as quick as PostgreSQL one by one"
        bars = [at_most("ratio", 1 / times)]
    run.report(case, bar, bars, reference, latency=live, rows=batch, seconds=mean / 1e3)


def peek(run: Run, db: kpg.Database, installed: Installed, graph: Stream) -> None:
    """The edges of one node, read from the arrangement."""
    live = wall_clock("peek")
    with installed.edges.arrange("src") as by_src:
        for node in np.random.default_rng(9).integers(0, graph.nodes, run.times(1_000)).tolist():
            with live:
                by_src.lookup(node)
    mean = sum(live.seconds) / len(live.seconds)
    run.report("peek", f"mean at most {PEEK_MS:g} ms", [at_most("seconds", PEEK_MS / 1e3)], latency=live, seconds=mean)
