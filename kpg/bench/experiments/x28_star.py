"""X28: the best case for joins two at a time: four attributes that each post has once, arriving ten thousand at a
time.
"""

from __future__ import annotations

import numpy as np

from kpg.bench.data import ldbc
from kpg.bench.data.social import posts_of
from kpg.bench.experiment import THESIS_I5, Experiment, Printed
from kpg.bench.experiment import ldbc as directory_of
from kpg.bench.joins import Joined, attribute, epochs, rule, stream
from kpg.bench.run import Run
from kpg.opening import open as open_database

POSTS, TUPLES = 250_000, 10_000
ATTRIBUTES = ("ip", "browser", "language", "content")
WAYS = {"two at a time": "binary", "delta": "delta", "Hector": "hector"}


def run(run: Run) -> None:
    """Each way on the same stream."""
    made = ldbc.posts(run.data) if run.data is not None else None
    posts = made or posts_of(np.random.default_rng(run.seed), 1_000, run.size(POSTS, least=100))
    relations = {name: attribute(posts["id"], posts[name]) for name in ATTRIBUTES}
    star = rule([(name, f"p v{each}") for each, name in enumerate(ATTRIBUTES)], "p v0 v1 v2 v3")
    totals: dict[str, float] = {}
    for name, way in WAYS.items():
        run.say(name, len(totals), len(WAYS))
        with open_database() as db:
            joined = Joined(db, star, way)
            clock = stream(joined, epochs(relations, run.size(TUPLES, least=100)))
            expected = np.stack([posts["id"], *[posts[each] for each in ATTRIBUTES]])
            run.check(np.array_equal(joined.rows(), expected), name)
        run.latencies(name, clock.seconds, total_s=clock.total)
        totals[name] = clock.total
    run.figure("hector_by_two_at_a_time", totals["Hector"] / totals["two at a time"])


EXPERIMENT = Experiment(
    id="X28",
    title="3DF: the best case for joins two at a time",
    paper="Optimising Distributed Dataflows in Interactive Environments, figure 8b",
    claim="On a star of attributes that are there once, worst-case optimal joins take ten times as long.",
    size="250,000 posts with four attributes, epochs of 10,000 tuples (--scale 4 is the thesis's)",
    printed=(Printed("worst-case optimal against two at a time", "10 times slower", THESIS_I5),),
    memory=lambda scale: int(1e9 * scale + 3e8),
    run=run,
    reads=directory_of(POSTS, "post"),
)
