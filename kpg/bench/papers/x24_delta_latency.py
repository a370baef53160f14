"""X24: how much latency do delta queries add, compared with binary joins?

A star join of five attributes of people that stream in, then values that change.
"""

from __future__ import annotations

import numpy as np

from kpg.bench.data.graphs import Ints
from kpg.bench.experiment import THESIS_I5, Experiment, PaperFigure, ldbc
from kpg.bench.join_rules import InstalledJoin, attribute, epochs, insert_epochs
from kpg.bench.measure import Stopwatch
from kpg.bench.papers.x23_intermediate_state import ATTRIBUTES, PEOPLE, WAYS, people_of, star
from kpg.bench.run import Run
from kpg.opening import open as open_database

WIDTH, TUPLES, CHANGES = 5, 500, 200


def run(run: Run) -> None:
    """Run both joins on the same stream."""
    people = people_of(run)
    medians = {}
    for number, way in enumerate(WAYS):
        run.progress(way, number, len(WAYS))
        with open_database() as db:
            joined = InstalledJoin(db, star(WIDTH), way)
            relations = {name: attribute(people["id"], people[name]) for name in ATTRIBUTES[:WIDTH]}
            arriving = insert_epochs(joined, epochs(relations, TUPLES))
            changing, last = changes(run, joined, people)
            expected = np.stack([people["id"], last, *[people[name] for name in ATTRIBUTES[1:WIDTH]]])
            run.check(np.array_equal(joined.rows(), expected), f"{way}, after all changes")
        run.latencies(f"{way}, people arriving", arriving.seconds)
        run.latencies(f"{way}, one value changing", changing.seconds)
        medians[way] = float(np.median(changing.seconds))
    run.figure("delta_by_binary_one_value", medians["delta"] / medians["binary"])


def changes(run: Run, joined: InstalledJoin, people: dict[str, Ints]) -> tuple[Stopwatch, Ints]:
    """Change first names, one at a time; return the latencies and the final names."""
    random, stopwatch = np.random.default_rng(run.seed + 1), Stopwatch("one value")
    names, relation = people["first_name"].copy(), joined.inputs["first_name"]
    for person in random.integers(0, len(names), run.scaled_rounds(CHANGES)).tolist():
        fresh = int(random.integers(0, 2_000))
        with stopwatch:
            relation.remove([(person, int(names[person]))])
            relation.insert([(person, fresh)])
            joined.advance()
        names[person] = fresh
    return stopwatch, names


EXPERIMENT = Experiment(
    id="X24",
    title="3DF: latency of delta queries",
    paper="Optimising Distributed Dataflows in Interactive Environments, figure 4",
    claim="Delta queries and binary joins take about as long.",
    size="10,000 people, 5 attributes, epochs of 500 tuples (the thesis's size)",
    printed=(PaperFigure("latencies of both", "about equal", THESIS_I5),),
    memory=lambda scale: int(2e8 * scale + 3e8),
    run=run,
    reads=ldbc(PEOPLE, "person"),
)
