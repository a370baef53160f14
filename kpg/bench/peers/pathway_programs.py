"""The questions of E1, E2, E7 and E8 as Pathway programs, run in Pathway's own environment.

    python -P pathway_programs.py PROGRAM ROWS.npz      prints one JSON result

Loads enter as columns, as a pandas frame (`load_columns`, `load_graph_columns`,
`load_join_columns`). E1 also reads them from a CSV file and through the Python connector. Rounds of changes enter
through the Python connector, which accepts rows only: `next` or `delete` a row, `commit` the round, then wait until the
answer is complete at that time. Seconds are CPU time of the process and wall time.

This file imports nothing of kpg: its environment has Pathway, NumPy and pandas.
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

MARKER_SIDE = 9  # the side of a row that ends a round
MARKER_INTERVAL_SECONDS = 0.05  # between two markers while an answer is incomplete
Arrays = dict[str, Any]  # NumPy arrays by name
Round = tuple[list[dict[str, int]], list[dict[str, int]]]  # rows to insert, rows to delete
Query = Callable[[Any], Any]  # from a Pathway table to a Pathway table


class RoundTimer:
    """CPU and wall seconds of each round."""

    def __init__(self) -> None:
        self.cpu: list[float] = []
        self.wall: list[float] = []
        self.start()

    def start(self) -> None:
        """Begin a round."""
        self._cpu, self._wall = time.process_time(), time.perf_counter()

    def stop(self) -> None:
        """End the round."""
        self.cpu.append(time.process_time() - self._cpu)
        self.wall.append(time.perf_counter() - self._wall)


class AnswerSum:
    """The sum of an answer's changes: its row count, and the sum of its numbers."""

    def __init__(self) -> None:
        self.rows = 0
        self.digest = 0

    def on_change(self, key: Any, row: dict[str, int], time: int, is_addition: bool) -> None:
        """Receive a change from Pathway."""
        sign = 1 if is_addition else -1
        self.rows += sign
        self.digest += sign * sum(row.values())

    def result(self, timer: RoundTimer) -> dict[str, Any]:
        """Return the sums with the seconds of the rounds."""
        return {"cpu": timer.cpu, "wall": timer.wall, "rows": self.rows, "digest": self.digest}


class RoundFeed:
    """Feeds rounds of rows into Pathway, each after the answer of the one before is complete.

    A round ends with a marker, a row of its own side that passes into the answer. The time at which Pathway shows the
    marker is the time of the round; the round is complete when the answer is complete at that time. Pathway does not
    announce times at which the answer did not change, and announces the answer of a loop only when later input
    arrives. So the feed sends further markers while it waits.
    """

    def __init__(self, rounds: list[Round]) -> None:
        self.rounds = rounds
        self.timer = RoundTimer()
        self.answer = AnswerSum()
        self.time_of_marker: dict[int, int] = {}
        self.complete_time = -1
        self.progressed = threading.Event()
        self._markers = 0

    def send_marker(self, subject: Any) -> int:
        """End a transaction and return the number of its marker."""
        self._markers += 1
        subject.next(row=-1 - self._markers, side=MARKER_SIDE, k=self._markers, v=0)
        subject.commit()
        return self._markers

    def wait_for(self, marker: int, subject: Any) -> None:
        """Wait until the answer is complete at the time of a marker."""
        while marker not in self.time_of_marker or self.complete_time < self.time_of_marker[marker]:
            if not self.progressed.wait(MARKER_INTERVAL_SECONDS):
                self.send_marker(subject)
            self.progressed.clear()

    def on_change(self, key: Any, row: dict[str, int], time: int, is_addition: bool) -> None:
        """Receive a row of the answer, or a marker, from Pathway."""
        if row["marker"]:
            self.time_of_marker[row["marker"]] = time
            self.progressed.set()
        else:
            self.answer.on_change(key, row, time, is_addition)

    def on_time_end(self, time: int) -> None:
        """Receive that the answer is complete at a time."""
        self.complete_time = max(self.complete_time, time)
        self.progressed.set()


# Loads


def load_columns(rows: Arrays) -> dict[str, Any]:
    """Count keys that enter as a column (E1)."""
    return load_frame({"k": rows["keys"]}, counts)


def load_csv(rows: Arrays) -> dict[str, Any]:
    """Count keys from a CSV file (E1)."""
    import pathway as pw

    with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
        np.savetxt(file, rows["keys"], fmt="%d", header="k", comments="")
        file.flush()
        schema = pw.schema_from_types(k=int)
        return load(lambda: counts(pw.io.csv.read(file.name, schema=schema, mode="static")))


def load_rows(rows: Arrays) -> dict[str, Any]:
    """Count keys through the Python connector (E1)."""
    import pathway as pw

    keys = rows["keys"].tolist()

    class Keys(pw.io.python.ConnectorSubject):  # type: ignore[misc, name-defined, unused-ignore]
        deletions_enabled = False

        def run(self) -> None:
            for key in keys:
                self.next(k=key)

    schema = pw.schema_from_types(k=int)
    return load(lambda: counts(pw.io.python.read(Keys(), schema=schema, autocommit_duration_ms=None)))


def load_graph_columns(rows: Arrays) -> dict[str, Any]:
    """Find what node 0 reaches, from edges that enter as columns (E7)."""
    edges = rows["edges"]
    side = np.concatenate([np.zeros(len(edges), np.int64), [1]])
    pairs = np.concatenate([edges, [[0, 0]]])
    return load_frame({"side": side, "k": pairs[:, 0], "v": pairs[:, 1]}, reach)


def load_join_columns(rows: Arrays) -> dict[str, Any]:
    """Count the pairs of two relations that enter as columns (E8)."""
    sides = [rows["left"], rows["right"]]
    side = np.concatenate([np.full(len(pairs), number, np.int64) for number, pairs in enumerate(sides)])
    pairs = np.concatenate(sides)
    return load_frame({"side": side, "k": pairs[:, 0], "v": pairs[:, 1]}, joined)


def load_frame(columns: Arrays, query: Query) -> dict[str, Any]:
    """Answer a query on a pandas frame."""
    import pandas as pd
    import pathway as pw

    frame = pd.DataFrame(columns)
    return load(lambda: query(pw.debug.table_from_pandas(frame)))


def load(query: Callable[[], Any]) -> dict[str, Any]:
    """Run a query on an input that ends. The clock runs from giving Pathway the input until the answer is complete."""
    import pathway as pw

    answer, timer = AnswerSum(), RoundTimer()
    pw.io.subscribe(query(), answer.on_change)
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)
    timer.stop()
    return answer.result(timer)


# Rounds


def rounds_of_keys(rows: Arrays) -> dict[str, Any]:
    """Count keys in rounds (E2); the load is the first round. Rows are (number, key)."""
    return play(rounds_from(rows["rows"], rows["inserts"], rows["removals"]), counts)


def rounds_of_edges(rows: Arrays) -> dict[str, Any]:
    """Find what the root, a row of side 1, reaches in rounds (E7). Rows are (number, source, target)."""
    rounds = rounds_from(rows["rows"], rows["inserts"], rows["removals"])
    rounds[0][0].append({"row": -1, "side": 1, "k": 0, "v": 0})
    return play(rounds, reach)


def rounds_of_join(rows: Arrays) -> dict[str, Any]:
    """Count pairs in rounds (E8); the load of both sides is the first. Rows are (number, key, value)."""
    left = rounds_from(rows["left"], rows["left_inserts"], rows["left_removals"], 0)
    right = rounds_from(rows["right"], rows["right_inserts"], rows["right_removals"], 1)
    both = zip(left, right, strict=True)
    return play([(one[0] + other[0], one[1] + other[1]) for one, other in both], joined)


def rounds_from(rows: Any, inserts: Any, removals: Any, side: int = 0) -> list[Round]:
    """Return the load and the rounds after it; `inserts` and `removals` are int64[rounds, n, columns]."""
    changes = zip(inserts, removals, strict=True)
    return [(as_rows(rows, side), []), *[(as_rows(new, side), as_rows(old, side)) for new, old in changes]]


def as_rows(numbered: Any, side: int) -> list[dict[str, int]]:
    """Return rows as the connector accepts them: (row, k) or (row, k, v)."""
    values = np.pad(numbered, ((0, 0), (0, 3 - numbered.shape[1])))
    return [{"row": row, "side": side, "k": key, "v": value} for row, key, value in values.tolist()]


def play(rounds: list[Round], query: Query) -> dict[str, Any]:
    """Feed rounds until all are answered; return the seconds of each, and the final answer."""
    import pathway as pw

    feed = RoundFeed(rounds)

    class Subject(pw.io.python.ConnectorSubject):  # type: ignore[misc, name-defined, unused-ignore]
        def run(self) -> None:
            # Pathway reads the source of this method: deletions are only allowed if `self.delete` occurs in it.
            for inserts, removals in feed.rounds:
                feed.timer.start()
                for row in inserts:
                    self.next(**row)
                for row in removals:
                    self.delete(**row)
                feed.wait_for(feed.send_marker(self), self)
                feed.timer.stop()

    columns = {name: pw.column_definition(dtype=int, primary_key=name == "row") for name in ("row", "side", "k", "v")}
    table = pw.io.python.read(Subject(), schema=pw.schema_builder(columns=columns), autocommit_duration_ms=None)
    markers = table.filter(pw.this.side == MARKER_SIDE).select(a=0, b=0, marker=pw.this.k)
    answer = query(table.filter(pw.this.side != MARKER_SIDE)).concat_reindex(markers)
    pw.io.subscribe(answer, feed.on_change, on_time_end=feed.on_time_end)
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)
    return feed.answer.result(feed.timer)


# Queries


def counts(table: Any) -> Any:
    """Count each key."""
    import pathway as pw

    return table.groupby(pw.this.k).reduce(a=pw.this.k, b=pw.reducers.count(), marker=0)


def joined(table: Any) -> Any:
    """Count the pairs of both sides with equal keys."""
    import pathway as pw

    left, right = table.filter(pw.this.side == 0), table.filter(pw.this.side == 1)
    return left.join(right, left.k == right.k).select(left.k).reduce(a=0, b=pw.reducers.count(), marker=0)


def reach(table: Any) -> Any:
    """Find the nodes that the roots reach."""
    import pathway as pw

    edges = table.filter(pw.this.side == 0).select(src=pw.this.k, dst=pw.this.v)
    roots = table.filter(pw.this.side == 1).select(node=pw.this.k)

    def step(reached: Any, edges: Any) -> dict[str, Any]:
        further = edges.join(reached, edges.src == reached.node).select(node=edges.dst)
        return {"reached": once(pw.Table.concat_reindex(reached, further))}

    reached = pw.iterate(step, reached=pw.iterate_universe(once(roots)), edges=edges).reached
    return reached.select(a=pw.this.node, b=0, marker=0)


def once(table: Any) -> Any:
    """Remove duplicate nodes."""
    import pathway as pw

    return table.groupby(pw.this.node).reduce(pw.this.node)


PROGRAMS = {
    program.__name__: program
    for program in (
        load_columns,
        load_csv,
        load_rows,
        load_graph_columns,
        load_join_columns,
        rounds_of_keys,
        rounds_of_edges,
        rounds_of_join,
    )
}


def main(program: str, path: str) -> str:
    """Run one program on the arrays of a file; return its result as JSON."""
    import pathway as pw

    with np.load(path) as arrays:
        result = PROGRAMS[program](dict(arrays))
    return json.dumps({**result, "version": pw.__version__})


if __name__ == "__main__":
    sys.stdout.write(main(*sys.argv[1:]) + "\n")
