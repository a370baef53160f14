"""The db on Spark: a cluster's db with its workers in the executors, loaded from DataFrames and streams.

    load(name, df)        a DataFrame into a relation, as one transaction
    stream(name, stream)  a stream into a relation, each micro-batch as one transaction
    answer.to_spark()     an answer as a DataFrame

Rows go directly from tasks to workers; the driver only learns which task attempts to publish.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from kpg.cluster.cluster_database import ClusterDatabase
from kpg.cluster.cluster_directory import ClusterDirectory
from kpg.cluster.cluster_output import ClusterOutput
from kpg.cluster.rank_commands.command_kinds import StagingKey
from kpg.config import Config
from kpg.errors import KpgError, ProgramError
from kpg.protocol.error_messages import error_of, failure_of
from kpg.protocol.message_codec import decode, encode
from kpg.spark.data_source import source_class
from kpg.spark.driver_requests import TASK_RESULTS, FailedAttempt, PublishAttemptsRequest, StagedAttempt
from kpg.spark.driver_service import DriverService
from kpg.spark.residents import SparkResidents
from kpg.spark.row_pusher import RowKind
from kpg.spark.schemas import check_fits, kpg_schema
from kpg.spark.site import RelationPlacement, Site
from kpg.spark.spark_session import ADDRESS, PUSH_DOWN, SECRET, check_slots, interface_of, use_this_python

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


class SparkDatabase(ClusterDatabase):
    """A db on workers in Spark; `kpg.open(spark=spark, workers=N)` returns one."""

    def __init__(
        self, config: Config, workers: int, spark: SparkSession, directory: ClusterDirectory | None = None
    ) -> None:
        if config.coordinates != 1:
            raise ProgramError("times have one coordinate on Spark")
        check_slots(spark, workers)
        use_this_python(spark.sparkContext)
        self.spark = spark
        super().__init__(config, workers, SparkResidents(spark), interface_of(spark), directory, SparkOutput)
        host, port = self.coordinator.listener.address
        self.site = Site(host, port, self.coordinator.secret.hex())
        self.service = DriverService(self)
        self.coordinator.driver_service = self.service.serve
        self.format = f"kpg_{port}"  # always this db; format("kpg") means the one opened last
        spark.dataSource.register(source_class(self.site, self.format))
        self._before = {name: spark.conf.get(name, None) for name in (ADDRESS, SECRET)}
        spark.conf.set(SECRET, self.site.secret)
        spark.conf.set(ADDRESS, f"{host}:{port}")
        spark.conf.set(PUSH_DOWN, "true")
        connect(spark)

    # In

    def load(
        self, name: str, frame: DataFrame, *, key: Any = None, diff: str | None = None, upsert: bool = False
    ) -> int:
        """Insert the rows of a DataFrame into a relation, as one transaction; return its epoch.

        key      of the relation, which is created if it does not exist
        diff     a column of integers: the number of times that each row is added, or removed if negative
        upsert   rows replace those with the same key
        """
        change = RowKind(diff, upsert)
        self._target(name, frame, key, change)
        prefix = ("load", uuid4().hex)
        body = loader(self.site, name, prefix, change)
        try:
            rows = frame.mapInArrow(body, "result string").collect()
            attempts = []
            for result in [decode(row[0], TASK_RESULTS) for row in rows]:
                if isinstance(result, FailedAttempt):
                    raise error_of(result.failure)
                attempts.append(result)
            return self._publish(PublishAttemptsRequest(name, tuple(attempts), prefix, replacing=upsert))
        except BaseException:
            with contextlib.suppress(KpgError):
                self.service.discard(prefix)
            raise

    def _publish(self, request: PublishAttemptsRequest) -> int:
        with self.coordinator.lock:
            return self.service.publish(request)

    def stream(
        self,
        name: str,
        frame: DataFrame,
        *,
        checkpoint: str | None = None,
        key: Any = None,
        diff: str | None = None,
        upsert: bool = False,
        query_name: str | None = None,
        trigger: dict[str, Any] | None = None,
        **options: Any,
    ) -> StreamingQuery:
        """Insert a stream into a relation, each micro-batch as one transaction; return the running query.

        checkpoint   a directory from which the stream resumes when it is started again
        trigger      as Spark takes it: {"processingTime": "1 second"}, {"availableNow": True}
        key, diff, upsert   as for load()
        """
        self._target(name, frame, key, RowKind(diff, upsert))
        writer = frame.writeStream.format(self.format).option("relation", name).outputMode("append")
        writer_options = {"diff": diff, "upsert": upsert or None, "checkpointLocation": checkpoint, **options}
        for option, value in writer_options.items():
            if value is not None:
                writer = writer.option(option, value)
        if query_name is not None:
            writer = writer.queryName(query_name)
        if trigger is not None:
            writer = writer.trigger(**trigger)
        return writer.start()

    def _target(self, name: str, frame: DataFrame, key: Any, change: RowKind) -> None:
        """Create the relation if it does not exist, and check that the rows fit it."""
        self.check()
        if name not in self.inputs:
            keys = (key,) if isinstance(key, str) else tuple(key or ())
            schema = kpg_schema(frame.drop(change.diff).schema if change.diff is not None else frame.schema, keys)
            self.input(name, schema, key=key)
        elif key is not None:
            raise ProgramError(f"{name} exists already, with its key", hint="Leave key= out.")
        check_fits(RelationPlacement.of(name, self.service.describe(name)), change, frame.schema)

    # Out

    def to_spark(self, name: str, as_of: int | None = None) -> DataFrame:
        """Return a relation or answer as a DataFrame, as of a time; by default the last complete one at planning."""
        self[name]
        reader = self.spark.read.format(self.format).option("relation", name)
        return (reader if as_of is None else reader.option("as_of", as_of)).load()

    def to_spark_stream(self, name: str, /, **options: Any) -> DataFrame:
        """Return the changes of a relation or answer as a stream: its columns, _time and _diff."""
        self[name]
        return self.spark.readStream.format(self.format).options(relation=name, changes=True, **options).load()

    # Life

    def close(self) -> None:
        """End all workers; may be repeated."""
        if not self._closed:
            super().close()
            with contextlib.suppress(Exception):  # the session may have ended already
                if self.spark.conf.get(ADDRESS, None) == f"{self.site.host}:{self.site.port}":
                    restore(self.spark, self._before)


class SparkOutput(ClusterOutput):
    """An answer that workers in Spark maintain."""

    db: SparkDatabase

    def to_spark(self, as_of: int | None = None) -> DataFrame:
        """Return the rows as a DataFrame, as of a time; by default the last complete one at planning."""
        self._check()
        self.db.outputs.hold(self)  # Spark reads it later, by its name
        return self.db.to_spark(self.name, as_of)

    def to_spark_stream(self, **options: Any) -> DataFrame:
        """Return the changes as a stream: its columns, _time and _diff."""
        self._check()
        self.db.outputs.hold(self)
        return self.db.to_spark_stream(self.name, **options)


def connect(spark: SparkSession) -> None:
    """Make format("kpg") of a session mean the db that its conf names: spark.kpg.address and spark.kpg.secret."""
    address, secret = spark.conf.get(ADDRESS, None), spark.conf.get(SECRET, None)
    if not address or not secret:
        raise ProgramError(f"the session names no db: {ADDRESS} and {SECRET} are not set")
    host, port = address.rsplit(":", 1)
    spark.dataSource.register(source_class(Site(host, int(port), secret)))


def restore(spark: SparkSession, before: dict[str, str | None]) -> None:
    """Restore what format("kpg") meant before a db was opened."""
    for name, value in before.items():
        if value is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, value)
    if all(before.values()):
        connect(spark)


def loader(site: Site, name: str, prefix: StagingKey, change: RowKind) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Return the function of a load's tasks: it stages the rows and yields their key, or the error of a bad row."""

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa
        from pyspark import TaskContext

        from kpg.spark.row_pusher import RowPusher
        from kpg.spark.task_client import client_of

        context, client = TaskContext.get(), client_of(site)
        assert context is not None
        try:
            key = (*prefix, context.partitionId(), context.taskAttemptId())
            pusher = RowPusher(client, client.placement(name), key, change)
            for batch in batches:
                pusher.push(batch)
            result: StagedAttempt | FailedAttempt = pusher.finish()
        except KpgError as error:
            result = FailedAttempt(failure_of(error))
        yield pa.RecordBatch.from_pydict({"result": [encode(result)]})

    return run
