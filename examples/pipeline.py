"""The main demo: files flow through Spark into standing queries, and a table shows their answers while they change.

    make demo                                      about a minute: start Spark and two workers, then stream for 40 s
    python examples/pipeline.py --seconds 60 --people 50000 --changes 2000

    files (who follows whom, written live)  →  Spark Structured Streaming  →  relation `follows` on workers in Spark
        →  three queries, installed during the stream, one of them recursive  →  this table

Each micro-batch is one transaction at one epoch, applied exactly once. At the end the demo compares the answers with a
computation from scratch.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from demo import QUERIES, Network, from_scratch  # noqa: E402 (beside this file, wherever it is started from)
from pipeline_screen import Screen, State  # noqa: E402
from standing import Standing  # noqa: E402

import kpg  # noqa: E402
from kpg.spark.java import ensure_java  # noqa: E402
from kpg.spark.small_session import light  # noqa: E402


class Feed:
    """A thread that writes a file of changes at intervals, each atomically, and records the time."""

    def __init__(self, network: Network, directory: Path, changes: int, pause: float) -> None:
        self.network = network
        self.directory = directory
        self.changes = changes
        self.pause = pause
        self.rows = 0  # written so far
        self.written: list[tuple[int, float]] = []  # total rows after each file, and the time
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="feed", daemon=True)

    def start(self) -> None:
        """Start writing."""
        self._thread.start()

    def stop(self) -> None:
        """Stop after the present file."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(self.pause):
            new, old = self.network.change(self.changes)
            rows = [(*pair, 1) for pair in new.tolist()] + [(*pair, -1) for pair in old.tolist()]
            self._write(rows)

    def _write(self, rows: list[tuple[int, ...]]) -> None:
        name = f"{len(self.written):06d}.json"
        named = [dict(zip(("follower", "followed", "change"), row, strict=True)) for row in rows]
        text = "".join(json.dumps(row) + "\n" for row in named)
        hidden = self.directory / f".{name}"
        hidden.write_text(text)
        hidden.rename(self.directory / name)
        self.rows += len(rows)
        self.written.append((self.rows, time.time()))


def run(db: Any, spark: Any, options: argparse.Namespace, place: Path, show: Screen) -> tuple[State, Network]:
    """Run the feed for a while, and install a query every fifth of the time."""
    network, state = Network(options.people, options.people * 6), State(options.seconds)
    schema = "follower long, followed long"
    with show.waiting("loading who follows whom as a DataFrame"):
        frame = spark.createDataFrame(kpg_table(network), schema)
        db.input("follows", follower=int, followed=int).arrange("follower")
        db.load("follows", frame)
        db["follows"].arrange("followed")
        db.input("watched", person=int).insert([(person,) for person in options.watched])
        db.advance()
    state.rows = len(network.now)
    source = place / "feed"
    source.mkdir()
    feed = Feed(network, source, options.changes, options.pause)
    with show.waiting("starting the stream: files to Spark to kpg"):
        stream = spark.readStream.schema(f"{schema}, change long").json(str(source))
        query = db.stream("follows", stream, diff="change", checkpoint=str(place / "checkpoint"))
        feed.start()
        while not any(batch.query for batch in db.service.published) and query.isActive:
            time.sleep(0.05)
    follow(db, query, feed, options, state, show)
    feed.stop()
    query.processAllAvailable()
    query.stop()
    state.follow(db, feed.written)
    return state, network


def follow(db: Any, query: Any, feed: Feed, options: argparse.Namespace, state: State, show: Screen) -> None:
    """Show the progress, and install the queries that are due."""
    waiting, start = dict(QUERIES), time.monotonic()
    while (elapsed := time.monotonic() - start) < options.seconds or waiting:
        if not query.isActive:
            raise SystemExit(f"the stream has ended: {query.exception()}")
        state.elapsed = elapsed
        if waiting and elapsed > options.seconds * (1 + len(state.queries)) / 5:
            name = next(iter(waiting))
            began = time.perf_counter()
            output = waiting.pop(name)(db).output(name)
            output.snapshot()
            state.queries[name] = Standing(output, db.epoch, 1000 * (time.perf_counter() - began))
            took = state.queries[name].first_answer_ms
            show.say(f"installed {name!r}: first answer after {took:,.1f} ms, no Spark job")
        state.follow(db, feed.written)
        show.update(db, state)
        time.sleep(0.2)
    state.elapsed = options.seconds


def kpg_table(network: Network) -> Any:
    """Return the follows as an Arrow table."""
    import pyarrow as pa

    return pa.table({"follower": network.now[:, 0], "followed": network.now[:, 1]})


def main(arguments: list[str] | None = None) -> None:
    """Run the demo, then check its answers."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=40, help="duration of the stream")
    parser.add_argument("--people", type=int, default=20_000, help="number of people; six follows each")
    parser.add_argument("--changes", type=int, default=400, help="rows in each file")
    parser.add_argument("--pause", type=float, default=0.5, help="seconds between files")
    parser.add_argument("--workers", type=int, default=2, help="number of workers inside Spark")
    parser.add_argument("--plain", action="store_true", help="print lines, even on a terminal")
    options = parser.parse_args(arguments)
    options.watched = [11, 222, 3333]
    show = Screen(options.plain or not sys.stdout.isatty())
    try:
        ensure_java()
    except kpg.KpgError as error:
        raise SystemExit(f"{error.what}. {error.hint}") from None
    with tempfile.TemporaryDirectory() as directory:
        with show.waiting("starting Spark: a JVM on this machine"):
            spark = light(f"local[{options.workers + 2}]", {"spark.driver.memory": "1g"})
        try:
            with show.waiting(f"starting {options.workers} workers inside Spark (the first run compiles kernels)"):
                db = kpg.open(spark=spark, workers=options.workers)
            with db, show:
                state, network = run(db, spark, options, Path(directory), show)
                expected = from_scratch(network.now, options.watched)
                right = {name: sorted(query.output.rows()) == expected[name] for name, query in state.queries.items()}
                show.finish(db, state, right)
        finally:
            spark.stop()
    if not all(right.values()):
        raise SystemExit("an answer differs from the one from scratch: this is a bug in kpg")


if __name__ == "__main__":
    main()
