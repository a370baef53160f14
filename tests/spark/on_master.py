"""A whole life of a db on some master, in a process of its own.

    python on_master.py <master> <directory> [stop | executor]

Opens two workers on a directory, loads, kills a worker, reads, loads more, closes; prints what it saw as JSON. With
`stop` the db is closed only after Spark was stopped, with `executor` it is an executor that is killed.
"""

import contextlib
import json
import os
import signal
import sys
import time

import psutil

import kpg
from kpg.spark.small_session import light


def main(master: str, directory: str, how: str = "") -> dict[str, object]:
    spark = light(master, {"spark.executor.memory": "512m", "spark.executor.cores": "2"})
    seen: dict[str, object] = {}
    db = kpg.open(directory, spark=spark, workers=2)
    with contextlib.nullcontext(db) if how == "stop" else db:
        pids = [db.coordinator.members[rank].pid for rank in range(2)]
        seen["parents"] = len({psutil.Process(pid).parent().ppid() for pid in pids})
        db.load("numbers", spark.range(1000).selectExpr("id % 10 AS k", "id AS v"))
        counts = db["numbers"].group_by("k").count().output("counts")
        seen["before"] = counts.rows()
        victim = psutil.Process(pids[1])
        while how == "executor" and victim.name() != "java":  # the worker, its daemon, the executor
            victim = victim.parent()
        os.kill(victim.pid, signal.SIGKILL)
        began = time.monotonic()
        seen["after"] = counts.rows()
        seen["recovered"] = time.monotonic() - began
        pids += [db.coordinator.members[rank].pid for rank in range(2)]
        db.load("numbers", spark.range(10).selectExpr("id AS k", "id AS v"))
        seen["later"] = sorted(tuple(row) for row in counts.to_spark().collect())
    spark.stop()
    db.close()
    seen["left"] = left(pids)
    return seen


def left(pids: list[int]) -> list[int]:
    """Which processes are still there after a while."""
    there = []
    for pid in pids:
        with contextlib.suppress(psutil.NoSuchProcess):
            there.append(psutil.Process(pid))
    return [process.pid for process in psutil.wait_procs(there, timeout=60)[1]]


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(*sys.argv[1:])) + "\n")
