"""X27: how do joins compare on a query of LDBC's business intelligence (BI/read/2), ten thousand tuples at a time?

Posts with their tags, their creators, and the place, birthday and gender of those: five joins without a cycle. Each
join returns all rows, from which the query's counts by tag, country, gender and month follow.
"""

from __future__ import annotations

import numpy as np

from kpg.bench.data import ldbc
from kpg.bench.data.graphs import Ints
from kpg.bench.data.social_network import Columns, network
from kpg.bench.experiment import THESIS_I5, Experiment, PaperFigure
from kpg.bench.experiment import ldbc as directory_of
from kpg.bench.join_rules import InstalledJoin, attribute, epochs, insert_epochs, rule
from kpg.bench.run import Run
from kpg.opening import open as open_database

PEOPLE, POSTS, TUPLES = 2_000, 50, 10_000
BODY = (
    ("post_tag", "m t"),
    ("post_creator", "m p"),
    ("post_created", "m d"),
    ("person_place", "p c"),
    ("person_gender", "p g"),
    ("person_birthday", "p b"),
)
HEAD = "m t d c g b"
ORDERS = {"binary, from tags": BODY, "binary, from people": tuple(reversed(BODY))}


def run(run: Run) -> None:
    """Run each join on the same stream."""
    relations, expected = relations_of(run)
    totals: dict[str, float] = {}
    ways = [*((name, body, "binary") for name, body in ORDERS.items()), ("delta", BODY, "delta")]
    for name, body, way in [*ways, ("Hector", BODY, "hector")]:
        run.progress(name, len(totals), 4)
        with open_database() as db:
            joined = InstalledJoin(db, rule(body, HEAD), way)
            stopwatch = insert_epochs(joined, epochs(relations, run.size(TUPLES, least=100)))
            run.check(np.array_equal(joined.rows(), expected), name)
        run.latencies(name, stopwatch.seconds, total_s=stopwatch.total)
        totals[name] = stopwatch.total
    run.figure("hector_by_best_binary", totals["Hector"] / min(totals[name] for name in ORDERS))


def relations_of(run: Run) -> tuple[dict[str, Ints], Ints]:
    """Return the relations, and the expected answer by NumPy."""
    people, posts, tags = network_of(run)
    relations = {
        "post_tag": tags,
        "post_creator": attribute(posts["id"], posts["creator"]),
        "post_created": attribute(posts["id"], posts["created"]),
        "person_place": attribute(people["id"], people["place"]),
        "person_gender": attribute(people["id"], people["gender"]),
        "person_birthday": attribute(people["id"], people["birthday"]),
    }
    tags = tags[posts["creator"][tags[:, 0]] >= 0]
    post, tag = tags[:, 0], tags[:, 1]
    creator = posts["creator"][post]
    born = [people[name][creator] for name in ("place", "gender", "birthday")]
    rows = np.stack([post, tag, posts["created"][post], *born])
    return relations, rows[:, np.lexsort(rows[::-1])]


def network_of(run: Run) -> tuple[Columns, Columns, Ints]:
    """Return people, posts and tags, of the directory or generated. A creator who is not among the people is -1."""
    if run.data is not None:
        posts = {**ldbc.posts(run.data), "creator": ldbc.creators(run.data)}
        return ldbc.people(run.data), posts, ldbc.tags(run.data)
    social = network(run.size(PEOPLE, least=20), run.seed, posts=POSTS)
    return social.people, social.posts, social.tags


EXPERIMENT = Experiment(
    id="X27",
    title="3DF: an average query",
    paper="Optimising Distributed Dataflows in Interactive Environments, figure 8a",
    claim="On LDBC's BI/read/2 worst-case optimal joins take about as long as any order of binary joins.",
    size="2,000 people with 50 posts each, epochs of 10,000 tuples (the thesis: 10,000 people, 40M tuples)",
    printed=(PaperFigure("worst-case optimal and two orders", "about equal", THESIS_I5),),
    memory=lambda scale: int(1e9 * scale + 3e8),
    run=run,
    reads=directory_of(PEOPLE * (1 + 3 * POSTS), "person", "post", "post_hastag_tag"),
)
