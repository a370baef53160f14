"""X23: how many intermediate tuples do joins of more and more attributes keep?

Star joins of two to seven attributes of people, by binary joins and as delta queries. Counted are the rows of all
traces beyond one index for each attribute and the answer itself.
"""

from __future__ import annotations

import numpy as np

from kpg.bench.data import ldbc
from kpg.bench.data.social_network import Columns, persons
from kpg.bench.experiment import THESIS_I5, Experiment, PaperFigure, at_most
from kpg.bench.experiment import ldbc as directory_of
from kpg.bench.join_rules import InstalledJoin, JoinRule, attribute, rule
from kpg.bench.measure import settle, trace_rows
from kpg.bench.run import Run
from kpg.opening import open as open_database

PEOPLE = 10_000
ATTRIBUTES = ("first_name", "last_name", "gender", "birthday", "place", "browser", "ip")
WAYS = ("binary", "delta")


def run(run: Run) -> None:
    """Measure both joins, for more and more attributes."""
    people = people_of(run)
    count = len(people["id"])
    for way in WAYS:
        points = []
        for width in range(2, len(ATTRIBUTES) + 1):
            run.progress(f"{way}, {width} attributes", width, len(ATTRIBUTES))
            held = rows_held(run, way, width, people)
            between = held - (width + 1) * count
            points.append((float(width), float(between)))
            run.record(f"{way}, {width} attributes", held_rows=held, rows_in_between=between)
        run.line("state", way, points, x="attributes joined", y="intermediate tuples")
    run.figure("rows_in_between_of_delta_by_person", points[-1][1] / count)


def people_of(run: Run) -> Columns:
    """Return the people of the directory, or generated ones."""
    if run.data is not None:
        return ldbc.people(run.data)
    return persons(np.random.default_rng(run.seed), run.size(PEOPLE, least=40))


def star(width: int) -> JoinRule:
    """Return the rule that joins some attributes of each person."""
    values = [f"v{number}" for number in range(width)]
    atoms = [(name, f"p {value}") for name, value in zip(ATTRIBUTES, values, strict=False)]
    return rule(atoms, " ".join(["p", *values]))


def rows_held(run: Run, way: str, width: int, people: Columns) -> int:
    """Return the rows of all traces after all insertions and merges."""
    with open_database() as db:
        joined = InstalledJoin(db, star(width), way)
        joined.insert({name: attribute(people["id"], people[name]) for name in ATTRIBUTES[:width]})
        joined.advance()
        settle(db)
        expected = np.stack([people["id"], *[people[name] for name in ATTRIBUTES[:width]]])
        run.check(np.array_equal(joined.rows(), expected), f"{way}, {width} attributes")
        return trace_rows(db)


EXPERIMENT = Experiment(
    id="X23",
    title="3DF: intermediate state",
    paper="Optimising Distributed Dataflows in Interactive Environments, figure 3",
    claim="Binary joins keep more with each attribute; delta queries keep no intermediate tuples.",
    size="10,000 people, 2 to 7 attributes (the thesis's size)",
    printed=(
        PaperFigure("join at a time", "grows linearly with the attributes", THESIS_I5),
        PaperFigure("delta queries", "0 intermediate tuples", THESIS_I5),
    ),
    memory=lambda scale: int(2e8 * scale + 3e8),
    run=run,
    limits=(at_most("rows_in_between_of_delta_by_person", 0.01),),
    reads=directory_of(PEOPLE, "person"),
)
