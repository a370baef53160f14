"""X28: how much slower are worst-case optimal joins in the best case of binary joins, a star of unique attributes?

Each post has four attributes once; ten thousand tuples arrive at a time.
"""

from __future__ import annotations

import numpy as np

from kpg.bench.data import ldbc
from kpg.bench.data.social_network import posts_of
from kpg.bench.experiment import THESIS_I5, Experiment, PaperFigure
from kpg.bench.experiment import ldbc as directory_of
from kpg.bench.join_rules import InstalledJoin, attribute, epochs, insert_epochs, rule
from kpg.bench.run import Run
from kpg.opening import open as open_database

POSTS, TUPLES = 250_000, 10_000
ATTRIBUTES = ("ip", "browser", "language", "content")
WAYS = {"binary joins": "binary", "delta": "delta", "Hector": "hector"}


def run(run: Run) -> None:
    """Run each join on the same stream."""
    file_posts = ldbc.posts(run.data) if run.data is not None else None
    posts = file_posts or posts_of(np.random.default_rng(run.seed), 1_000, run.size(POSTS, least=100))
    relations = {name: attribute(posts["id"], posts[name]) for name in ATTRIBUTES}
    star = rule([(name, f"p v{number}") for number, name in enumerate(ATTRIBUTES)], "p v0 v1 v2 v3")
    totals: dict[str, float] = {}
    for name, way in WAYS.items():
        run.progress(name, len(totals), len(WAYS))
        with open_database() as db:
            joined = InstalledJoin(db, star, way)
            stopwatch = insert_epochs(joined, epochs(relations, run.size(TUPLES, least=100)))
            expected = np.stack([posts["id"], *[posts[name] for name in ATTRIBUTES]])
            run.check(np.array_equal(joined.rows(), expected), name)
        run.latencies(name, stopwatch.seconds, total_s=stopwatch.total)
        totals[name] = stopwatch.total
    run.figure("hector_by_two_at_a_time", totals["Hector"] / totals["binary joins"])


EXPERIMENT = Experiment(
    id="X28",
    title="3DF: the best case for binary joins",
    paper="Optimising Distributed Dataflows in Interactive Environments, figure 8b",
    claim="On a star of unique attributes, worst-case optimal joins take ten times as long.",
    size="250,000 posts with four attributes, epochs of 10,000 tuples (--scale 4 is the thesis's)",
    printed=(PaperFigure("worst-case optimal against binary joins", "10 times slower", THESIS_I5),),
    memory=lambda scale: int(1e9 * scale + 3e8),
    run=run,
    reads=directory_of(POSTS, "post"),
)
