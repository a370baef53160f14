"""The requirements of a Spark session for workers: a context of its own, and more task slots than workers.

Each worker holds a task slot while the db is open; loads, streams and other jobs need slots too. A session of Spark
Connect has no context, so this process could not start workers in it.
"""

from __future__ import annotations

import os
import socket
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kpg.errors import ProgramError, ResourceError
from kpg.spark.java import ensure_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXECUTOR_TIMEOUT_SECONDS = 30.0  # for executors to register
SECRET = "spark.kpg.secret"  # Spark redacts keys that match spark.redaction.regex: secret, token, password
ADDRESS = "spark.kpg.address"
PUSH_DOWN = "spark.sql.python.filterPushdown.enabled"


def session_of(master: str) -> SparkSession:
    """Return a Spark session with this master: the current one of this process if it has one."""
    ensure_java()
    from pyspark.sql import SparkSession

    return SparkSession.builder.master(master).appName("kpg").getOrCreate()


def check_session(spark: SparkSession) -> None:
    """Refuse a session without a context of its own."""
    module = type(spark).__module__
    if module.startswith("pyspark.sql.connect"):
        raise ProgramError(
            "workers cannot run in a Spark Connect session",
            detail="It has no SparkContext, so no jobs can be started from here.",
            hint="Use a classic session, as in SparkSession.builder.master(...).getOrCreate().",
        )
    if not module.startswith("pyspark.sql"):
        raise ProgramError(f"spark= is a SparkSession, not {type(spark).__name__}")
    if spark.sparkContext._jsc is None:
        raise ProgramError("the Spark session was stopped", hint="Make a new one.")


def check_slots(spark: SparkSession, workers: int) -> None:
    """Refuse to take all task slots: any other Spark job would wait for ever."""
    context = spark.sparkContext
    if context.getConf().get("spark.dynamicAllocation.enabled", "false") == "true":
        return
    available = slots(context)
    deadline = time.monotonic() + EXECUTOR_TIMEOUT_SECONDS
    while available <= workers and not is_local(context) and time.monotonic() < deadline:
        time.sleep(0.1)  # executors register one by one
        available = slots(context)
    if available <= workers:
        raise ResourceError(
            f"{workers} workers need more than the {available} task slot{'s' * (available != 1)} of this Spark",
            detail="Each worker holds a slot while the db is open; loads, streams and other jobs need one too.",
            hint=f"Use master local[{workers + 2}], more executor cores, or fewer workers.",
        )


def slots(context: Any) -> int:
    """Return the number of tasks that can run at the same time on the registered executors."""
    scala = context._jsc.sc()
    return int(scala.maxNumConcurrentTasks(scala.resourceProfileManager().defaultResourceProfile()))


def interface_of(spark: SparkSession) -> str:
    """Return the address by which executors reach this machine."""
    conf = spark.sparkContext.getConf()
    if on_this_machine(spark.sparkContext):
        return "127.0.0.1"
    host = conf.get("spark.driver.bindAddress") or conf.get("spark.driver.host") or "127.0.0.1"
    return socket.gethostbyname(host)


def use_this_python(context: Any) -> None:
    """Let tasks on this machine run the driver's Python with the driver's kpg, unless PYSPARK_PYTHON names another one.

    PySpark's default is the first `python3` of PATH, which lacks kpg unless its virtual environment is activated.
    """
    if not on_this_machine(context):
        return
    if "PYSPARK_PYTHON" not in os.environ and context.pythonExec == "python3":
        context.pythonExec = sys.executable
    source = str(Path(__file__).parents[2])
    paths = context.environment.get("PYTHONPATH", "").split(os.pathsep)
    if source not in paths:
        context.environment["PYTHONPATH"] = os.pathsep.join(filter(None, [*paths, source]))


def is_local(context: Any) -> bool:
    """Return whether tasks run as threads of the driver's JVM."""
    return str(context.master).startswith("local") and not str(context.master).startswith("local-cluster")


def on_this_machine(context: Any) -> bool:
    """Return whether all executors see the files of this machine: local and local-cluster masters."""
    return str(context.master).startswith("local")
