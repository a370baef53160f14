"""X23: how many tuples do joins of more and more attributes keep in between?

Star joins of two to seven attributes of people: joined two at a time, and as delta queries. Counted are the rows of
all traces beyond one index for each attribute and the answer itself.
"""

from __future__ import annotations

import numpy as np

from kpg.api.embedded_database import EmbeddedDatabase
from kpg.bench.data import ldbc
from kpg.bench.data.social import Columns, persons
from kpg.bench.experiment import THESIS_I5, Experiment, Printed, at_most
from kpg.bench.experiment import ldbc as directory_of
from kpg.bench.joins import Joined, Rule, attribute, rule
from kpg.bench.run import Run
from kpg.opening import open as open_database

PEOPLE = 10_000
ATTRIBUTES = ("first_name", "last_name", "gender", "birthday", "place", "browser", "ip")
WAYS = ("binary", "delta")


def run(run: Run) -> None:
    """Both ways, for more and more attributes."""
    people = people_of(run)
    count = len(people["id"])
    for way in WAYS:
        points = []
        for width in range(2, len(ATTRIBUTES) + 1):
            run.say(f"{way}, {width} attributes", width, len(ATTRIBUTES))
            held = kept(run, way, width, people)
            between = held - (width + 1) * count
            points.append((float(width), float(between)))
            run.record(f"{way}, {width} attributes", held_rows=held, rows_in_between=between)
        run.line("state", way, points, x="attributes joined", y="tuples in between")
    run.figure("rows_in_between_of_delta_by_person", points[-1][1] / count)


def people_of(run: Run) -> Columns:
    """The people of a file, or from the seed."""
    if run.data is not None:
        return ldbc.people(run.data)
    return persons(np.random.default_rng(run.seed), run.size(PEOPLE, least=40))


def star(width: int) -> Rule:
    """The attributes of each person, side by side."""
    values = [f"v{each}" for each in range(width)]
    atoms = [(name, f"p {value}") for name, value in zip(ATTRIBUTES, values, strict=False)]
    return rule(atoms, " ".join(["p", *values]))


def kept(run: Run, way: str, width: int, people: Columns) -> int:
    """The rows of all traces, when everything is in and at rest."""
    with open_database() as db:
        joined = Joined(db, star(width), way)
        joined.insert({name: attribute(people["id"], people[name]) for name in ATTRIBUTES[:width]})
        joined.advance()
        joined.advance()
        while db.idle(10_000_000):
            pass
        expected = np.stack([people["id"], *[people[name] for name in ATTRIBUTES[:width]]])
        run.check(np.array_equal(joined.rows(), expected), f"{way}, {width} attributes")
        assert isinstance(db, EmbeddedDatabase)
        return sum(spine.rows for spine in db.spines())


EXPERIMENT = Experiment(
    id="X23",
    title="3DF: state in between",
    paper="Optimising Distributed Dataflows in Interactive Environments, figure 3",
    claim="Joined two at a time, what is kept grows with each attribute; delta queries keep nothing in between.",
    size="10,000 people, 2 to 7 attributes (the thesis's size)",
    printed=(
        Printed("join at a time", "grows linearly with the attributes", THESIS_I5),
        Printed("delta queries", "0 intermediate tuples", THESIS_I5),
    ),
    memory=lambda scale: int(2e8 * scale + 3e8),
    run=run,
    bars=(at_most("rows_in_between_of_delta_by_person", 0.01),),
    reads=directory_of(PEOPLE, "person"),
)
