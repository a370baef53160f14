"""Ranks as residents of Spark: one ordinary job of one task for each, submitted from a thread of its own.

A job of its own, not a barrier stage: when one is lost, the others stay, and it is submitted again as often as needed.
Each has a job group, so that one can be cancelled; Spark's own retries of a task are refused, since a rank that comes
twice with one token would be a ghost: only the coordinator starts a rank again, with a new token.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from kpg.spark.spark_session import on_this_machine
from kpg.version import __version__

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GRACE = 10.0  # seconds to end by themselves


class SparkResidents:
    """Starts each rank as a job of a Spark session."""

    patience = 120.0

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._jobs: dict[int, Resident] = {}
        self._started = 0

    def start(self, rank: int, bootstrap: dict[str, Any]) -> None:
        """Bring a rank up, in place of whatever it was before: that holds an old token, so need not be gone yet."""
        before = self._jobs.pop(rank, None)
        if before is not None:
            before.cancel()
        if on_this_machine(self._spark.sparkContext):
            bootstrap = {**bootstrap, "path": sys.path}  # the same files are there
        self._started += 1
        self._jobs[rank] = Resident(self._spark, f"kpg-{id(self):x}-{rank}-{self._started}", bootstrap)

    def fate(self, rank: int) -> str | None:
        """How a rank ended, if it has."""
        job = self._jobs.get(rank)
        return job.fate if job is not None else None

    def stop(self) -> None:
        """End all ranks; returns when they are gone."""
        end = time.monotonic() + GRACE
        for rank in tuple(self._jobs):
            self._jobs.pop(rank).end(max(0.0, end - time.monotonic()))


class Resident:
    """The job of one rank."""

    def __init__(self, spark: SparkSession, group: str, bootstrap: dict[str, Any]) -> None:
        from pyspark import InheritableThread

        self.group = group
        self.fate: str | None = None
        self._context = spark.sparkContext
        self._body = resident(bootstrap, __version__)
        self._rank = bootstrap["rank"]
        self._over = threading.Event()
        self._thread = InheritableThread(target=self._run, session=spark, name=f"kpg resident {self._rank}")
        self._thread.daemon = True
        self._thread.start()

    def _run(self) -> None:
        try:
            self._context.setJobGroup(self.group, f"kpg worker {self._rank}", interruptOnCancel=True)
            self._context.setLocalProperty("spark.speculation", "false")
            self._context.parallelize([0], 1).mapPartitions(self._body).collect()
            self.fate = "Its task has ended."
        except Exception as error:
            self.fate = reason_of(str(error))
        finally:
            self._over.set()

    def end(self, seconds: float) -> None:
        """Wait for it to end by itself; cancel it after that."""
        if not self._over.wait(seconds):
            self.cancel()
            self._over.wait(GRACE)

    def cancel(self) -> None:
        """Have Spark end it, soon."""
        with contextlib.suppress(Exception):  # the JVM is gone, and the job with it
            if self._context._jsc is not None:
                self._context.cancelJobGroup(self.group)


def resident(bootstrap: dict[str, Any], version: str) -> Callable[[Any], Iterator[Any]]:
    """What the task of a rank does. It travels by value and imports inside: an executor may lack what it needs."""

    def run(_: Any) -> Iterator[Any]:
        import socket
        import sys

        from pyspark import TaskContext

        context = TaskContext.get()
        if context is not None and context.attemptNumber() > 0:
            raise RuntimeError("kpg: the worker was lost; the coordinator starts it again, not Spark")
        sys.path[:0] = [path for path in bootstrap.get("path", []) if path not in sys.path]
        host = socket.gethostname()
        try:
            from kpg.cluster.rank import serve
            from kpg.version import __version__
        except ImportError as error:
            raise RuntimeError(
                f"kpg: the executor on {host} cannot run a worker: {error} ({sys.executable}); "
                "ship the environment with spark.archives, see docs/spark.md"
            ) from None
        if __version__ != version:
            raise RuntimeError(
                f"kpg: the executor on {host} has kpg {__version__}, the driver {version}; "
                "install the same version everywhere"
            )
        interface = bootstrap["interface"]
        if not interface.startswith("127."):  # the address of this machine that the coordinator is reached from
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
                probe.connect(tuple(bootstrap["coordinator"]))
                interface = probe.getsockname()[0]
        serve({**bootstrap, "interface": interface})
        return iter(())

    return run


def reason_of(error: str) -> str:
    """The line of a Spark error that says why."""
    lines = [line.strip() for line in error.splitlines() if line.strip()]
    ours = next((line for line in lines if "kpg: " in line), None)
    if ours is not None:
        return ours[ours.index("kpg: ") + 5 :]
    told = next((line for line in reversed(lines) if "Error" in line and not line.startswith("at ")), None)
    return (told or (lines[0] if lines else "It ended without a word."))[:300]
