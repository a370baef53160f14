"""spark.readStream.format("kpg"): the changes of a relation or answer, with the time and diff of each.

    offset e     everything at times before e was read; what is complete now is read up to the open epoch
    first        what is there, as additions; then every change ("start" = "now": only the changes, or a number)

A reader holds the history from its last committed offset on, since Spark reads [start, end) again after a failure. With
option("name", …) the hold outlives the query, so that one that is started again from its checkpoint goes on where it
was; without a name it ends with the process that Spark plans the query in, and going on works only as far back as the
db keeps history.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from kpg.errors import ProgramError
from kpg.spark.batch_reader import Shard, changes_as_batches
from kpg.spark.client import Client, client_of
from kpg.spark.site import RelationPlacement

if TYPE_CHECKING:
    from kpg.spark.data_source import KpgSource


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The changes of a relation or answer."""

    def __init__(self, source: KpgSource) -> None:
        assert source.site is not None or source.client()
        self.site = source.site
        self.name = source.text("relation")
        self.start = str(source.options.get("start", "first"))
        if self.start not in ("first", "now") and not self.start.isdecimal():
            raise ProgramError(f"option 'start' is first, now or a time, not {self.start!r}")
        self.max_rows = source.number("max_rows")
        self.named = source.options.get("name") is not None
        self.reader = f"{self.name}: {source.options.get('name') or uuid4().hex}"
        self.place: RelationPlacement = source.client().place(self.name)
        self.held = False
        self.last: int | None = None  # for Trigger.AvailableNow: not beyond this

    def client(self) -> Client:
        """The db, from here."""
        assert self.site is not None
        return client_of(self.site)

    # Offsets

    def initialOffset(self) -> dict[str, int]:
        """Where a query begins that has no checkpoint."""
        if self.start.isdecimal():
            return {"time": self._hold(int(self.start))}
        held = self.client().ask("hold", reader=self.reader, name=self.name, bound=not self.named, lasting=self.named)
        self.held = True
        return {"time": held["epoch"] if self.start == "now" else 0}

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        """How far to read next: to what is complete, or as many rows as the limit allows."""
        begin = int(start["time"])
        self._hold(begin)
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        end = int(self.client().ask("pace", reader=self.reader, start=begin, rows=most))
        return {"time": max(begin, end if self.last is None else min(end, self.last))}

    def getDefaultReadLimit(self) -> ReadLimit:
        """As option max_rows says."""
        return ReadAllAvailable() if self.max_rows is None else ReadMaxRows(self.max_rows)

    def prepareForTriggerAvailableNow(self) -> None:
        """What comes from now on is for the next time."""
        self.last = self.client().place(self.name).epoch

    def reportLatestOffset(self) -> dict[str, int]:
        """What is complete."""
        return {"time": self.client().place(self.name).epoch}

    def _hold(self, begin: int) -> int:
        """Hold what is needed to read from `begin` on, if that is not done yet."""
        if not self.held:
            at = begin - 1 if begin > 0 else None
            whose = {"reader": self.reader, "name": self.name, "bound": not self.named, "lasting": self.named}
            self.client().ask("hold", at=at, **whose)
            self.held = True
        return begin

    def commit(self, end: dict[str, int]) -> None:
        """What is before `end` will not be asked for again."""
        if int(end["time"]) > 0:
            at = int(end["time"]) - 1
            self.client().ask("hold", reader=self.reader, name=self.name, at=at, lasting=self.named)

    def stop(self) -> None:
        """The query has ended; a named hold waits for it to begin again."""
        if self.held and not self.named:
            self.client().ask("let_go", reader=self.reader)

    # Rows

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        """One for each rank."""
        begin, stop = int(start["time"]), int(end["time"])
        if begin >= stop:
            return []
        self._hold(begin)
        request = {"do": "updates", "name": self.name, "hold": self.reader, "start": begin, "end": stop}
        return [Shard(address, request) for address in self.client().place(self.name).ranks]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """In a task: ask the rank."""
        assert isinstance(partition, Shard)
        client = self.client()
        client.tidy((partition.address, *self.place.ranks))
        found = client.rank(partition.address).ask(partition.request)[1][0]
        return changes_as_batches(self.place.schema, found, client.symbols)
