"""X10: how long does one question about a graph take, or a batch of them; and how long in a database?

Four classes of questions, in batches of 1, 10, 100 and 1,000 at once, each a class at a time, on a graph at rest.
PostgreSQL and ladybug get the same graph and questions one by one.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kpg.bench.clocks import Clock
from kpg.bench.data.graphs import Ints
from kpg.bench.experiment import Experiment, Printed, snap
from kpg.bench.interactive import CLASSES, FACTOR, Installed, Rolled, Stream, ask, check, install, stream
from kpg.bench.peers.graph_stores import Asked, ask_ladybug, ask_postgres
from kpg.bench.run import Run
from kpg.opening import open as open_database

BATCHES = (1, 10, 100, 1_000)
ROUNDS = 50
OTHERS = 100  # questions of each class for a peer


def run(run: Run) -> None:
    """kpg in batches, then its peers."""
    rounds = run.rounds(ROUNDS)
    made = stream(run, 0, rounds * sum(BATCHES))
    mean: dict[str, dict[int, float]] = {name: {} for name in CLASSES}
    with open_database() as db:
        installed = install(db, made, share=True)
        rolled = Rolled()
        rolled.begin(installed, made)
        db.advance()
        for number, name in enumerate(CLASSES):
            run.say(name, number, len(CLASSES))
            at = made.held
            for batch in BATCHES:
                seconds = batches(db.advance, installed, made, name, at, batch, rounds)
                at += batch * rounds
                mean[name][batch] = float(np.mean(seconds))
                if batch in (1, 1_000):
                    run.curve(f"{name}, batch {batch:,}", seconds)
        rolled.questions = rounds * sum(BATCHES)
        check(run, installed, made, rolled)
    for batch in BATCHES:
        run.record(f"kpg, batch of {batch:,}", **{f"{name}_ms": mean[name][batch] * 1e3 for name in CLASSES})
    questions = {name: made.questions[name][: min(OTHERS, made.held)] for name in CLASSES}
    expected = answers(made, questions)
    for peer, question in (("postgresql", ask_postgres), ("ladybug", ask_ladybug)):
        compare(run, peer, made, questions, expected, question)


def batches(
    advance: Callable[[], int], installed: Installed, made: Stream, name: str, at: int, batch: int, rounds: int
) -> list[float]:
    """Seconds of each batch: asked, and the answers here. As many old questions go as new ones come."""
    rows, clock, output = made.questions[name], Clock(), installed.answers[name]
    output.take_changes()
    for each in range(at, at + batch * rounds, batch):
        with clock:
            ask(installed, name, rows[each : each + batch], rows[each - made.held : each - made.held + batch])
            advance()
            output.take_changes()
    return clock.seconds


def answers(made: Stream, questions: dict[str, Ints]) -> dict[str, list[tuple[int, ...]]]:
    """The rows of each class, by kpg on the same questions."""
    few = Stream(made.nodes, made.edges, made.held_edges, questions, len(questions["look-up"]))
    with open_database() as db:
        installed = install(db, few, share=True)
        Rolled().begin(installed, few)
        db.advance()
        return {name: installed.answers[name].rows() for name in CLASSES}


def compare(
    run: Run,
    peer: str,
    made: Stream,
    questions: dict[str, Ints],
    expected: dict[str, list[tuple[int, ...]]],
    question: Callable[[Ints, Ints, dict[str, Ints]], Asked],
) -> None:
    """What a peer takes, if it is there."""
    found = run.ask(peer, lambda: question(made.edges, FACTOR * np.arange(made.nodes), questions))
    if found is None:
        return
    for name in CLASSES:
        rows = set(found.rows[name]) if name == "four-path" else found.rows[name]  # we answer a pair once
        run.check(sorted(rows) == sorted(expected[name]), f"{peer} agrees on {name}")
    run.result.peers[peer] = found.version
    run.record(
        f"{peer}, one by one",
        **{f"{name}_ms": float(np.mean(found.seconds[name])) * 1e3 for name in CLASSES},
        load_s=found.load_seconds,
    )


EXPERIMENT = Experiment(
    id="X10",
    title="interactive graph queries: against databases",
    paper="Shared Arrangements, figure 6",
    claim="Broadly level with databases on single queries, and far beyond them in batches.",
    size="1M nodes, 6.4M edges (--scale 10 is the paper's graph)",
    printed=(
        Printed("look-up / one-hop / two-hop / 4-path, batch 1", "0.64 / 0.92 / 1.28 / 1.89 ms"),
        Printed("batch 10", "0.81 / 1.19 / 1.65 / 2.79 ms"),
        Printed("batch 100", "1.26 / 1.79 / 2.92 / 8.01 ms"),
        Printed("batch 1,000", "5.71 / 6.88 / 10.14 / 72.2 ms"),
        Printed("Postgres", "0.25 / 1.4 / 29 / 2242 ms", "32 cores"),
        Printed("Neo4j", "9.08 / 12.82 / 368 / 21 ms", "32 cores"),
        Printed("Virtuoso", "0.35 / 1.23 / 11.55 / 4.81 ms", "32 cores"),
    ),
    memory=lambda scale: int(3.5e9 * scale + 6e8),
    run=run,
    peers=("postgresql", "ladybug"),
    reads=snap(6_400_000),
)
