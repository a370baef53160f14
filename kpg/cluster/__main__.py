"""A rank as a process of its own: `python -m kpg.cluster`, started by `kpg.cluster.local_launcher`.

With --spare it waits until it is needed to replace a lost rank. Meanwhile it runs some queries of its own, so that all
code is loaded by then.
"""

import select
import sys

WARM_UP_DELAY_SECONDS = 3.0  # the ranks that start at the same time need the cores first


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


if __name__ == "__main__":
    if "--spare" in sys.argv and not select.select([sys.stdin], [], [], WARM_UP_DELAY_SECONDS)[0]:
        warm_up()
    from kpg.cluster.rank import main

    main()
