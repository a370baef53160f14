"""Records of the log: a transaction as bytes, with text stored as values; or a note, which is JSON.

    decode(encode(transaction, symbols), other symbols)  ==  transaction        up to the ids of symbols

A transaction holds all input changes of one step of the clock on one worker: for each relation a block of lanes, times
and diffs, in the layout of memory. Instead of symbol ids it holds positions in a list of values, which follows the
blocks. Updates may have times beyond `upper`; recovery keeps them for later. Cost: one copy of the columns, and a call
per distinct text.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from kpg.algebra.frontier import Frontier
from kpg.columns.exact_diffs import from_words, to_words
from kpg.columns.lane_values import NULL
from kpg.columns.schema import Schema
from kpg.columns.symbols import Symbols
from kpg.columns.updates import Ints, Updates
from kpg.columns.value_class import value_class
from kpg.storage.batch_files import layout_of

TRANSACTION, NOTE = b"T", b"N"  # the first byte of a record
DIGITS_SHIFT = 32  # the number of digits of a diff is in the upper half of the word that holds the width of diffs
Bytes = bytes | memoryview


class Origin(NamedTuple):
    """The writer and batch number of a transaction. A writer that repeats a batch after a crash repeats its origin."""

    source: str
    batch: int


@value_class
class Transaction:
    """Changes by relation id, lanes in the order of the schemas' columns; complete up to `upper`."""

    upper: Frontier
    changes: tuple[tuple[int, Updates], ...] = ()
    origins: tuple[Origin, ...] = ()


def encode_note(note: Mapping[str, Any]) -> bytes:
    """Return a note as a record."""
    return NOTE + json.dumps(note, separators=(",", ":")).encode()


def is_note(record: bytes) -> bool:
    """Return whether a record is a note."""
    return record[:1] == NOTE


def decode_note(record: bytes) -> dict[str, Any]:
    """Return the note of a record."""
    return json.loads(record[1:])  # type: ignore[no-any-return]


def encode_transaction(transaction: Transaction, schema_of: Callable[[int], Schema], symbols: Symbols) -> bytes:
    """Return a transaction as a record: a header of integers, then blocks of the sizes in the header."""
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
        for lane in schema.symbolic_lanes():
            data = data.copy() if data is updates.data else data
            data[lane], sizes, content = _text_block(data[lane], symbols)
            texts.append((lane, sizes))
            values.append(np.cumsum([0, *sizes], dtype="<i8").tobytes())
            values.append(content)
    times, (diffs, digits) = updates.times, to_words(updates.diffs)
    width, diff_columns = diffs.shape
    header += [relation, *data.shape, *times.shape, width | digits << DIGITS_SHIFT, diff_columns, len(texts)]
    for lane, sizes in texts:
        header += [lane, len(sizes), sum(sizes)]
    blocks += [_block_bytes(data), _block_bytes(times), _block_bytes(diffs), *values]


def _block_bytes(block: Ints) -> Bytes:
    """Return the bytes of a block: a copy of a small one, a view of a large one, which the record copies once."""
    return block.tobytes() if block.size < 1 << 16 else block.data.cast("B")


def _text_block(lane: Ints, symbols: Symbols) -> tuple[Ints, list[int], bytes]:
    """Return each row's position among the distinct values (NULL stays), the values' sizes in bytes, and the values."""
    distinct, inverse = symbols.distinct(lane)
    present = distinct != NULL
    position = np.where(present, np.cumsum(present) - 1, NULL)
    values = [v.encode() if isinstance(v, str) else v for v in symbols.values(distinct[present])]
    return position[inverse], list(map(len, values)), b"".join(values)


class RecordReader:
    """Reads a transaction's record, front to back."""

    def __init__(self, record: bytes) -> None:
        (count,) = struct.unpack_from("<Q", record, 1)
        self._numbers: Iterator[int] = iter(struct.unpack_from(f"<{count}q", record, 9))
        self._record = record
        self._offset = 9 + 8 * count

    def number(self) -> int:
        """Return the next number of the header."""
        return next(self._numbers)

    def numbers(self, count: int) -> list[int]:
        """Return the next `count` numbers of the header."""
        return [next(self._numbers) for _ in range(count)]

    def read(self, size: int) -> bytes:
        """Return the next bytes of the blocks."""
        content = self._record[self._offset : self._offset + size]
        self._offset += size
        return content

    def block(self, lanes: int, n: int) -> Ints:
        """Return the next block of integers."""
        return np.frombuffer(self.read(8 * lanes * n), "<i8").astype(np.int64).reshape(lanes, n)


def decode_transaction(record: bytes, schema_of: Callable[[int], Schema | None], symbols: Symbols) -> Transaction:
    """Return the transaction of a record, without the changes of dropped relations, for which `schema_of` is None."""
    reader = RecordReader(record)
    upper = _read_upper(reader)
    sizes_and_batches = [(reader.number(), reader.number()) for _ in range(reader.number())]
    origins = tuple([Origin(reader.read(size).decode(), batch) for size, batch in sizes_and_batches])
    changes = [_decode_change(reader, schema_of, symbols) for _ in range(reader.number())]
    return Transaction(upper, tuple([change for change in changes if change is not None]), origins)


def upper_of(record: bytes) -> Frontier:
    """Return the upper of a record's transaction, without reading its rows."""
    return _read_upper(RecordReader(record))


def _read_upper(reader: RecordReader) -> Frontier:
    count, depth = reader.numbers(2)
    return Frontier([tuple(reader.numbers(depth)) for _ in range(count)])


def _decode_change(
    reader: RecordReader, schema_of: Callable[[int], Schema | None], symbols: Symbols
) -> tuple[int, Updates] | None:
    relation, lanes, n, depth, time_columns, width, diff_columns, text_count = reader.numbers(8)
    width, digits = width & (1 << DIGITS_SHIFT) - 1, width >> DIGITS_SHIFT
    texts = [reader.numbers(3) for _ in range(text_count)]
    data, times = reader.block(lanes, n), reader.block(depth, time_columns)
    diffs = reader.block(width, diff_columns)
    schema = schema_of(relation)
    values = {lane: _read_texts(reader, count, size) for lane, count, size in texts}
    if schema is None:
        return None
    if not texts and lanes == schema.width:
        return relation, Updates(data, times, from_words(diffs, digits))
    decoded = data if lanes == schema.width else np.empty((schema.width, n), np.int64)  # an older record: see layout_of
    for lane, (_, slot, type_) in enumerate(layout_of(schema, lanes)):
        if isinstance(slot, slice):
            column = values[lane].take(pa.array(data[lane], mask=data[lane] == NULL))
            decoded[slot] = type_.definition.from_stored_bytes(type_, column, symbols)
        elif lane in values:
            ids = symbols.intern(values[lane].view(type_.definition.large_arrow))
            decoded[slot] = symbol_ids(data[lane], ids)
        elif decoded is not data:
            decoded[slot] = data[lane]
    return relation, Updates(decoded, times, from_words(diffs, digits))


def _read_texts(reader: RecordReader, count: int, size: int) -> Any:
    """Return the distinct values of a text lane as an Arrow array of bytes."""
    buffers = [None, pa.py_buffer(reader.read(8 * (count + 1))), pa.py_buffer(reader.read(size))]
    return pa.Array.from_buffers(pa.large_binary(), count, buffers)


def symbol_ids(positions: Ints, ids: Ints) -> Ints:
    """Return the symbol ids at positions in a list of ids; NULL stays."""
    if not len(ids):
        return positions
    return np.where(positions == NULL, NULL, ids[np.maximum(positions, 0)])
