"""A `kpg serve` process on this machine, and a client that measures its latency.

    with served("--max-memory", "4000000000") as url:
        with kpg.connect(url) as db: ...

The server has no token, so every client is an admin and may raise limits. It ends with the block.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import kpg
from kpg.bench.run import Run

END_SECONDS = 30.0  # for the server to end in order
CHANGE_SECONDS = 120.0  # that a client waits for a change before the experiment fails
PAUSE_SECONDS = 0.003  # between two inserts: a client that waits for its change, and then for its user
GROUPS = 10  # of the rows that the client inserts

RULES = "readings_by_group(group, n) :- reading(group, _), n = count : {reading(group, _)}."


@contextmanager
def served(*options: str) -> Iterator[str]:
    """Start a server with some options; return its URL."""
    command = [sys.executable, "-m", "kpg.cli", "serve", "--no-token", "--port", "0", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().split()[-1]
        finally:
            process.terminate()
            try:
                process.wait(END_SECONDS)
            finally:
                process.kill()


class MeasuringClient:
    """A client that inserts rows, one at a time, and waits for the change of an answer that counts them."""

    def __init__(self, db: kpg.client.connection.Connection) -> None:
        self._db = db
        self._rows = 0
        db.create_relation("reading", {"group": int, "at": int})
        db.register(RULES)
        self._answer = db.interest("readings_by_group")
        self._answer.next(CHANGE_SECONDS)

    def latencies(self, rounds: int) -> list[float]:
        """Return the seconds from each of some inserts to its change."""
        return [self._latency() for _ in range(rounds)]

    def _latency(self) -> float:
        time.sleep(PAUSE_SECONDS)
        began = time.perf_counter()
        self._db.insert("reading", [(self._rows % GROUPS, self._rows)])
        self._answer.next(CHANGE_SECONDS)
        self._rows += 1
        return time.perf_counter() - began

    def check(self, run: Run) -> None:
        """Check that the answer counts every row once."""
        counts = {group: len(range(group, self._rows, GROUPS)) for group in range(min(GROUPS, self._rows))}
        run.check(sorted(self._answer.rows()) == sorted(counts.items()), "the answer of the measuring client")
