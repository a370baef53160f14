"""S7: how long until a db on two workers goes on after one of them, holding half of 10M rows, is killed?

The clock runs from the kill until an advance that was asked for right after it returns, with all answers complete.
Once the rows are in a checkpoint, once they are only in the log.
"""

from __future__ import annotations

import os
import signal
import tempfile
import time
from pathlib import Path

import kpg
from benchmarks import shards
from benchmarks.lines import Run, at_most


def run(run: Run) -> None:
    """From a checkpoint, and from the log."""
    rows = run.size(10_000_000)
    for checkpoint in (True, False):
        with tempfile.TemporaryDirectory(prefix="kpg-s7-") as place:
            seconds, groups = recover(Path(place) / "db", rows, checkpoint)
        where = "from a checkpoint" if checkpoint else "from the log"
        bar = [at_most("seconds", 10)]
        run.report(f"recovery {where}", "at most 10 s", bar, seconds=seconds, rows=rows, groups=groups)


def recover(place: Path, rows: int, checkpoint: bool) -> tuple[float, int]:
    """Load, kill, go on; the seconds, and how many groups the answer had before and after."""
    options = {"rows": rows, "distinct": rows // 10}
    with kpg.open(place, workers=2, checkpoint_bytes=2**62) as db:
        relation = db.input("r", k=int)
        counts = relation.count("k").output("counts")
        relation.insert_made(shards.keys, **options)
        db.advance()
        before = counts.snapshot().num_rows
        if checkpoint:
            db.checkpoint()
        time.sleep(5)  # for the process that waits to take over
        begin = time.perf_counter()
        os.kill(db.coordinator.members[1].pid, signal.SIGKILL)  # type: ignore[attr-defined]
        relation.insert([(-1,)])
        db.advance()
        seconds = time.perf_counter() - begin
        assert counts.snapshot().num_rows == before + 1
    return seconds, before
