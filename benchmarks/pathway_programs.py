"""The same questions as Pathway programs, run in Pathway's own environment: one request in, one JSON result out.

Rows enter through Pathway's Python connector, as ours enter from Python: `next` or `delete` a row, `commit` a round,
then wait until the answer of that time is complete. The load of E1 is also read from a CSV file, which is Pathway's
quickest way in. Seconds are given both as CPU time of the process and as wall time.
"""

from __future__ import annotations

import json
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pathway as pw

from benchmarks import data

PATIENCE_SECONDS = 3600.0


class Stopwatch:
    """CPU and wall seconds of each round."""

    def __init__(self) -> None:
        self.cpu: list[float] = []
        self.wall: list[float] = []
        self.start()

    def start(self) -> None:
        self._cpu, self._wall = time.process_time(), time.perf_counter()

    def stop(self) -> None:
        self.cpu.append(time.process_time() - self._cpu)
        self.wall.append(time.perf_counter() - self._wall)


class Feed(pw.io.python.ConnectorSubject):
    """Plays rounds of rows into Pathway, each after the answer of the one before is complete."""

    def __init__(self, rounds: list[tuple[list[dict[str, int]], list[dict[str, int]]]]) -> None:
        super().__init__()
        self.rounds = rounds
        self.complete = threading.Event()
        self.watch = Stopwatch()

    def run(self) -> None:
        for inserts, removals in self.rounds:
            self.watch.start()
            for row in inserts:
                self.next(**row)
            for row in removals:
                self.delete(**row)
            self.commit()
            if not self.complete.wait(PATIENCE_SECONDS):
                raise TimeoutError("no answer")
            self.complete.clear()
            self.watch.stop()


class Row(pw.Schema):
    """A row of any of the relations; `side` says which."""

    row: int = pw.column_definition(primary_key=True)
    side: int
    k: int
    v: int


class Key(pw.Schema):
    """A key alone."""

    k: int


def play(feed: Feed, rows: pw.Table, answer: Callable[[pw.Table], pw.Table]) -> dict[str, Any]:
    """Run until all rounds are answered; seconds of each, and the answer as the sum of its changes."""
    present: dict[tuple[Any, ...], int] = {}

    def on_change(key: Any, row: dict[str, Any], time: int, is_addition: bool) -> None:
        found = tuple(row.values())
        present[found] = present.get(found, 0) + (1 if is_addition else -1)

    pw.io.subscribe(answer(rows), on_change, on_time_end=lambda time: feed.complete.set())
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)
    kept = sorted(found for found, count in present.items() if count)
    return {"cpu": feed.watch.cpu, "wall": feed.watch.wall, "rows": len(kept), "digest": int(np.sum(kept))}


def load_csv(rows: int, distinct: int) -> dict[str, Any]:
    """E1 from a file: how often each key is there."""
    with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
        np.savetxt(file, data.repeated_keys(rows, distinct), fmt="%d", header="k", comments="")
        file.flush()
        watch, total = Stopwatch(), [0, 0]

        def on_change(key: Any, row: dict[str, Any], time: int, is_addition: bool) -> None:
            sign = 1 if is_addition else -1
            total[0] += sign
            total[1] += sign * (row["k"] + row["n"])

        pw.io.subscribe(counts(pw.io.csv.read(file.name, schema=Key, mode="static")), on_change)
        pw.run(monitoring_level=pw.MonitoringLevel.NONE)
        watch.stop()
    return {"cpu": watch.cpu, "wall": watch.wall, "rows": total[0], "digest": total[1]}


def load_rows(rows: int, distinct: int) -> dict[str, Any]:
    """E1 through the Python connector."""
    keys = data.repeated_keys(rows, distinct).tolist()
    feed = Feed([([{"k": key} for key in keys], [])])
    return play(feed, pw.io.python.read(feed, schema=Key, autocommit_duration_ms=None), counts)


def rounds_of_keys(rows: int, distinct: int, changes: int, rounds: int) -> dict[str, Any]:
    """E2: the load is the first round."""
    keys = data.repeated_keys(rows, distinct)
    numbered = np.stack([np.arange(rows), keys], axis=1)
    fresh_keys = np.random.default_rng(7).integers(0, distinct, rounds * changes)
    fresh = np.stack([rows + np.arange(len(fresh_keys)), fresh_keys], axis=1)
    plan = data.churn(numbered, fresh, rounds, changes)
    played = [(as_rows(numbered), []), *[(as_rows(new), as_rows(old)) for new, old in plan]]
    return play_rows(played, counts)


def rounds_of_edges(nodes: int, edges: int, changes: int, rounds: int) -> dict[str, Any]:
    """E7: the load is the first round, with the root as a row of side 1."""
    rows = numbered_edges(data.digraph(nodes, edges), 0)
    fresh = numbered_edges(np.random.default_rng(8).integers(0, nodes, (rounds * changes, 2)), edges)
    plan = data.churn(rows, fresh, rounds, changes)
    root = {"row": -1, "side": 1, "k": 0, "v": 0}
    played = [([root, *as_rows(rows)], []), *[(as_rows(new), as_rows(old)) for new, old in plan]]
    return play_rows(played, reach)


def rounds_of_join(rows: int, changes: int, rounds: int) -> dict[str, Any]:
    """E8: the load of both sides is the first round."""
    played: list[tuple[list[dict[str, int]], list[dict[str, int]]]] = [([], []) for _ in range(rounds + 1)]
    for side in (0, 1):
        first = side * 10 * rows
        old = numbered_edges(data.keyed_rows(rows, rows, 20 + side), first)
        fresh = data.keyed_rows(rows, rows, 30 + side, first=rows)
        plan = data.churn(old, numbered_edges(fresh, first + rows), rounds, changes)
        for into, (new, gone) in zip(played, [(old, old[:0]), *plan], strict=True):
            into[0].extend(as_rows(new, side))
            into[1].extend(as_rows(gone, side))
    return play_rows(played, joined)


def numbered_edges(pairs: data.Ints, first: int) -> data.Ints:
    """Rows with a number of their own in front."""
    return np.concatenate([first + np.arange(len(pairs)).reshape(-1, 1), pairs], axis=1)


def as_rows(numbered: data.Ints, side: int = 0) -> list[dict[str, int]]:
    """Rows as the connector takes them: (row, k) or (row, k, v)."""
    values = np.pad(numbered, ((0, 0), (0, 3 - numbered.shape[1])))
    return [{"row": row, "side": side, "k": key, "v": value} for row, key, value in values.tolist()]


def play_rows(rounds: Any, answer: Callable[[pw.Table], pw.Table]) -> dict[str, Any]:
    """Play rounds of numbered rows."""
    feed = Feed(rounds)
    return play(feed, pw.io.python.read(feed, schema=Row, autocommit_duration_ms=None), answer)


def counts(table: pw.Table) -> pw.Table:
    return table.groupby(pw.this.k).reduce(pw.this.k, n=pw.reducers.count())


def joined(table: pw.Table) -> pw.Table:
    left, right = table.filter(pw.this.side == 0), table.filter(pw.this.side == 1)
    return left.join(right, left.k == right.k).select(left.k).reduce(n=pw.reducers.count())


def reach(table: pw.Table) -> pw.Table:
    edges = table.filter(pw.this.side == 0).select(src=pw.this.k, dst=pw.this.v)
    roots = table.filter(pw.this.side == 1).select(node=pw.this.k)

    def step(reached: pw.Table, edges: pw.Table) -> dict[str, pw.Table]:
        further = edges.join(reached, edges.src == reached.node).select(node=edges.dst)
        return {"reached": once(pw.Table.concat_reindex(reached, further))}

    return pw.iterate(step, reached=pw.iterate_universe(once(roots)), edges=edges).reached


def once(table: pw.Table) -> pw.Table:
    return table.groupby(pw.this.node).reduce(pw.this.node)


PROGRAMS = {
    program.__name__: program for program in (load_csv, load_rows, rounds_of_keys, rounds_of_edges, rounds_of_join)
}

if __name__ == "__main__":
    request = json.loads(sys.argv[1])
    result = PROGRAMS[request.pop("program")](**request)
    print(json.dumps({**result, "version": pw.__version__}))
