"""TPC-H as a stream: rows arrive round-robin among the tables, then the oldest orders leave with their lineitems.

    stream = TpchStream(load_tables(1), columns_read(3))
    for batch in stream.loading(100_000): ...        TableChange(table, rows, diff=+1) of each table
    for batch in stream.leaving(100_000): ...        diff=-1
    stream.present()                                 the rows of each table after the batches that were taken

A batch is one logical time. Batches are slices of the tables, without a copy of inserted rows. Deleted rows are copied
once, before the first batch of them is taken.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

DELETED_SHARE = 0.5  # of the orders, the oldest ones


@dataclass(frozen=True, slots=True)
class TableChange:
    """Rows that enter a table (diff 1) or leave it (diff -1)."""

    table: str
    rows: pa.Table
    diff: int


Batch = list[TableChange]


class TpchStream:
    """The changes of the tables that a query reads, with the columns that it reads."""

    def __init__(
        self, tables: Mapping[str, pa.Table], reads: Mapping[str, Sequence[str]], deleted_share: float = DELETED_SHARE
    ) -> None:
        """Take all columns of orders and lineitem, from which the order of deletions follows."""
        self.tables = {name: tables[name].select(list(columns)) for name, columns in reads.items()}
        self.loaded = dict.fromkeys(self.tables, 0)
        self.left = dict.fromkeys(self.tables, 0)
        self.by_age = {name: rows for name, rows in oldest_first(tables).items() if name in self.tables}
        self.deleted_share = deleted_share

    def rows(self) -> int:
        """Return the number of rows of all tables."""
        return sum(table.num_rows for table in self.tables.values())

    def loading(self, size: int) -> Iterator[Batch]:
        """Yield batches of `size` rows, as many of each table that still has rows."""
        while any(self.loaded[name] < table.num_rows for name, table in self.tables.items()):
            shares = self._shares(size)
            yield [self._load(name, share) for name, share in shares.items() if share]

    def _shares(self, size: int) -> dict[str, int]:
        """Return how many rows of each table are in the next batch."""
        rest = {name: table.num_rows - self.loaded[name] for name, table in self.tables.items()}
        shares = dict.fromkeys(rest, 0)
        while size and any(rest.values()):
            active = [name for name, rows in rest.items() if rows]
            portion = max(1, size // len(active))
            for name in active:
                taken = min(portion, rest[name], size)
                shares[name] += taken
                rest[name] -= taken
                size -= taken
        return shares

    def _load(self, name: str, rows: int) -> TableChange:
        start = self.loaded[name]
        self.loaded[name] += rows
        return TableChange(name, self.tables[name].slice(start, rows), 1)

    def leaving(self, size: int) -> Iterator[Batch]:
        """Yield batches of about `size` rows: the oldest orders, and their lineitems in the same batch."""
        steps = self.leaving_batches(size)
        if not steps:
            return
        orders = next(iter(self.by_age.values())).orders
        bounds = np.linspace(0, round(orders * self.deleted_share), steps + 1).astype(np.int64)
        sorted_rows = {
            name: self.tables[name].take(rows.positions[: rows.ends[bounds[-1]]]) for name, rows in self.by_age.items()
        }
        for until in bounds[1:]:
            yield [self._leave(name, sorted_rows[name], int(until)) for name in self.by_age]

    def leaving_batches(self, size: int) -> int:
        """Return the number of batches that `leaving` yields: none if the query reads neither orders nor lineitem."""
        rows = sum(len(rows.positions) for rows in self.by_age.values()) * self.deleted_share
        return max(1, round(rows / size)) if self.by_age else 0

    def churning(self, size: int, batches: int) -> Iterator[Batch]:
        """Yield batches of `size` rows that leave and return in turn, from the tables in proportion to their sizes.

        After an even number of batches, all rows are present that were before.
        """
        names, rows = list(self.tables), [table.num_rows for table in self.tables.values()]
        ends = [round(sum(rows[:count]) / sum(rows) * size) for count in range(len(rows) + 1)]
        first = dict.fromkeys(names, 0)
        for turn in range(batches // 2):
            if size < len(names):  # rows of one table, in turn, of the largest most often
                shares = {names[pick(rows, turn)]: size}
            else:
                shares = {name: end - start for name, (start, end) in zip(names, pairwise(ends), strict=True)}
            slices = []
            for name, share in shares.items():
                start = first[name] if first[name] + share <= self.tables[name].num_rows else 0
                first[name] = start + share
                slices.append((name, self.tables[name].slice(start, share)))
            for diff in (-1, 1):
                yield [TableChange(name, table, diff) for name, table in slices]

    def _leave(self, name: str, sorted_rows: pa.Table, until: int) -> TableChange:
        start, end = self.left[name], int(self.by_age[name].ends[until])
        self.left[name] = end
        return TableChange(name, sorted_rows.slice(start, end - start), -1)

    def present(self) -> dict[str, pa.Table]:
        """Return the rows of each table that have entered and not left."""
        return {name: self._present(name, table) for name, table in self.tables.items()}

    def _present(self, name: str, table: pa.Table) -> pa.Table:
        if not self.left[name]:
            return table.slice(0, self.loaded[name])
        kept = np.ones(table.num_rows, bool)
        kept[self.by_age[name].positions[: self.left[name]]] = False
        return table.filter(pa.array(kept))


def pick(rows: Sequence[int], turn: int) -> int:
    """Return the table of a turn, in proportion to the row counts: the same for the same turn."""
    position = (turn * 0.6180339887498949) % 1.0  # the golden ratio spreads turns evenly
    return int(np.searchsorted(np.cumsum(rows) / sum(rows), position, side="right"))


@dataclass(frozen=True, slots=True)
class RowsByAge:
    """The rows of a table by the age of their order, the oldest first."""

    positions: np.ndarray  # int64[n]: row numbers
    ends: np.ndarray  # int64[orders + 1]: the row count of the first n orders

    @property
    def orders(self) -> int:
        """The number of orders."""
        return len(self.ends) - 1


def oldest_first(tables: Mapping[str, pa.Table]) -> dict[str, RowsByAge]:
    """Return the rows of orders and of lineitem by date of order, then by key."""
    orders = tables["orders"]
    dates = orders["o_orderdate"].cast(pa.int32()).to_numpy()
    keys = orders["o_orderkey"].to_numpy()
    order = np.lexsort([keys, dates])
    rank = np.empty(int(keys.max()) + 1, np.int64)
    rank[keys[order]] = np.arange(len(keys))
    lines = rank[tables["lineitem"]["l_orderkey"].to_numpy()]
    counts = np.bincount(lines, minlength=len(keys))
    return {
        "orders": RowsByAge(order, np.arange(len(keys) + 1)),
        "lineitem": RowsByAge(np.argsort(lines, kind="stable"), np.concatenate([[0], np.cumsum(counts)])),
    }


def order_columns(reads: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Return the columns to load for a stream: those that a query reads, and those that order the deletions."""
    wanted = {name: list(columns) for name, columns in reads.items()}
    for name, needed in (("orders", ["o_orderkey", "o_orderdate"]), ("lineitem", ["l_orderkey"])):
        columns = wanted.setdefault(name, [])
        columns += [column for column in needed if column not in columns]
    return wanted


def lineitem_batches(tables: Mapping[str, pa.Table], lines: int, batches: int) -> list[Batch]:
    """Return the last orders of the tables in batches of about `lines` lineitems each, with their orders."""
    keys = tables["lineitem"]["l_orderkey"].to_numpy()  # ascending, as tpchgen writes them
    starts = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
    cuts = [len(keys)]
    for _ in range(batches):
        cuts.append(int(starts[np.searchsorted(starts, cuts[-1] - lines, side="right") - 1]))
    cuts.reverse()
    parts = []
    for start, end in zip(cuts[:-1], cuts[1:], strict=True):
        window = pc.is_in(tables["orders"]["o_orderkey"], pa.array(np.unique(keys[start:end])))
        parts.append(
            [
                TableChange("orders", tables["orders"].filter(window), 1),
                TableChange("lineitem", tables["lineitem"].slice(start, end - start), 1),
            ]
        )
    return parts
