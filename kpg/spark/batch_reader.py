"""spark.read.format("kpg"): a relation or answer as of one time, one partition for each rank.

The time is chosen when Spark plans the read. The history it needs is held under a lease, so that tasks that run later,
or again, read the same rows. Equality filters on the first columns that a trace is sorted by become look-ups.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, EqualTo, Filter, In, InputPartition

from kpg.cluster.data_requests import ShardRequest, UpdatesRequest
from kpg.cluster.request_frames import RowBlock, symbolic_lanes
from kpg.columns.count_limits import counts_as_int64, repeat_rows
from kpg.columns.row_owners import key_owners
from kpg.columns.schema import Schema
from kpg.columns.symbols import Symbols
from kpg.columns.table_rows import decode, encode
from kpg.columns.updates import Ints, Updates, constant, spread
from kpg.errors import KpgError
from kpg.spark.driver_requests import HoldHistoryRequest
from kpg.spark.schemas import with_change
from kpg.spark.site import RelationPlacement
from kpg.spark.task_client import client_of

if TYPE_CHECKING:
    from kpg.spark.data_source import KpgSource

LEASE_SECONDS = 600  # a planned read holds its history for this long; a task that begins later may fail
BATCH_ROWS = 1 << 16  # rows of an Arrow batch
MAX_LOOKUP_KEYS = 10_000  # for more, a scan is cheaper

Key = tuple[Any, ...]


class Shard(InputPartition):
    """The partition of one rank: where it is, and the request for its rows."""

    def __init__(
        self, address: tuple[str, int], request: ShardRequest | UpdatesRequest, keys: Sequence[Key] = ()
    ) -> None:
        super().__init__(request.name)
        self.address = address
        self.request = request
        self.keys = keys  # the values of a look-up, by the columns of the request


class BatchReader(DataSourceReader):
    """A relation or answer as of one time."""

    def __init__(self, source: KpgSource) -> None:
        assert source.site is not None or source.client()
        self.site = source.site
        self.name = source.text("relation")
        self.as_of = source.number("as_of")
        self.changes = source.flag("changes")
        self.lease_seconds = source.number("lease") or LEASE_SECONDS
        self.placement: RelationPlacement = source.client().placement(self.name)
        self.wanted: dict[str, list[Any]] = {}  # column → the values that filters allow

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Take equalities as look-ups, if rows are sorted by their columns; Spark applies all filters again."""
        if not self.changes:
            for candidate in filters:
                values = values_of(candidate)
                if values is not None:
                    self.wanted.setdefault(candidate.attribute[0], values)  # type: ignore[attr-defined]
        return filters

    def partitions(self) -> list[InputPartition]:
        """Plan one partition for each rank that may have rows."""
        assert self.site is not None
        client, hold = client_of(self.site), uuid4().hex
        held = client.ask(HoldHistoryRequest(hold, self.name, self.as_of, self.lease_seconds))
        as_of = held.epoch - 1 if self.as_of is None else self.as_of
        placement = self.placement = client.placement(self.name)
        request: ShardRequest | UpdatesRequest
        if self.changes:
            request = UpdatesRequest(self.name, hold, 0, as_of + 1)
            return [Shard(address, request) for address in placement.ranks]
        columns, keys = self._keys(placement)
        request = ShardRequest(self.name, as_of, tuple(columns), hold)
        ranks: Iterable[int] = range(len(placement.ranks))
        if columns and tuple(columns) == placement.placed:
            ranks = owners(placement.schema.select(columns), keys, len(placement.ranks))
        return [Shard(placement.ranks[rank], request, keys) for rank in ranks]

    def _keys(self, placement: RelationPlacement) -> tuple[list[str], list[Key]]:
        """Return the longest prefix of the sort order that filters fix, and its values; none for a scan."""
        order = [*placement.placed, *[name for name in placement.schema.names if name not in placement.placed]]
        columns: list[str] = []
        for name in order:
            if name not in self.wanted:
                break
            columns.append(name)
        values = [self.wanted[name] for name in columns]
        if not columns or np.prod([len(alternatives) for alternatives in values]) > MAX_LOOKUP_KEYS:
            return [], []
        keys = list(product(*values))
        try:
            encode(placement.schema.select(columns), keys, Symbols())
        except KpgError:  # a value that no row can have: Spark compares it
            return [], []
        return columns, keys

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Read the rows of a rank, in a task."""
        assert isinstance(partition, Shard) and self.site is not None
        client, request = client_of(self.site), partition.request
        client.close_unused((partition.address, *self.placement.ranks))
        blocks = []
        if isinstance(request, ShardRequest) and request.keys:
            wanted = self.placement.schema.select(request.keys)
            keys = encode(wanted, list(partition.keys), client.symbols)
            blocks = [RowBlock(Updates(keys, constant((0,)), constant((1,))), symbolic_lanes(wanted))]
        _, (shard,) = client.rank(partition.address).ask(request, blocks)
        if self.changes:
            return changes_as_batches(self.placement.schema, shard, client.symbols)
        return rows_as_batches(self.name, self.placement.schema, shard, client.symbols)


def values_of(candidate: Filter) -> list[Any] | None:
    """Return the values that a filter allows for its column; None for a filter of another kind."""
    if len(getattr(candidate, "attribute", ())) != 1:
        return None
    if isinstance(candidate, EqualTo):
        return None if candidate.value is None else [candidate.value]
    if isinstance(candidate, In):
        return [value for value in candidate.value if value is not None]
    return None


def owners(schema: Schema, keys: list[Key], ranks: int) -> list[int]:
    """Return the ranks that may have rows with some keys."""
    symbols = Symbols()
    lanes = encode(schema, keys, symbols)
    texts = tuple(type_.is_symbolic for type_ in schema.lane_types())
    return [int(rank) for rank in np.unique(key_owners(lanes, texts, symbols, ranks))]


def rows_as_batches(name: str, schema: Schema, shard: Updates, symbols: Symbols) -> Iterator[Any]:
    """Return rows as Arrow batches, each row as often as its count."""
    counts = shard.diffs[0]
    if counts.shape[0] == 1:
        counts = np.broadcast_to(counts, len(shard))
    data = shard.data if (counts == 1).all() else repeat_rows(name, shard.data, counts)
    return as_batches(schema, data, symbols)


def changes_as_batches(schema: Schema, shard: Updates, symbols: Symbols) -> Iterator[Any]:
    """Return updates as Arrow batches: rows with their time and diff."""
    n = len(shard)
    diffs = counts_as_int64("the answer", schema, shard.data, spread(shard.diffs, n)[0], symbols)
    data = np.concatenate([shard.data, spread(shard.times, n)[:1], diffs.reshape(1, n)])
    return as_batches(with_change(schema), data, symbols)


def as_batches(schema: Schema, data: Ints, symbols: Symbols) -> Iterator[Any]:
    """Return lanes as Arrow batches, of types that Spark takes without a cast."""
    from pyspark.sql.pandas.types import to_arrow_schema

    from kpg.spark.schemas import spark_column, spark_schema

    target: Any = to_arrow_schema(spark_schema(schema), timezone="UTC")
    for begin in range(0, data.shape[1], BATCH_ROWS):
        table = decode(schema, np.ascontiguousarray(data[:, begin : begin + BATCH_ROWS]), symbols)
        parts = zip(schema.types, table.columns, target, strict=True)
        columns = [spark_column(type_, column, item.type) for type_, column, item in parts]
        yield from pa.Table.from_arrays(columns, schema=target).to_batches()
