"""spark.read.format("kpg"): a relation or answer as of one time, a partition from each rank.

The time is chosen when Spark plans the read, and the history it needs is held under a lease, so that tasks that run
later, or again, read the same. Filters of equality on the first columns that a trace is sorted by become look-ups.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, EqualTo, Filter, In, InputPartition

from kpg.cluster.message import Rows, symbolic_lanes
from kpg.columns.row_owners import key_owners
from kpg.columns.schema import Schema
from kpg.columns.symbols import Symbols
from kpg.columns.table_rows import decode, encode
from kpg.columns.updates import Ints, Updates, constant, spread
from kpg.errors import DataError, KpgError
from kpg.spark.client import client_of
from kpg.spark.schemas import with_change
from kpg.spark.site import RelationPlacement

if TYPE_CHECKING:
    from kpg.spark.data_source import KpgSource

LEASE = 600  # seconds that a planned read may still begin
SLICE = 1 << 16  # rows of an Arrow batch
MOST_KEYS = 10_000  # a look-up of more is a scan


class Shard(InputPartition):
    """The rows that one rank has."""

    def __init__(self, address: tuple[str, int], request: dict[str, Any]) -> None:
        super().__init__(request["name"])
        self.address = address
        self.request = request


class BatchReader(DataSourceReader):
    """A relation or answer as of one time."""

    def __init__(self, source: KpgSource) -> None:
        assert source.site is not None or source.client()
        self.site = source.site
        self.name = source.text("relation")
        self.as_of = source.number("as_of")
        self.changes = source.flag("changes")
        self.lease = source.number("lease") or LEASE
        self.place: RelationPlacement = source.client().place(self.name)
        self.wanted: dict[str, list[Any]] = {}  # column, the values it may have

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Take equalities as look-ups, if the columns are sorted first; Spark checks all of them again."""
        if not self.changes:
            for each in filters:
                values = values_of(each)
                if values is not None and each.attribute[0] not in self.wanted:  # type: ignore[attr-defined]
                    self.wanted[each.attribute[0]] = values  # type: ignore[attr-defined]
        return filters

    def partitions(self) -> list[InputPartition]:
        """One for each rank that may have rows."""
        assert self.site is not None
        client, hold = client_of(self.site), uuid4().hex
        at = None if self.as_of is None else self.as_of
        held = client.ask("hold", reader=hold, name=self.name, at=at, seconds=self.lease)
        as_of = held["epoch"] - 1 if at is None else at
        place = self.place = client.place(self.name)
        request: dict[str, Any] = {"name": self.name, "hold": hold}
        if self.changes:
            request |= {"do": "updates", "start": 0, "end": as_of + 1}
            return [Shard(address, request) for address in place.ranks]
        request |= {"do": "shard", "as_of": as_of}
        columns, keys = self._keys(place)
        if not columns:
            return [Shard(address, request) for address in place.ranks]
        request |= {"keys": columns, "values": keys}
        ranks = range(len(place.ranks))
        if columns == list(place.placed):
            ranks = owners(place.schema.select(columns), keys, len(place.ranks))  # type: ignore[assignment]
        return [Shard(place.ranks[rank], request) for rank in ranks]

    def _keys(self, place: RelationPlacement) -> tuple[list[str], list[tuple[Any, ...]]]:
        """The first columns of the order of rows whose values are given, and those values."""
        order = [*place.placed, *[name for name in place.schema.names if name not in place.placed]]
        columns: list[str] = []
        for name in order:
            if name not in self.wanted:
                break
            columns.append(name)
        many = [self.wanted[name] for name in columns]
        if not columns or np.prod([len(values) for values in many]) > MOST_KEYS:
            return [], []
        keys = list(product(*many))
        try:
            encode(place.schema.select(columns), keys, Symbols())
        except KpgError:  # a value that no row can have is for Spark to compare
            return [], []
        return columns, keys

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """In a task: ask the rank."""
        assert isinstance(partition, Shard) and self.site is not None
        client, request = client_of(self.site), dict(partition.request)
        client.tidy((partition.address, *self.place.ranks))
        blocks = []
        if "values" in request:
            wanted = self.place.schema.select(request["keys"])
            keys = encode(wanted, request.pop("values"), client.symbols)
            blocks = [Rows(Updates(keys, constant((0,)), constant((1,))), symbolic_lanes(wanted))]
        found = client.rank(partition.address).ask(request, blocks)[1][0]
        if self.changes:
            return changes_as_batches(self.place.schema, found, client.symbols)
        return rows_as_batches(self.name, self.place.schema, found, client.symbols)


def values_of(each: Filter) -> list[Any] | None:
    """The values that a filter leaves a column, if it is of that kind."""
    if len(getattr(each, "attribute", ())) != 1:
        return None
    if isinstance(each, EqualTo):
        return None if each.value is None else [each.value]
    if isinstance(each, In):
        return [value for value in each.value if value is not None]
    return None


def owners(schema: Schema, keys: list[tuple[Any, ...]], ranks: int) -> list[int]:
    """The ranks that may have rows of some keys."""
    symbols = Symbols()
    lanes = encode(schema, keys, symbols)
    texts = tuple(type_.is_symbolic for type_ in schema.types)
    return [int(rank) for rank in np.unique(key_owners(lanes, texts, symbols, ranks))]


def rows_as_batches(name: str, schema: Schema, found: Updates, symbols: Symbols) -> Iterator[Any]:
    """Rows, each as often as it is there."""
    counts = found.diffs[0]
    if (counts < 0).any():
        raise DataError(f"{name} holds a row fewer than zero times", hint="Read its changes instead.")
    data = found.data if counts.shape[0] == 1 and counts[0] == 1 else np.repeat(found.data, counts, axis=1)
    return as_batches(schema, data, symbols)


def changes_as_batches(schema: Schema, found: Updates, symbols: Symbols) -> Iterator[Any]:
    """Rows, and when and how often each was added."""
    n = len(found)
    data = np.concatenate([found.data, spread(found.times, n)[:1], spread(found.diffs, n)])
    return as_batches(with_change(schema), data, symbols)


def as_batches(schema: Schema, data: Ints, symbols: Symbols) -> Iterator[Any]:
    """Lanes as Arrow batches, of types that Spark takes as they are."""
    from pyspark.sql.pandas.types import to_arrow_schema

    from kpg.spark.schemas import spark_schema

    target: Any = to_arrow_schema(spark_schema(schema), timezone="UTC")
    for begin in range(0, data.shape[1], SLICE):
        table = decode(schema, np.ascontiguousarray(data[:, begin : begin + SLICE]), symbols)
        columns = [column.cast(item.type) for column, item in zip(table.columns, target, strict=True)]
        yield from pa.Table.from_arrays(columns, schema=target).to_batches()
