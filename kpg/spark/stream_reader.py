"""spark.readStream.format("kpg"): the changes of a relation or answer, with the time and diff of each.

    offset e     everything at times before e was read; complete epochs are read up to the open one
    first        the current rows as additions, then every change ("start" = "now": only the changes, or a number)

A reader holds the history from its last committed offset on, since Spark reads [start, end) again after a failure. With
option("name", …) the hold outlives the query, so that a query that is started again from its checkpoint continues.
Without a name, the hold ends with the process in which Spark plans the query; continuing then works only as far back as
the db keeps history.
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

from kpg.cluster.data_requests import UpdatesRequest
from kpg.errors import ProgramError
from kpg.spark.batch_reader import Shard, changes_as_batches
from kpg.spark.driver_requests import HeldHistory, HoldHistoryRequest, ReadEndRequest, ReleaseHistoryRequest
from kpg.spark.site import RelationPlacement
from kpg.spark.task_client import TaskClient, client_of

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
        self.placement: RelationPlacement = source.client().placement(self.name)
        self.held = False
        self.first: int | None = None  # where a query without a checkpoint begins
        self.last: int | None = None  # for Trigger.AvailableNow: the end of the stream

    def client(self) -> TaskClient:
        """Return this process's connections to the db."""
        assert self.site is not None
        return client_of(self.site)

    # Offsets

    def initialOffset(self) -> dict[str, int]:
        """Return where a query without a checkpoint begins.

        Spark calls this twice for its first batch: before it plans the end of the batch, and before it reads. Both
        calls must return the same time, or the rows between the two would be lost.
        """
        if self.first is None:
            self.first = self._begin()
        return {"time": self.first}

    def _begin(self) -> int:
        """Hold the history from the start of the stream on; return its first time."""
        if self.start.isdecimal():
            self._ensure_held(int(self.start))
            return int(self.start)
        held = self._hold(None)
        return held.epoch if self.start == "now" else 0

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        """Return how far to read next: all complete epochs, or as many rows as the limit allows."""
        begin = int(start["time"])
        self._ensure_held(begin)
        rows = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        end = self.client().ask(ReadEndRequest(self.reader, begin, rows))
        return {"time": max(begin, end if self.last is None else min(end, self.last))}

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return the limit of option max_rows."""
        return ReadAllAvailable() if self.max_rows is None else ReadMaxRows(self.max_rows)

    def prepareForTriggerAvailableNow(self) -> None:
        """Make the open epoch the end of the stream."""
        self.last = self.client().placement(self.name).epoch

    def reportLatestOffset(self) -> dict[str, int]:
        """Return the offset of all complete epochs."""
        return {"time": self.client().placement(self.name).epoch}

    def _ensure_held(self, begin: int) -> None:
        """Hold the history needed to read from `begin` on, if it is not held yet."""
        if not self.held:
            self._hold(begin - 1 if begin > 0 else None)

    def _hold(self, at: int | None) -> HeldHistory:
        request = HoldHistoryRequest(self.reader, self.name, at, lasting=self.named, bound=not self.named)
        held = self.client().ask(request)
        self.held = True
        return held

    def commit(self, end: dict[str, int]) -> None:
        """Move the hold forward: Spark will not read times before `end` again."""
        if int(end["time"]) > 0:
            at = int(end["time"]) - 1
            self.client().ask(HoldHistoryRequest(self.reader, self.name, at, lasting=self.named))

    def stop(self) -> None:
        """End the query; a named hold stays until the query is started again."""
        if self.held and not self.named:
            self.client().ask(ReleaseHistoryRequest(self.reader))

    # Rows

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        """Plan one partition for each rank."""
        begin, stop = int(start["time"]), int(end["time"])
        if begin >= stop:
            return []
        self._ensure_held(begin)
        request = UpdatesRequest(self.name, self.reader, begin, stop)
        return [Shard(address, request) for address in self.client().placement(self.name).ranks]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Read the updates of a rank, in a task."""
        assert isinstance(partition, Shard)
        client = self.client()
        client.close_unused((partition.address, *self.placement.ranks))
        _, (shard,) = client.rank(partition.address).ask(partition.request)
        return changes_as_batches(self.placement.schema, shard, client.symbols)
