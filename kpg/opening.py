"""Opening a db: in this process, on a thread of its own, on several workers, or on workers in Spark.

Each kind keeps its rows in memory, or in a directory. Opening the first db imports the engine. On a machine without
cached machine code it starts a process that compiles the kernels; several workers wait until they are compiled.
"""

from __future__ import annotations

from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict, Unpack, overload

from kpg.api.contracts import Database
from kpg.api.embedded_database import EmbeddedDatabase
from kpg.config import CHECKPOINT_BYTES, Config, Effort
from kpg.errors import ProgramError
from kpg.extras import require
from kpg.kernels.warm import prepare, warm

if TYPE_CHECKING:
    from kpg.api.background import Background
    from kpg.spark.spark_database import SparkDatabase
    from kpg.storage.transaction_log import Durability

DirectoryPath: TypeAlias = str | PathLike[str] | None


class OpenOptions(TypedDict, total=False):
    """The options that every kind of db accepts; `open` explains them."""

    history: int | None
    memory_limit: int | None
    effort: Effort
    max_rounds: int
    max_lag: int | None
    coordinates: int
    durability: Durability
    checkpoint_bytes: int
    filesystem: Any


@overload
def open(
    directory: DirectoryPath = None,
    /,
    *,
    workers: int = 1,
    background: Literal[False] = False,
    **options: Unpack[OpenOptions],
) -> Database: ...


@overload
def open(
    directory: DirectoryPath = None, /, *, workers: int = 1, background: Literal[True], **options: Unpack[OpenOptions]
) -> Background: ...


@overload
def open(
    directory: DirectoryPath = None,
    /,
    *,
    spark: Any,  # a SparkSession
    workers: int = 1,
    **options: Unpack[OpenOptions],
) -> SparkDatabase: ...


def open(
    directory: DirectoryPath = None,
    /,
    *,
    workers: int = 1,
    spark: Any = None,
    history: int | None = 0,
    memory_limit: int | None = None,
    effort: Effort = "default",
    max_rounds: int = 10_000_000,
    max_lag: int | None = None,
    coordinates: int = 1,
    background: bool = False,
    durability: Durability = "commit",
    checkpoint_bytes: int = CHECKPOINT_BYTES,
    filesystem: Any = None,
) -> Database | Background:
    """Open a db.

    directory     a directory that keeps relations and their rows; a path, or a URI that pyarrow.fs accepts
    workers       the number of processes on this machine that share the work; 1 is this process alone
    spark         a Spark session: the workers run in its executors, one task slot each
    history       the number of epochs before the last complete one that can still be read; None keeps all
    memory_limit  bytes; calls raise OverBudget while the process (each worker) holds more
    effort        how eagerly indexes merge: eager, default or lazy
    max_rounds    the maximum number of rounds of a recursion
    max_lag       the number of epochs that an answer may lag behind before it is rebuilt, then stopped; None: any
    coordinates   the number of coordinates of a time: 1, or more for inputs with several clocks
    background    run on a thread of its own, and accept calls from any thread and from asyncio
    durability    commit: advance returns when the disk has the rows; relaxed: when the operating system has them
    checkpoint_bytes   the growth of the log that triggers a checkpoint
    filesystem    the pyarrow.fs filesystem of `directory`
    """
    if workers < 1:
        raise ProgramError(f"a db needs at least one worker, not {workers}")
    if spark is not None:
        require("pyspark", "kpg.open(spark=...)")
        from kpg.spark.spark_session import check_session

        check_session(spark)
    if workers > 1 or spark is not None:
        warm()  # several processes would compile the same kernels at the same time
    else:
        prepare()
    config = Config(history, memory_limit, effort, max_rounds, coordinates, max_lag)
    if spark is not None:
        if background:
            raise ProgramError("spark= runs in the background already", hint="Leave background=True out.")
        from kpg.cluster.cluster_directory import directory_of
        from kpg.spark.spark_database import SparkDatabase

        return SparkDatabase(config, workers, spark, directory_of(directory, filesystem, durability, checkpoint_bytes))
    if workers > 1:
        if background:
            raise ProgramError("workers=N runs in the background already", hint="Leave background=True out.")
        from kpg.cluster.cluster_database import ClusterDatabase
        from kpg.cluster.cluster_directory import directory_of
        from kpg.cluster.local_launcher import LocalLauncher

        shared = directory_of(directory, filesystem, durability, checkpoint_bytes)
        return ClusterDatabase(config, workers, LocalLauncher(), directory=shared)
    make = partial(EmbeddedDatabase, config)
    if directory is not None:
        from kpg.api.durability import open_durable

        make = partial(open_durable, config, directory, filesystem, durability, checkpoint_bytes)
    if background:
        from kpg.api.background import Background

        return Background(make)  # type: ignore[abstract]  # the proxy forwards all methods of a db
    return make()
