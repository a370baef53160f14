"""A driver that transacts on workers in Spark until it is killed.

    python driver.py <directory of the db>

It prints "ack n" when transaction n has returned. The rows of transaction n are a function of n alone, so the test that
opens the directory afterwards knows which transactions are there. A named reader follows an answer: it prints "read end
changes" when it has the changes before a time, and commits them after.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from typing import Any

import kpg
from kpg import col

Edge = tuple[int, int]
NODES = 12


def changes(n: int) -> tuple[list[Edge], list[Edge]]:
    """What transaction n inserts, and what it removes."""
    removed = [edge_of(n - 3)] if n % 4 == 3 else []
    return [edge_of(n), edge_of(n + 100)], removed


def edge_of(n: int) -> Edge:
    """Some edge of a small graph."""
    return (n * 7) % NODES, (n * n + 3) % NODES


def after(count: int) -> Counter[Edge]:
    """The edges after the first transactions."""
    edges: Counter[Edge] = Counter()
    for n in range(count):
        inserted, removed = changes(n)
        edges.update(inserted)
        edges.subtract(removed)
    return +edges


def reached(edges: Counter[Edge]) -> set[Edge]:
    """All pairs with a path."""
    pairs = set(edges)
    while True:
        more = pairs | {(a, d) for a, b in pairs for c, d in edges if b == c}
        if more == pairs:
            return pairs
        pairs = more


def install(db: Any) -> tuple[Any, Any]:
    """The relation, and the answer that is read."""
    edges = db.input("edges", src=int, dst=int)
    reach = edges.iterate(
        lambda seen: seen.join(edges, on={"dst": "src"}).select("src", dst=col("dst_right")).concat(edges).distinct()
    )
    return edges, reach.output("reach")


def transact(db: Any, edges: Any, n: int) -> None:
    """Transaction n."""
    inserted, removed = changes(n)

    def fill(_: Any) -> None:
        edges.insert(inserted)
        edges.remove(removed)

    db.transact(fill, origin=("driver", n))


def read_on(reader: Any, begin: int) -> tuple[int, list[tuple[Edge, int]]]:
    """What has changed from a time on: up to where, and the changes. The caller commits."""
    from pyspark.sql.streaming.datasource import ReadAllAvailable

    start = {"time": begin}
    end = reader.latestOffset(start, ReadAllAvailable())
    batches = [batch for part in reader.partitions(start, end) for batch in reader.read(part)]
    rows = [row for batch in batches for row in batch.to_pylist()]
    return end["time"], [((row["src"], row["dst"]), row["_diff"]) for row in rows]


def reader_of(db: Any) -> Any:
    """The named reader, as Spark makes it for a stream."""
    from kpg.spark.data_source import source_class
    from kpg.spark.stream_reader import StreamReader

    return StreamReader(source_class(db.site)({"relation": "reach", "changes": "true", "name": "archiver"}))


def say(text: str) -> None:
    """Write a line to the test."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main(directory: str) -> None:
    """Transact until killed."""
    from kpg.spark.small_session import light

    db: Any = kpg.open(directory, spark=light("local[3]"), workers=2, checkpoint_bytes=4000)
    edges, reach = install(db)
    reader, n = reader_of(db), 0
    begin = reader.initialOffset()["time"]
    while True:
        transact(db, edges, n)
        say(f"ack {n}")
        n += 1
        if n % 9 == 0:
            begin, changes = read_on(reader, begin)
            say(f"read {begin} {json.dumps(changes)}")
            reader.commit({"time": begin})


if __name__ == "__main__":
    main(*sys.argv[1:])
