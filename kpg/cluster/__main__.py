"""A rank as a process of its own: `python -m kpg.cluster`, started by `kpg.cluster.local_launcher`.

With --spare it first waits a little, and then does some work of its own, so that all code is loaded when it is needed
in a hurry.
"""

import select
import sys

LET_OTHERS_START = 3.0  # seconds, unless the spare is needed before


def rehearse() -> None:
    """Run what most queries are made of, on a few rows."""
    from kpg.api.embedded_database import EmbeddedDatabase
    from kpg.columns.functions import col
    from kpg.config import Config

    with EmbeddedDatabase(Config()) as db:
        edges = db.input("edges", src=int, dst=int, name=str)
        pairs = edges.select("src", "dst")
        hop = pairs.iterate(
            lambda far: far.join(pairs, on={"dst": "src"}).select("src", dst=col("dst_right")).concat(pairs).distinct()
        )
        answers = [hop.output(), edges.count("name").output(), edges.group_by("src").min("dst").output()]
        for row in ((1, 2, "a"), (2, 3, "b"), (3, 1, "a")):
            edges.insert([row])
            db.advance()
            for answer in answers:
                answer.rows()
        db.idle()


if __name__ == "__main__":
    if "--spare" in sys.argv and not select.select([sys.stdin], [], [], LET_OTHERS_START)[0]:
        rehearse()
    from kpg.cluster.rank import main

    main()
