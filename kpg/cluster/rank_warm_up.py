"""Queries that a starter of ranks runs while it waits, so that the ranks it forks later have all code loaded."""

from __future__ import annotations


def warm_up() -> None:
    """Run the operators of most queries on a few rows."""
    from kpg.api.embedded_database import EmbeddedDatabase
    from kpg.columns.functions import col
    from kpg.config import Config

    with EmbeddedDatabase(Config()) as db:
        edges = db.input("edges", src=int, dst=int, name=str)
        pairs = edges.select("src", "dst")
        hop = pairs.iterate(
            lambda far: far.join(pairs, on={"dst": "src"}).select("src", dst=col("dst_right")).concat(pairs).distinct()
        )
        outputs = [hop.output(), edges.count("name").output(), edges.group_by("src").min("dst").output()]
        for row in ((1, 2, "a"), (2, 3, "b"), (3, 1, "a")):
            edges.insert([row])
            db.advance()
            for output in outputs:
                output.rows()
        db.idle()
