"""Rows from a task to the ranks that own them: Arrow batches become lanes, are split by owner and staged.

    with Pusher(client, place, key, change) as pusher:
        for batch in batches: pusher.push(batch)
        attempt = pusher.finish()                  # what to name when publishing

Batches are gathered until there are enough rows to be worth a message. Staged rows are in no relation yet: an attempt
that nobody publishes is as if it had never been. No Python work per row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from kpg.cluster.data_connections import DataClient
from kpg.cluster.message import Rows, symbolic_lanes
from kpg.columns.row_owners import key_owners
from kpg.columns.schema import INT64, Schema
from kpg.columns.table_rows import encode
from kpg.columns.updates import Ints, Updates, constant
from kpg.columns.upserts import last_row_of_each_key
from kpg.errors import SchemaMismatch
from kpg.spark.client import Client
from kpg.spark.site import RelationPlacement

CHUNK = 1 << 17  # rows in a message


@dataclass(frozen=True, slots=True)
class RowKind:
    """What a row of a DataFrame does to a relation: it is inserted, unless said otherwise."""

    diff: str | None = None  # the column that says how often it is added (or removed, if negative)
    upsert: bool = False  # it replaces the row with its key

    def columns(self, place: RelationPlacement) -> Schema:
        """The columns that rows must have."""
        if self.upsert and not place.key:
            raise SchemaMismatch(f"{place.name} has no key to upsert by", hint="Say it: db.input(..., key=...).")
        if self.upsert and self.diff:
            raise SchemaMismatch("rows are either upserts or have a diff, not both")
        return place.schema if self.diff is None else place.schema.concat(Schema.of({self.diff: INT64}))


class Pusher:
    """Brings the rows of one attempt of one task to the ranks."""

    def __init__(self, client: Client, place: RelationPlacement, key: list[Any], change: RowKind) -> None:
        self._client = client
        self._place = place
        self._key = key
        self._change = change
        self._columns = change.columns(place)
        self._symbolic = symbolic_lanes(place.schema)
        self._owner_lanes = [place.schema.index(name) for name in place.placed]
        self._owner_texts = tuple(place.schema.types[lane].is_symbolic for lane in self._owner_lanes)
        client.tidy(place.ranks)
        self._waiting: list[Any] = []
        self._waiting_rows = 0
        self._sent: list[tuple[DataClient, int]] = []
        self.rows = 0

    def push(self, batch: pa.RecordBatch) -> None:
        """Take some rows."""
        self._waiting.append(batch)
        self._waiting_rows += batch.num_rows
        if self._waiting_rows >= CHUNK:
            self._flush()

    def finish(self) -> dict[str, Any]:
        """Send what is left, wait until all ranks have it all; the attempt, as `publish` wants it."""
        if self._waiting:
            self._flush()
        for visit, number in self._sent:
            visit.result(number)
        return {"key": self._key, "rows": self.rows, "generation": self._place.generation}

    def _flush(self) -> None:
        table = pa.Table.from_batches(self._waiting)
        self._waiting, self._waiting_rows = [], 0
        lanes = encode(self._columns, table, self._client.symbols)
        data, diffs = lanes, constant((1,))
        if self._change.diff is not None:
            data, diffs = np.ascontiguousarray(lanes[:-1]), np.ascontiguousarray(lanes[-1:])
        if self._change.upsert:
            data = last_row_of_each_key(data, [self._place.schema.index(name) for name in self._place.key])
        self.rows += data.shape[1]
        request = {"do": "stage", "name": self._place.name, "key": self._key}
        for rank, part in self._split(data, diffs):
            visit = self._client.rank(self._place.ranks[rank])
            self._sent.append((visit, visit.send(request, [Rows(part, self._symbolic)])))

    def _split(self, data: Ints, diffs: Ints) -> list[tuple[int, Updates]]:
        """The rows of each rank."""
        now, ranks = constant((0,)), len(self._place.ranks)
        if ranks == 1:
            return [(0, Updates(data, now, diffs))]
        owners = key_owners(data[self._owner_lanes], self._owner_texts, self._client.symbols, ranks)
        order = np.argsort(owners.astype(np.uint16), kind="stable")  # a radix sort
        ends = np.cumsum(np.bincount(owners, minlength=ranks)).tolist()
        found = []
        for rank, (begin, end) in enumerate(zip([0, *ends[:-1]], ends, strict=True)):
            if end > begin:
                mine = order[begin:end]
                part = diffs if diffs.shape[1] == 1 else diffs.take(mine, axis=1)
                found.append((rank, Updates(data.take(mine, axis=1), now, part)))
        return found
