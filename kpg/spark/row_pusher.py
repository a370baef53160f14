"""Rows from a task to the ranks that own them: Arrow batches become lanes, are split by owner, and are staged.

    pusher = RowPusher(client, placement, key, kind)
    for batch in batches: pusher.push(batch)
    attempt = pusher.finish()                  # to be named when publishing

A pusher collects batches until a message is worth its cost. Staged rows are in no relation yet: an attempt that is
never published has no effect. No Python work per row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from kpg.cluster.data_connections import DataClient
from kpg.cluster.data_requests import StageRequest
from kpg.cluster.rank_commands.command_kinds import StagingKey
from kpg.cluster.request_frames import RowBlock, symbolic_lanes
from kpg.columns.count_limits import check_diffs
from kpg.columns.row_owners import key_owners
from kpg.columns.schema import INT64, Schema
from kpg.columns.table_rows import encode
from kpg.columns.updates import Ints, Updates, constant
from kpg.columns.upserts import last_row_of_each_key
from kpg.errors import SchemaMismatch
from kpg.spark.driver_requests import StagedAttempt
from kpg.spark.site import RelationPlacement
from kpg.spark.task_client import TaskClient

MESSAGE_ROWS = 1 << 17  # rows are collected up to this number, so that the cost of a message is small beside its rows


@dataclass(frozen=True, slots=True)
class RowKind:
    """The effect of a row of a DataFrame on a relation: it is inserted, unless an option says otherwise."""

    diff: str | None = None  # the column with the multiplicity by which a row is added (or removed, if negative)
    upsert: bool = False  # the row replaces the row with its key

    def columns(self, placement: RelationPlacement) -> Schema:
        """Return the columns that rows must have."""
        if self.upsert and not placement.key:
            raise SchemaMismatch(
                f"{placement.name} has no key to upsert by", hint="Create it with one: db.input(..., key=...)."
            )
        if self.upsert and self.diff:
            raise SchemaMismatch("rows are either upserts or have a diff, not both")
        return placement.schema if self.diff is None else placement.schema.concat(Schema.of({self.diff: INT64}))


class RowPusher:
    """Stages the rows of one attempt of one task with the ranks that own them."""

    def __init__(self, client: TaskClient, placement: RelationPlacement, key: StagingKey, kind: RowKind) -> None:
        self._client = client
        self._placement = placement
        self._kind = kind
        self._columns = kind.columns(placement)
        self._symbolic = symbolic_lanes(placement.schema)
        self._owner_lanes = list(placement.schema.lanes_of(placement.placed))
        self._owner_texts = tuple(placement.schema.lane_types()[lane].is_symbolic for lane in self._owner_lanes)
        client.close_unused(placement.ranks)
        self._request = StageRequest(placement.name, key)
        self._batches: list[Any] = []
        self._batch_rows = 0
        self._sent: list[tuple[DataClient, int]] = []  # the connection and the number of each request
        self.rows = 0

    def push(self, batch: pa.RecordBatch) -> None:
        """Add some rows."""
        self._batches.append(batch)
        self._batch_rows += batch.num_rows
        if self._batch_rows >= MESSAGE_ROWS:
            self._flush()

    def finish(self) -> StagedAttempt:
        """Send the remaining rows, wait until all ranks have confirmed theirs, and return the attempt to publish."""
        if self._batches:
            self._flush()
        for connection, number in self._sent:
            connection.result(self._request, number)
        return StagedAttempt(self._request.key, self.rows, self._placement.generation)

    def _flush(self) -> None:
        table = pa.Table.from_batches(self._batches)
        self._batches, self._batch_rows = [], 0
        lanes = encode(self._columns, table, self._client.symbols)
        data, diffs = lanes, constant((1,))
        if self._kind.diff is not None:
            data, diffs = np.ascontiguousarray(lanes[:-1]), np.ascontiguousarray(lanes[-1:])
            check_diffs(diffs)
        if self._kind.upsert:
            data = last_row_of_each_key(data, list(self._placement.schema.lanes_of(self._placement.key)))
        self.rows += data.shape[1]
        for rank, part in self._split(data, diffs):
            connection = self._client.rank(self._placement.ranks[rank])
            self._sent.append((connection, connection.send(self._request, [RowBlock(part, self._symbolic)])))

    def _split(self, data: Ints, diffs: Ints) -> list[tuple[int, Updates]]:
        """Split rows by the rank that owns them."""
        now, ranks = constant((0,)), len(self._placement.ranks)
        if ranks == 1:
            return [(0, Updates(data, now, diffs))]
        owners = key_owners(data[self._owner_lanes], self._owner_texts, self._client.symbols, ranks)
        order = np.argsort(owners.astype(np.uint16), kind="stable")  # a radix sort
        ends = np.cumsum(np.bincount(owners, minlength=ranks)).tolist()
        parts = []
        for rank, (begin, end) in enumerate(zip([0, *ends[:-1]], ends, strict=True)):
            if end > begin:
                owned = order[begin:end]
                owned_diffs = diffs if diffs.shape[1] == 1 else diffs.take(owned, axis=1)
                parts.append((rank, Updates(data.take(owned, axis=1), now, owned_diffs)))
        return parts
