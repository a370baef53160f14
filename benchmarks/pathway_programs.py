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

MARK = 9
TICK_SECONDS = 0.05
Round = tuple[list[dict[str, int]], list[dict[str, int]]]  # rows to insert, rows to delete


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
    """Plays rounds of rows into Pathway, each after the answer of the one before is complete.

    A round ends with a mark, a row of its own side, which passes into the answer. The time at which Pathway shows the
    mark is the time of the round; the round is complete when the answer is complete at that time, and Pathway says so
    of no time at which the answer did not change. A loop's answer is not told to be complete before some later input
    comes, so while we wait we send further marks.
    """

    def __init__(self, rounds: list[Round]) -> None:
        super().__init__()
        self.rounds = rounds
        self.watch = Stopwatch()
        self.answer = Answer()
        self.time_of_mark: dict[int, int] = {}
        self.reached = -1
        self.moved = threading.Event()
        self._marks = 0

    def run(self) -> None:
        for inserts, removals in self.rounds:
            self.watch.start()
            for row in inserts:
                self.next(**row)
            for row in removals:
                self.delete(**row)
            self.wait_for(self.mark())
            self.watch.stop()

    def mark(self) -> int:
        """End a transaction; its number."""
        self._marks += 1
        self.next(row=-1 - self._marks, side=MARK, k=self._marks, v=0)
        self.commit()
        return self._marks

    def wait_for(self, mark: int) -> None:
        """Wait until the answer is complete at the time of a mark."""
        while mark not in self.time_of_mark or self.reached < self.time_of_mark[mark]:
            if not self.moved.wait(TICK_SECONDS):
                self.mark()
            self.moved.clear()

    def on_change(self, key: Any, row: dict[str, int], time: int, is_addition: bool) -> None:
        """Pathway shows a row of the answer, or a mark."""
        if row["mark"]:
            self.time_of_mark[row["mark"]] = time
            self.moved.set()
        else:
            self.answer.add(row, is_addition)

    def on_time_end(self, time: int) -> None:
        """The answer is complete at a time."""
        self.reached = max(self.reached, time)
        self.moved.set()


class Row(pw.Schema):
    """A row of any of the relations; `side` says which."""

    row: int = pw.column_definition(primary_key=True)
    side: int
    k: int
    v: int


class Key(pw.Schema):
    """A key alone."""

    k: int


class Answer:
    """Adds up the changes of an answer: how many rows, and the sum of their numbers."""

    def __init__(self) -> None:
        self.rows = 0
        self.digest = 0

    def on_change(self, key: Any, row: dict[str, int], time: int, is_addition: bool) -> None:
        self.add(row, is_addition)

    def add(self, row: dict[str, int], is_addition: bool) -> None:
        sign = 1 if is_addition else -1
        self.rows += sign
        self.digest += sign * sum(row.values())

    def result(self, watch: Stopwatch) -> dict[str, Any]:
        return {"cpu": watch.cpu, "wall": watch.wall, "rows": self.rows, "digest": self.digest}


def load_csv(rows: int, distinct: int) -> dict[str, Any]:
    """E1 from a file: how often each key is there."""
    with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
        np.savetxt(file, data.repeated_keys(rows, distinct), fmt="%d", header="k", comments="")
        file.flush()
        return load_keys(pw.io.csv.read(file.name, schema=Key, mode="static"))


def load_rows(rows: int, distinct: int) -> dict[str, Any]:
    """E1 through the Python connector."""
    keys = data.repeated_keys(rows, distinct).tolist()

    class Keys(pw.io.python.ConnectorSubject):
        deletions_enabled = False

        def run(self) -> None:
            for key in keys:
                self.next(k=key)

    return load_keys(pw.io.python.read(Keys(), schema=Key, autocommit_duration_ms=None))


def load_keys(table: pw.Table) -> dict[str, Any]:
    """Count keys that end."""
    answer, watch = Answer(), Stopwatch()
    pw.io.subscribe(counts(table), answer.on_change)
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)
    watch.stop()
    return answer.result(watch)


def rounds_of_keys(rows: int, distinct: int, changes: int, rounds: int) -> dict[str, Any]:
    """E2: the load is the first round."""
    keys = data.repeated_keys(rows, distinct)
    numbered = np.stack([np.arange(rows), keys], axis=1)
    fresh_keys = np.random.default_rng(7).integers(0, distinct, rounds * changes)
    fresh = np.stack([rows + np.arange(len(fresh_keys)), fresh_keys], axis=1)
    plan = data.churn(numbered, fresh, rounds, changes)
    played: list[Round] = [(as_rows(numbered), []), *[(as_rows(new), as_rows(old)) for new, old in plan]]
    return play(played, counts)


def rounds_of_edges(nodes: int, edges: int, changes: int, rounds: int) -> dict[str, Any]:
    """E7: the load is the first round, with the root as a row of side 1."""
    rows = numbered_edges(data.digraph(nodes, edges), 0)
    fresh = numbered_edges(np.random.default_rng(8).integers(0, nodes, (rounds * changes, 2)), edges)
    plan = data.churn(rows, fresh, rounds, changes)
    root = {"row": -1, "side": 1, "k": 0, "v": 0}
    played: list[Round] = [([root, *as_rows(rows)], []), *[(as_rows(new), as_rows(old)) for new, old in plan]]
    return play(played, reach)


def rounds_of_join(rows: int, changes: int, rounds: int) -> dict[str, Any]:
    """E8: the load of both sides is the first round."""
    played: list[Round] = [([], []) for _ in range(rounds + 1)]
    for side in (0, 1):
        first = side * 10 * rows
        old = numbered_edges(data.keyed_rows(rows, rows, 20 + side), first)
        fresh = data.keyed_rows(rows, rows, 30 + side, first=rows)
        plan = data.churn(old, numbered_edges(fresh, first + rows), rounds, changes)
        for into, (new, gone) in zip(played, [(old, old[:0]), *plan], strict=True):
            into[0].extend(as_rows(new, side))
            into[1].extend(as_rows(gone, side))
    return play(played, joined)


def numbered_edges(pairs: data.Ints, first: int) -> data.Ints:
    """Rows with a number of their own in front."""
    return np.concatenate([first + np.arange(len(pairs)).reshape(-1, 1), pairs], axis=1)


def as_rows(numbered: data.Ints, side: int = 0) -> list[dict[str, int]]:
    """Rows as the connector takes them: (row, k) or (row, k, v)."""
    values = np.pad(numbered, ((0, 0), (0, 3 - numbered.shape[1])))
    return [{"row": row, "side": side, "k": key, "v": value} for row, key, value in values.tolist()]


def play(rounds: list[Round], query: Callable[[pw.Table], pw.Table]) -> dict[str, Any]:
    """Play rounds of numbered rows until all are answered; seconds of each, and what the answer comes to."""
    feed = Feed(rounds)
    rows = pw.io.python.read(feed, schema=Row, autocommit_duration_ms=None)
    marks = rows.filter(pw.this.side == MARK).select(a=0, b=0, mark=pw.this.k)
    answer = query(rows.filter(pw.this.side != MARK)).concat_reindex(marks)
    pw.io.subscribe(answer, feed.on_change, on_time_end=feed.on_time_end)
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)
    return feed.answer.result(feed.watch)


def counts(table: pw.Table) -> pw.Table:
    return table.groupby(pw.this.k).reduce(a=pw.this.k, b=pw.reducers.count(), mark=0)


def joined(table: pw.Table) -> pw.Table:
    left, right = table.filter(pw.this.side == 0), table.filter(pw.this.side == 1)
    return left.join(right, left.k == right.k).select(left.k).reduce(a=0, b=pw.reducers.count(), mark=0)


def reach(table: pw.Table) -> pw.Table:
    edges = table.filter(pw.this.side == 0).select(src=pw.this.k, dst=pw.this.v)
    roots = table.filter(pw.this.side == 1).select(node=pw.this.k)

    def step(reached: pw.Table, edges: pw.Table) -> dict[str, pw.Table]:
        further = edges.join(reached, edges.src == reached.node).select(node=edges.dst)
        return {"reached": once(pw.Table.concat_reindex(reached, further))}

    reached = pw.iterate(step, reached=pw.iterate_universe(once(roots)), edges=edges).reached
    return reached.select(a=pw.this.node, b=0, mark=0)


def once(table: pw.Table) -> pw.Table:
    return table.groupby(pw.this.node).reduce(pw.this.node)


PROGRAMS = {
    program.__name__: program for program in (load_csv, load_rows, rounds_of_keys, rounds_of_edges, rounds_of_join)
}

if __name__ == "__main__":
    request = json.loads(sys.argv[1])
    result = PROGRAMS[request.pop("program")](**request)
    print(json.dumps({**result, "version": pw.__version__}))
