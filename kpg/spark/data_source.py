"""The data source `format("kpg")`: relations and answers as Spark reads and writes them.

    df.write.format("kpg").option("relation", "orders").mode("append").save()
    stream.writeStream.format("kpg").option("relation", "orders").option("checkpointLocation", …).start()
    spark.read.format("kpg").option("relation", "answer").option("as_of", 7).load()
    spark.readStream.format("kpg").option("relation", "answer").option("changes", True).load()

To add an option, add its name to `OPTIONS`, read it with `text`, `flag` or `number` in the reader or writer that uses
it (here, kpg/spark/batch_reader.py or kpg/spark/stream_reader.py), and describe it in docs/spark.md.

Spark makes these objects in processes of its own, beside the driver and in executors. The class that was registered for
the session knows its db (see `source_class`), so no option names it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar
from uuid import uuid4

from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
    DataSourceWriter,
    WriterCommitMessage,
)

from kpg.cluster.rank_commands.command_kinds import StagingKey
from kpg.errors import InputError, NotAuthorised, ProgramError
from kpg.spark.driver_requests import DiscardStagedRequest, PublishAttemptsRequest, StagedAttempt
from kpg.spark.row_pusher import RowKind, RowPusher
from kpg.spark.schemas import check_fits, spark_schema
from kpg.spark.site import RelationPlacement, Site
from kpg.spark.task_client import TaskClient, client_of

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

NAME = "kpg"
OPTIONS = {
    "relation", "as_of", "changes", "diff", "upsert", "shared", "late", "name", "start", "max_rows", "lease",
    "checkpointlocation", "path", "queryname",
}  # fmt: skip


class KpgSource(DataSource):
    """Relations and answers of the db of the class."""

    site: ClassVar[Site | None] = None
    format_name: ClassVar[str] = NAME

    @classmethod
    def name(cls) -> str:
        """Return the name for format(...)."""
        return cls.format_name

    def schema(self) -> StructType:
        """Return the columns of a read."""
        placement = self.client().placement(self.text("relation"))
        return spark_schema(placement.schema, changes=self.flag("changes"))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Return the writer of df.write."""
        if overwrite:
            raise InputError("kpg cannot overwrite a relation", hint='Use mode("append"), or drop the relation first.')
        return BatchWriter(self, schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:
        """Return the writer of stream.writeStream."""
        return StreamWriter(self, schema)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of spark.read."""
        from kpg.spark.batch_reader import BatchReader

        return BatchReader(self)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Return the reader of spark.readStream."""
        from kpg.spark.stream_reader import StreamReader

        if not self.flag("changes"):
            raise ProgramError(
                "a stream of kpg is a stream of changes",
                detail="Its rows have the columns _time and _diff, which Spark must know before it begins.",
                hint='Add option("changes", True), or use answer.to_spark_stream().',
            )
        return StreamReader(self)

    # Options

    def client(self) -> TaskClient:
        """Return this process's connections to the db; refuse unknown options."""
        if self.site is None:
            raise NotAuthorised(
                "this session is not connected to a kpg db",
                hint="kpg.open(spark=spark) connects it; kpg.spark.spark_database.connect(spark) does for another one.",
            )
        unknown = sorted(set(self.options) - OPTIONS)
        if unknown:
            raise ProgramError(f"kpg has no option {unknown[0]!r}", hint=f"Options are {', '.join(sorted(OPTIONS))}.")
        return client_of(self.site)

    def text(self, name: str) -> str:
        """Return a required option."""
        value = self.options.get(name)
        if not value:
            raise ProgramError(f"option {name!r} is missing", hint=f'Add option("{name}", ...).')
        return str(value)

    def flag(self, name: str) -> bool:
        """Return an option that is true or false."""
        value = str(self.options.get(name, "false")).lower()
        if value not in ("true", "false"):
            raise ProgramError(f"option {name!r} is true or false, not {value!r}")
        return value == "true"

    def number(self, name: str) -> int | None:
        """Return an option that is a whole number."""
        value = self.options.get(name)
        if value is None:
            return None
        if not str(value).isdecimal():
            raise ProgramError(f"option {name!r} is a whole number, not {value!r}")
        return int(value)

    def row_kind(self) -> RowKind:
        """Return the effect of written rows."""
        return RowKind(self.options.get("diff"), self.flag("upsert"))

    def target(self, schema: StructType) -> RelationPlacement:
        """Return the relation to write to; refuse a schema that does not fit it."""
        placement = self.client().placement(self.text("relation"))
        check_fits(placement, self.row_kind(), schema)
        return placement


def source_class(site: Site, name: str = NAME) -> type[KpgSource]:
    """Return the data source of one db, for format(name). The class travels by value, and the secret inside it."""

    class SiteSource(KpgSource):
        pass

    SiteSource.site = site
    SiteSource.format_name = name
    return SiteSource


class StagedMessage(WriterCommitMessage):
    """The rows that a task has staged, and the stream that they belong to."""

    def __init__(self, attempt: StagedAttempt, origin: str | None) -> None:
        self.attempt = attempt
        self.origin = origin


class RowWriter:
    """The common part of both writers: tasks stage rows, the commit publishes them."""

    def __init__(self, source: KpgSource, schema: StructType) -> None:
        assert source.site is not None or source.client()
        self.relation = source.target(schema).name
        self.row_kind = source.row_kind()
        self.site = source.site
        self.shared, self.late = source.flag("shared"), source.flag("late")

    def client(self) -> TaskClient:
        """Return this process's connections to the db."""
        assert self.site is not None
        return client_of(self.site)

    def stage(self, batches: Iterator[Any], prefix: StagingKey, origin: str | None) -> StagedMessage:
        """Stage the rows of a task with the ranks."""
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        key = (*prefix, context.partitionId(), context.taskAttemptId())
        client = self.client()
        pusher = RowPusher(client, client.placement(self.relation), key, self.row_kind)
        for batch in batches:
            pusher.push(batch)
        return StagedMessage(pusher.finish(), origin)


class BatchWriter(RowWriter, DataSourceArrowWriter):
    """df.write: one transaction."""

    def __init__(self, source: KpgSource, schema: StructType) -> None:
        super().__init__(source, schema)
        self.prefix = ("write", uuid4().hex)

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        """Stage the rows of a partition, in a task."""
        return self.stage(iterator, self.prefix, None)

    def commit(self, messages: list[Any]) -> None:
        """Publish the rows of all tasks."""
        attempts = tuple(message.attempt for message in messages if message is not None)
        self.client().ask(PublishAttemptsRequest(self.relation, attempts, self.prefix, replacing=self.row_kind.upsert))

    def abort(self, messages: list[Any]) -> None:
        """Drop the staged rows, after a task has failed for good."""
        self.client().ask(DiscardStagedRequest(self.prefix))


class StreamWriter(RowWriter, DataSourceStreamArrowWriter):
    """stream.writeStream: each micro-batch one transaction, once."""

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        """Stage the rows of a partition, in a task. Only its local properties name the query and the batch."""
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        query = context.getLocalProperty("sql.streaming.queryId")
        batch = context.getLocalProperty("streaming.sql.batchId")
        if query is None or batch is None:
            raise InputError("a task of a stream knows neither its query nor its batch", hint="Use Spark 4.3.")
        return self.stage(iterator, (query, int(batch)), query)

    def commit(self, messages: list[Any], batchId: int) -> None:
        """Publish the rows of a batch; Spark may repeat this after a crash."""
        staged = [message for message in messages if message is not None]
        if staged:
            origin = staged[0].origin
            request = PublishAttemptsRequest(
                relation=self.relation,
                attempts=tuple(message.attempt for message in staged),
                prefix=(origin, batchId),
                query=origin,
                batch=batchId,
                replacing=self.row_kind.upsert,
                shared=self.shared,
                late=self.late,
            )
            self.client().ask(request)

    def abort(self, messages: list[Any], batchId: int) -> None:
        """Drop the staged rows of a failed batch. Spark may repeat the batch, so later rows of it are not refused."""
        for origin in {message.origin for message in messages if message is not None}:
            self.client().ask(DiscardStagedRequest((origin, batchId), final=False))
