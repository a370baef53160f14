"""X10: how long does a question about a graph take, alone and in a batch, and how long does it take in a database?

Four classes of questions, in batches of 1, 10, 100 and 1,000, one class at a time, on a graph that does not change.
PostgreSQL and ladybug receive the same graph, and the questions one by one.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kpg.bench.data.graphs import Ints
from kpg.bench.experiment import Experiment, PaperFigure, snap
from kpg.bench.interactive_queries import (
    CLASSES,
    FACTOR,
    GraphStream,
    InstalledQuestions,
    StreamPosition,
    ask,
    check,
    install,
    stream,
)
from kpg.bench.measure import Stopwatch
from kpg.bench.peers.graph_stores import StoreAnswers, ask_ladybug, ask_postgres
from kpg.bench.run import Run
from kpg.opening import open as open_database

BATCHES = (1, 10, 100, 1_000)
ROUNDS = 50
PEER_QUESTIONS = 100  # of each class


def run(run: Run) -> None:
    """Measure kpg in batches, then its peers."""
    rounds = run.scaled_rounds(ROUNDS)
    graph = stream(run, 0, rounds * sum(BATCHES))
    mean: dict[str, dict[int, float]] = {name: {} for name in CLASSES}
    with open_database() as db:
        installed = install(db, graph, share=True)
        position = StreamPosition()
        position.begin(installed, graph)
        db.advance()
        for number, name in enumerate(CLASSES):
            run.progress(name, number, len(CLASSES))
            first = graph.held
            for batch in BATCHES:
                seconds = batches(db.advance, installed, graph, name, first, batch, rounds)
                first += batch * rounds
                mean[name][batch] = float(np.mean(seconds))
                if batch in (1, 1_000):
                    run.curve(f"{name}, batch {batch:,}", seconds)
        position.questions = rounds * sum(BATCHES)
        check(run, installed, graph, position)
    for batch in BATCHES:
        run.record(f"kpg, batch of {batch:,}", **{f"{name}_ms": mean[name][batch] * 1e3 for name in CLASSES})
    questions = {name: graph.questions[name][: min(PEER_QUESTIONS, graph.held)] for name in CLASSES}
    expected = answers(graph, questions)
    for peer, question in (("postgresql", ask_postgres), ("ladybug", ask_ladybug)):
        compare(run, peer, graph, questions, expected, question)


def batches(
    advance: Callable[[], int],
    installed: InstalledQuestions,
    graph: GraphStream,
    name: str,
    first: int,
    batch: int,
    rounds: int,
) -> list[float]:
    """Return the seconds of each batch, until its answers are in hand. Each batch replaces as many old questions."""
    rows, stopwatch, output = graph.questions[name], Stopwatch(f"{name}, batch {batch:,}"), installed.answers[name]
    output.take_changes()
    for start in range(first, first + batch * rounds, batch):
        with stopwatch:
            oldest = start - graph.held
            ask(installed, name, rows[start : start + batch], rows[oldest : oldest + batch])
            advance()
            output.take_changes()
    return stopwatch.seconds


def answers(graph: GraphStream, questions: dict[str, Ints]) -> dict[str, list[tuple[int, ...]]]:
    """Return the answers of kpg to the peers' questions."""
    few = GraphStream(graph.nodes, graph.edges, graph.held_edges, questions, len(questions["look-up"]))
    with open_database() as db:
        installed = install(db, few, share=True)
        StreamPosition().begin(installed, few)
        db.advance()
        return {name: installed.answers[name].rows() for name in CLASSES}


def compare(
    run: Run,
    peer: str,
    graph: GraphStream,
    questions: dict[str, Ints],
    expected: dict[str, list[tuple[int, ...]]],
    question: Callable[[Ints, Ints, dict[str, Ints]], StoreAnswers],
) -> None:
    """Measure a peer, if it is installed, and compare its answers."""
    answered = run.ask(peer, lambda: question(graph.edges, FACTOR * np.arange(graph.nodes), questions))
    if answered is None:
        return
    for name in CLASSES:
        rows = (
            set(answered.rows[name]) if name == "four-path" else answered.rows[name]
        )  # kpg answers each distinct pair once
        run.check(sorted(rows) == sorted(expected[name]), f"{peer} agrees on {name}")
    run.result.peers[peer] = answered.version
    run.record(
        f"{peer}, one by one",
        **{f"{name}_ms": float(np.mean(answered.seconds[name])) * 1e3 for name in CLASSES},
        load_s=answered.load_seconds,
    )


EXPERIMENT = Experiment(
    id="X10",
    title="interactive graph queries: against databases",
    paper="Shared Arrangements, figure 6",
    claim="About as fast as databases on single queries, and far faster in batches.",
    size="1M nodes, 6.4M edges (--scale 10 is the paper's graph)",
    printed=(
        PaperFigure("look-up / one-hop / two-hop / 4-path, batch 1", "0.64 / 0.92 / 1.28 / 1.89 ms"),
        PaperFigure("batch 10", "0.81 / 1.19 / 1.65 / 2.79 ms"),
        PaperFigure("batch 100", "1.26 / 1.79 / 2.92 / 8.01 ms"),
        PaperFigure("batch 1,000", "5.71 / 6.88 / 10.14 / 72.2 ms"),
        PaperFigure("Postgres", "0.25 / 1.4 / 29 / 2242 ms", "32 cores"),
        PaperFigure("Neo4j", "9.08 / 12.82 / 368 / 21 ms", "32 cores"),
        PaperFigure("Virtuoso", "0.35 / 1.23 / 11.55 / 4.81 ms", "32 cores"),
    ),
    memory=lambda scale: int(3.5e9 * scale + 6e8),
    run=run,
    peers=("postgresql", "ladybug"),
    reads=snap(6_400_000),
)
