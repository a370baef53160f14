"""S7: how long does it take a db on two workers to continue after one of them, holding half of 10M rows, is killed?

The clock runs from the kill until an advance that was requested right after it returns, with all answers complete.
Once the rows are in a checkpoint, once they are only in the log.
"""

from __future__ import annotations

import os
import signal
import tempfile
import time
from pathlib import Path

import kpg
from kpg.bench.experiment import at_most, engine_experiment
from kpg.bench.run import Run
from kpg.bench.workers.worker_shares import share_of_keys

STANDBY_SECONDS = 5.0  # for the standby process to start
REHEARSAL_STANDBY_SECONDS = 0.2  # recovery may start a process itself


def run(run: Run) -> None:
    """Measure recovery from a checkpoint, and from the log."""
    rows = run.size(10_000_000)
    for checkpoint in (False,) if run.kind == "rehearsal" else (True, False):  # a rehearsal cannot warm new processes
        with tempfile.TemporaryDirectory(prefix="kpg-s7-") as directory:
            seconds, groups = recover(run, Path(directory) / "db", rows, checkpoint)
        source = "from a checkpoint" if checkpoint else "from the log"
        limits = [at_most("seconds", 10)]
        run.report(f"recovery {source}", "at most 10 s", limits, seconds=seconds, rows=rows, groups=groups)


def recover(run: Run, directory: Path, rows: int, checkpoint: bool) -> tuple[float, int]:
    """Load, kill a worker, continue; return the seconds, and the number of groups before the kill."""
    options = {"rows": rows, "distinct": max(1, rows // 10)}
    with kpg.open(directory, workers=2, checkpoint_bytes=2**62) as db:
        relation = db.input("r", k=int)
        counts = relation.count("k").output("counts")
        relation.insert_made(share_of_keys, **options)
        db.advance()
        before = counts.snapshot().num_rows
        if checkpoint:
            db.checkpoint()
        time.sleep(REHEARSAL_STANDBY_SECONDS if run.kind == "rehearsal" else STANDBY_SECONDS)
        begin = time.perf_counter()
        os.kill(db.coordinator.members[1].pid, signal.SIGKILL)  # type: ignore[attr-defined]
        relation.insert([(-1,)])
        db.advance()
        seconds = time.perf_counter() - begin
        table = counts.snapshot()
        correct = table.num_rows == before + 1 and table["count"].to_numpy().sum() == rows + 1
        run.check(correct, "the counts after recovery")
    return seconds, before


EXPERIMENT = engine_experiment(
    "S7", "recovery of a killed worker", "10M rows on two workers", lambda scale: int(4e9 * scale + 8e8), run
)
