"""What a Spark session must be for workers to live in it, and what is asked of its JVM.

Workers hold a task slot each for as long as the db is open, so a session needs more slots than workers; one that is
reached through Spark Connect has no way to start them from here.
"""

from __future__ import annotations

import socket
import time
from typing import TYPE_CHECKING, Any

from kpg.errors import ProgramError, ResourceError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

REGISTERING = 30.0  # seconds that executors have to come up
SECRET = "spark.kpg.secret"  # Spark redacts values whose key matches spark.redaction.regex: secret, token, password
ADDRESS = "spark.kpg.address"
PUSH_DOWN = "spark.sql.python.filterPushdown.enabled"


def check_session(spark: SparkSession) -> None:
    """Refuse what is not a session with a context of its own."""
    module = type(spark).__module__
    if module.startswith("pyspark.sql.connect"):
        raise ProgramError(
            "workers cannot live behind a Spark Connect session",
            detail="It has no SparkContext, so no jobs can be started from here.",
            hint="Use a classic session, as in SparkSession.builder.master(...).getOrCreate().",
        )
    if not module.startswith("pyspark.sql"):
        raise ProgramError(f"spark= is a SparkSession, not {type(spark).__name__}")
    if spark.sparkContext._jsc is None:
        raise ProgramError("the Spark session was stopped", hint="Make a new one.")


def check_slots(spark: SparkSession, workers: int) -> None:
    """Refuse to take all task slots: whatever else is asked of Spark would wait for ever."""
    context = spark.sparkContext
    if context.getConf().get("spark.dynamicAllocation.enabled", "false") == "true":
        return
    found = slots(context)
    end = time.monotonic() + REGISTERING
    while found <= workers and not is_local(context) and time.monotonic() < end:
        time.sleep(0.1)  # executors register one by one
        found = slots(context)
    if found <= workers:
        raise ResourceError(
            f"{workers} workers need more than the {found} task slot{'s' * (found != 1)} of this Spark",
            detail="Each worker holds a slot while the db is open; loads, streams and other jobs need one too.",
            hint=f"Use master local[{workers + 2}], more executor cores, or fewer workers.",
        )


def slots(context: Any) -> int:
    """How many tasks can run at once, on the executors that are there."""
    scala = context._jsc.sc()
    return int(scala.maxNumConcurrentTasks(scala.resourceProfileManager().defaultResourceProfile()))


def interface_of(spark: SparkSession) -> str:
    """The address that executors reach this machine by."""
    conf = spark.sparkContext.getConf()
    if on_this_machine(spark.sparkContext):
        return "127.0.0.1"
    host = conf.get("spark.driver.bindAddress") or conf.get("spark.driver.host") or "127.0.0.1"
    return socket.gethostbyname(host)


def is_local(context: Any) -> bool:
    """Whether tasks run as threads of the driver's JVM."""
    return str(context.master).startswith("local") and not str(context.master).startswith("local-cluster")


def on_this_machine(context: Any) -> bool:
    """Whether all executors see the files of this machine: local and local-cluster masters."""
    return str(context.master).startswith("local")
