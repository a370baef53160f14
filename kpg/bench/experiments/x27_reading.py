"""X27: a query of LDBC's business intelligence (BI/read/2), its tuples arriving ten thousand at a time.

Posts with their tags, creators, and where, when and as what those were born: five joins, none of them a cycle. Each
way gives all rows, from which the query's counts by tag, country, gender and month follow.
"""

from __future__ import annotations

import numpy as np

from kpg.bench.data import ldbc
from kpg.bench.data.graphs import Ints
from kpg.bench.data.social import Columns, network
from kpg.bench.experiment import THESIS_I5, Experiment, Printed
from kpg.bench.experiment import ldbc as directory_of
from kpg.bench.joins import Joined, attribute, epochs, rule, stream
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
ORDERS = {"two at a time, from tags": BODY, "two at a time, from people": tuple(reversed(BODY))}


def run(run: Run) -> None:
    """Each way on the same stream."""
    relations, expected = made(run)
    medians: dict[str, float] = {}
    ways = [*((name, body, "binary") for name, body in ORDERS.items()), ("delta", BODY, "delta")]
    for name, body, way in [*ways, ("Hector", BODY, "hector")]:
        run.say(name, len(medians), 4)
        with open_database() as db:
            joined = Joined(db, rule(body, HEAD), way)
            clock = stream(joined, epochs(relations, run.size(TUPLES, least=100)))
            run.check(np.array_equal(joined.rows(), expected), name)
        run.latencies(name, clock.seconds, total_s=clock.total)
        medians[name] = clock.total
    run.figure("hector_by_best_binary", medians["Hector"] / min(medians[name] for name in ORDERS))


def made(run: Run) -> tuple[dict[str, Ints], Ints]:
    """The relations, and the answer by NumPy: every part is found by its number."""
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
    """People, posts and tags, of a directory or from the seed; whoever is not among the people created nothing."""
    if run.data is not None:
        posts = {**ldbc.posts(run.data), "creator": ldbc.creators(run.data)}
        return ldbc.people(run.data), posts, ldbc.tags(run.data)
    social = network(run.size(PEOPLE, least=20), run.seed, posts=POSTS)
    return social.people, social.posts, social.tags


EXPERIMENT = Experiment(
    id="X27",
    title="3DF: an average query",
    paper="Optimising Distributed Dataflows in Interactive Environments, figure 8a",
    claim="On LDBC's BI/read/2 worst-case optimal joins take about as long as any order of two at a time.",
    size="2,000 people with 50 posts each, epochs of 10,000 tuples (the thesis: 10,000 people, 40M tuples)",
    printed=(Printed("worst-case optimal and two orders", "about equal", THESIS_I5),),
    memory=lambda scale: int(1e9 * scale + 3e8),
    run=run,
    reads=directory_of(PEOPLE * (1 + 3 * POSTS), "person", "post", "post_hastag_tag"),
)
