"""Residents: ranks that run in Spark. Each is one ordinary job with one task, submitted from a thread of its own.

Each rank is a job of its own, not a task of a barrier stage: when one is lost, the others stay, and it is submitted
again as often as needed. Each has a job group, so that one can be cancelled. A rank refuses Spark's own retries of its
task: only the coordinator starts a rank again, with a new token.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from kpg.cluster.hello_messages import RankBootstrap
from kpg.protocol.message_codec import encode
from kpg.spark.spark_session import on_this_machine
from kpg.version import __version__

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STOP_TIMEOUT_SECONDS = 10.0  # for ranks to end by themselves before their jobs are cancelled, and for that


class SparkResidents:
    """Starts each rank as a job of a Spark session."""

    start_timeout_seconds = 120.0

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._jobs: dict[int, Resident] = {}
        self._started = 0

    def start(self, bootstrap: RankBootstrap) -> None:
        """Start a rank. The job that it replaces has an old token, so it need not have ended yet."""
        rank = bootstrap.rank
        replaced = self._jobs.pop(rank, None)
        if replaced is not None:
            replaced.cancel()
        if on_this_machine(self._spark.sparkContext):
            bootstrap = replace(bootstrap, path=tuple(sys.path))  # executors see the same files
        self._started += 1
        self._jobs[rank] = Resident(self._spark, f"kpg-{id(self):x}-{rank}-{self._started}", bootstrap)

    def exit_status(self, rank: int) -> str | None:
        """Say how a rank ended; None while it runs."""
        job = self._jobs.get(rank)
        return job.exit_status if job is not None else None

    def stop(self) -> None:
        """End all ranks; return when they have ended."""
        deadline = time.monotonic() + STOP_TIMEOUT_SECONDS
        for rank in tuple(self._jobs):
            self._jobs.pop(rank).end(max(0.0, deadline - time.monotonic()))


class Resident:
    """The job of one rank."""

    def __init__(self, spark: SparkSession, group: str, bootstrap: RankBootstrap) -> None:
        from pyspark import InheritableThread

        self.group = group
        self.exit_status: str | None = None
        self._context = spark.sparkContext
        self._body = resident(encode(bootstrap), bootstrap.path, __version__)
        self._rank = bootstrap.rank
        self._over = threading.Event()
        self._thread = InheritableThread(target=self._run, session=spark, name=f"kpg resident {self._rank}")
        self._thread.daemon = True
        self._thread.start()

    def _run(self) -> None:
        try:
            self._context.setJobGroup(self.group, f"kpg worker {self._rank}", interruptOnCancel=True)
            self._context.setLocalProperty("spark.speculation", "false")
            self._context.parallelize([0], 1).mapPartitions(self._body).collect()
            self.exit_status = "Its task has ended."
        except Exception as error:
            self.exit_status = reason_of(str(error))
        finally:
            self._over.set()

    def end(self, timeout_seconds: float) -> None:
        """Wait for the job to end by itself, then cancel it."""
        if not self._over.wait(timeout_seconds):
            self.cancel()
            self._over.wait(STOP_TIMEOUT_SECONDS)

    def cancel(self) -> None:
        """Have Spark cancel the job."""
        with contextlib.suppress(Exception):  # the JVM is gone, and the job with it
            if self._context._jsc is not None:
                self._context.cancelJobGroup(self.group)


def resident(bootstrap_text: str, path: tuple[str, ...], version: str) -> Callable[[Any], Iterator[Any]]:
    """Return the function that a rank's task runs.

    It travels by value and imports inside: an executor may lack kpg, and should then say so.
    """

    def run(_: Any) -> Iterator[Any]:
        import socket
        import sys
        from dataclasses import replace
        from importlib import import_module

        from pyspark import TaskContext

        context = TaskContext.get()
        if context is not None and context.attemptNumber() > 0:
            raise RuntimeError("kpg: the worker was lost; the coordinator starts it again, not Spark")
        sys.path[:0] = [directory for directory in path if directory not in sys.path]
        host = socket.gethostname()
        try:
            from kpg.cluster.hello_messages import BOOTSTRAPS
            from kpg.cluster.rank import serve
            from kpg.protocol.message_codec import decode
            from kpg.version import __version__

            import_module("kpg.kernels.machine_code")  # imports Numba, which a worker otherwise does later
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
        bootstrap = decode(bootstrap_text, BOOTSTRAPS)
        interface = bootstrap.interface
        if not interface.startswith("127."):  # use the address of this machine that reaches the coordinator
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
                probe.connect(bootstrap.coordinator)
                interface = probe.getsockname()[0]
        serve(replace(bootstrap, interface=interface))
        return iter(())

    return run


def reason_of(error: str) -> str:
    """Return the line of a Spark error that gives the reason."""
    lines = [line.strip() for line in error.splitlines() if line.strip()]
    ours = next((line for line in lines if "kpg: " in line), None)
    if ours is not None:
        return ours[ours.index("kpg: ") + 5 :]
    reason = next((line for line in reversed(lines) if "Error" in line and not line.startswith("at ")), None)
    return (reason or (lines[0] if lines else "It ended without an error message."))[:300]
