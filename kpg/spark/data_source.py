"""The data source `format("kpg")`: relations and answers as Spark reads and writes them.

    df.write.format("kpg").option("relation", "orders").mode("append").save()
    stream.writeStream.format("kpg").option("relation", "orders").option("checkpointLocation", …).start()
    spark.read.format("kpg").option("relation", "answer").option("as_of", 7).load()
    spark.readStream.format("kpg").option("relation", "answer").option("changes", True).load()

Spark makes these objects in processes of its own, beside the driver and in executors; which db is meant is in the class
that was registered for the session (see `bound`), so no option names it.
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

from kpg.errors import InputError, NotAuthorised, ProgramError
from kpg.spark.client import Client, client_of
from kpg.spark.row_pusher import Pusher, RowKind
from kpg.spark.schemas import check_fits, spark_schema
from kpg.spark.site import RelationPlacement, Site

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

NAME = "kpg"
OPTIONS = {
    "relation", "as_of", "changes", "diff", "upsert", "shared", "late", "name", "start", "max_rows", "lease",
    "checkpointlocation", "path", "queryname",
}  # fmt: skip


class KpgSource(DataSource):
    """Relations and answers of the db that the class is bound to."""

    site: ClassVar[Site | None] = None
    called: ClassVar[str] = NAME

    @classmethod
    def name(cls) -> str:
        """As in format("kpg")."""
        return cls.called

    def schema(self) -> StructType:
        """The columns of what is read."""
        place = self.client().place(self.text("relation"))
        return spark_schema(place.schema, changes=self.flag("changes"))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """For df.write."""
        if overwrite:
            raise InputError("kpg cannot overwrite a relation", hint='Use mode("append"), or drop the relation first.')
        return BatchWriter(self, schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:
        """For stream.writeStream."""
        return StreamWriter(self, schema)

    def reader(self, schema: StructType) -> DataSourceReader:
        """For spark.read."""
        from kpg.spark.batch_reader import BatchReader

        return BatchReader(self)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """For spark.readStream."""
        from kpg.spark.stream_reader import StreamReader

        if not self.flag("changes"):
            raise ProgramError(
                "a stream of kpg is one of changes",
                detail="Its rows have the columns _time and _diff, which Spark must know before it begins.",
                hint='Add option("changes", True), or use answer.to_spark_stream().',
            )
        return StreamReader(self)

    # Options

    def client(self) -> Client:
        """The db, from here."""
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
        """An option that must be there."""
        found = self.options.get(name)
        if not found:
            raise ProgramError(f"option {name!r} is missing", hint=f'Say it: option("{name}", ...).')
        return str(found)

    def flag(self, name: str) -> bool:
        """An option that is true or false."""
        found = str(self.options.get(name, "false")).lower()
        if found not in ("true", "false"):
            raise ProgramError(f"option {name!r} is true or false, not {found!r}")
        return found == "true"

    def number(self, name: str) -> int | None:
        """An option that is a whole number."""
        found = self.options.get(name)
        if found is None:
            return None
        if not str(found).isdecimal():
            raise ProgramError(f"option {name!r} is a whole number, not {found!r}")
        return int(found)

    def change(self) -> RowKind:
        """What written rows do."""
        return RowKind(self.options.get("diff"), self.flag("upsert"))

    def target(self, schema: StructType) -> RelationPlacement:
        """The relation that is written to, if rows of that schema fit it."""
        place = self.client().place(self.text("relation"))
        check_fits(place, self.change(), schema)
        return place


def bound(site: Site, name: str = NAME) -> type[KpgSource]:
    """The data source of one db, as format(name). The class travels by value, and the secret inside it."""

    class Bound(KpgSource):
        pass

    Bound.site = site
    Bound.called = name
    return Bound


class StagedMessage(WriterCommitMessage):
    """What a task has staged."""

    def __init__(self, attempt: dict[str, Any], origin: str | None) -> None:
        self.attempt = attempt
        self.origin = origin


class RowWriter:
    """What both writers share: tasks stage, the commit publishes."""

    def __init__(self, source: KpgSource, schema: StructType) -> None:
        assert source.site is not None or source.client()
        self.relation = source.target(schema).name
        self.change = source.change()
        self.site = source.site
        self.shared, self.late = source.flag("shared"), source.flag("late")

    def client(self) -> Client:
        """The db, from here."""
        assert self.site is not None
        return client_of(self.site)

    def stage(self, batches: Iterator[Any], prefix: list[Any], origin: str | None) -> StagedMessage:
        """Bring the rows of a task to the ranks."""
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        key = [*prefix, context.partitionId(), context.taskAttemptId()]
        client = self.client()
        pusher = Pusher(client, client.place(self.relation), key, self.change)
        for batch in batches:
            pusher.push(batch)
        return StagedMessage(pusher.finish(), origin)


class BatchWriter(RowWriter, DataSourceArrowWriter):
    """df.write: one transaction."""

    def __init__(self, source: KpgSource, schema: StructType) -> None:
        super().__init__(source, schema)
        self.prefix = ["write", uuid4().hex]

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        """In a task."""
        return self.stage(iterator, self.prefix, None)

    def commit(self, messages: list[Any]) -> None:
        """After all tasks."""
        attempts = [message.attempt for message in messages if message is not None]
        self.client().ask(
            "publish", relation=self.relation, attempts=attempts, prefix=self.prefix, replacing=self.change.upsert
        )

    def abort(self, messages: list[Any]) -> None:
        """After a task has failed for good."""
        self.client().ask("discard", prefix=self.prefix)


class StreamWriter(RowWriter, DataSourceStreamArrowWriter):
    """stream.writeStream: each micro-batch one transaction, once."""

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        """In a task, which knows its query and batch only from its local properties."""
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        query = context.getLocalProperty("sql.streaming.queryId")
        batch = context.getLocalProperty("streaming.sql.batchId")
        if query is None or batch is None:
            raise InputError("a task of a stream knows neither its query nor its batch", hint="Use Spark 4.3.")
        return self.stage(iterator, [query, int(batch)], query)

    def commit(self, messages: list[Any], batchId: int) -> None:
        """After all tasks of a batch; may come again after a crash."""
        staged = [message for message in messages if message is not None]
        if staged:
            origin = staged[0].origin
            self.client().ask(
                "publish", relation=self.relation, attempts=[each.attempt for each in staged],
                prefix=[origin, batchId], query=origin, batch=batchId, replacing=self.change.upsert,
                shared=self.shared, late=self.late,
            )  # fmt: skip

    def abort(self, messages: list[Any], batchId: int) -> None:
        """The batch has failed; it may come again, so what is staged is forgotten, not refused."""
        for origin in {message.origin for message in messages if message is not None}:
            self.client().ask("discard", prefix=[origin, batchId], final=False)
