"""Records: a transaction as bytes, text by value; and notes, which are JSON.

    decode(encode(transaction, symbols), other symbols)  ==  transaction        up to the numbers of symbols

A transaction is all input changes of one step of the clock, on one worker: for each relation a block of lanes, times
and diffs as they lie in memory; in place of symbol numbers stand positions in a list of the values that follow. Times
may be later than `upper`: such updates wait. Cost: one copy of the columns, and a call per distinct text.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from kpg.algebra.frontier import Frontier
from kpg.columns.lane_values import NULL
from kpg.columns.schema import Schema
from kpg.columns.symbols import Symbols
from kpg.columns.updates import Ints, Updates

TRANSACTION, NOTE = b"T", b"N"
Bytes = bytes | memoryview


class Origin(NamedTuple):
    """Whose batch a transaction is: a writer that repeats itself after a crash says so again."""

    source: str
    batch: int


@dataclass(frozen=True, slots=True)
class Transaction:
    """Changes of relations, by their numbers, in the order of their schemas' columns; complete up to `upper`."""

    upper: Frontier
    changes: tuple[tuple[int, Updates], ...] = ()
    origins: tuple[Origin, ...] = ()


def encode_note(note: Mapping[str, Any]) -> bytes:
    """A note as a record."""
    return NOTE + json.dumps(note, separators=(",", ":")).encode()


def is_note(record: bytes) -> bool:
    """Whether a record is a note."""
    return record[:1] == NOTE


def decode_note(record: bytes) -> dict[str, Any]:
    """The note of a record."""
    return json.loads(record[1:])  # type: ignore[no-any-return]


def encode_transaction(transaction: Transaction, schema_of: Callable[[int], Schema], symbols: Symbols) -> bytes:
    """A transaction as a record: a header of whole numbers, then the blocks it tells the sizes of."""
    upper = transaction.upper.elements
    header = [len(upper), len(upper[0]) if upper else 0]
    blocks: list[Bytes] = []
    for time in upper:
        header += time
    header.append(len(transaction.origins))
    for source, batch in transaction.origins:
        text = source.encode()
        header += [len(text), batch]
        blocks.append(text)
    header.append(len(transaction.changes))
    for relation, updates in transaction.changes:
        _encode_change(relation, updates, schema_of(relation), symbols, header, blocks)
    start = struct.pack(f"<cQ{len(header)}q", TRANSACTION, len(header), *header)
    return b"".join((start, *blocks))


def _encode_change(
    relation: int, updates: Updates, schema: Schema, symbols: Symbols, header: list[int], blocks: list[Bytes]
) -> None:
    data = updates.data
    texts: list[tuple[int, list[int]]] = []
    values: list[bytes] = []
    if not schema.all_int64:
        for lane, kind in enumerate(schema.types):
            if kind.is_symbolic:
                data = data.copy() if data is updates.data else data
                data[lane], sizes, content = _by_value(data[lane], symbols)
                texts.append((lane, sizes))
                values.append(np.cumsum([0, *sizes], dtype="<i8").tobytes())
                values.append(content)
    times, diffs = updates.times, updates.diffs
    header += [relation, *data.shape, *times.shape, *diffs.shape, len(texts)]
    for lane, sizes in texts:
        header += [lane, len(sizes), sum(sizes)]
    blocks += [_bytes(data), _bytes(times), _bytes(diffs), *values]


def _bytes(block: Ints) -> Bytes:
    """What a block lies in, copied if it is small: to copy a large one once, into the record, is enough."""
    return block.tobytes() if block.size < 1 << 16 else block.data.cast("B")


def _by_value(lane: Ints, symbols: Symbols) -> tuple[Ints, list[int], bytes]:
    """Positions in the distinct values (NULL stays), the values' sizes in bytes, and the values."""
    distinct, inverse = symbols.distinct(lane)
    present = distinct != NULL
    position = np.where(present, np.cumsum(present) - 1, NULL)
    values = [v.encode() if isinstance(v, str) else v for v in symbols.values(distinct[present])]
    return position[inverse], list(map(len, values)), b"".join(values)


class RecordReader:
    """Takes a record apart, front to back."""

    def __init__(self, record: bytes) -> None:
        (count,) = struct.unpack_from("<Q", record, 1)
        self._numbers: Iterator[int] = iter(struct.unpack_from(f"<{count}q", record, 9))
        self._record = record
        self._at = 9 + 8 * count

    def number(self) -> int:
        """The next number of the header."""
        return next(self._numbers)

    def numbers(self, count: int) -> list[int]:
        """The next so many."""
        return [next(self._numbers) for _ in range(count)]

    def take(self, size: int) -> bytes:
        """The next bytes of the blocks."""
        taken = self._record[self._at : self._at + size]
        self._at += size
        return taken

    def block(self, lanes: int, n: int) -> Ints:
        """The next block of whole numbers."""
        return np.frombuffer(self.take(8 * lanes * n), "<i8").astype(np.int64).reshape(lanes, n)


def decode_transaction(record: bytes, schema_of: Callable[[int], Schema | None], symbols: Symbols) -> Transaction:
    """The transaction of a record; changes of relations that have no schema (they were dropped) are left out."""
    reader = RecordReader(record)
    upper = _upper(reader)
    origins = [(reader.number(), reader.number()) for _ in range(reader.number())]
    named = tuple([Origin(reader.take(size).decode(), batch) for size, batch in origins])
    found = [_decode_change(reader, schema_of, symbols) for _ in range(reader.number())]
    return Transaction(upper, tuple([change for change in found if change is not None]), named)


def upper_of(record: bytes) -> Frontier:
    """Up to where a record's transaction is complete, without reading its rows."""
    return _upper(RecordReader(record))


def _upper(reader: RecordReader) -> Frontier:
    count, depth = reader.numbers(2)
    return Frontier([tuple(reader.numbers(depth)) for _ in range(count)])


def _decode_change(
    reader: RecordReader, schema_of: Callable[[int], Schema | None], symbols: Symbols
) -> tuple[int, Updates] | None:
    relation, lanes, n, depth, time_columns, width, diff_columns, text_count = reader.numbers(8)
    texts = [reader.numbers(3) for _ in range(text_count)]
    updates = Updates(reader.block(lanes, n), reader.block(depth, time_columns), reader.block(width, diff_columns))
    schema = schema_of(relation)
    for lane, count, size in texts:
        offsets, content = reader.take(8 * (count + 1)), reader.take(size)
        if schema is not None:
            type_ = schema.types[lane].definition.large_arrow
            buffers = [None, pa.py_buffer(offsets), pa.py_buffer(content)]
            ids = symbols.intern(pa.Array.from_buffers(type_, count, buffers))
            updates.data[lane] = numbered(updates.data[lane], ids)
    return None if schema is None else (relation, updates)


def numbered(positions: Ints, ids: Ints) -> Ints:
    """Positions in a list of values as the ids of those values; NULL stays."""
    if not len(ids):
        return positions
    return np.where(positions == NULL, NULL, ids[np.maximum(positions, 0)])
