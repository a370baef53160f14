"""Rows and counts as words of a frame, and back.

    rows      dataflow, channel, shapes, the times of the message, the three blocks, new texts
    progress  for each dataflow its id and its changes: location, time, difference

Text crosses by value the first time and by number after: each direction of a connection keeps which numbers the other
end has been told, and the other end turns them into its own by one array look-up.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence

import numpy as np

from kpg.cluster.failure import read_error, write_error
from kpg.cluster.frames import Buffer, padded
from kpg.columns.lane_values import NULL
from kpg.columns.symbols import SymbolHold, Symbols
from kpg.columns.updates import Ints, Updates
from kpg.dataflow.operator import Message
from kpg.dataflow.transport import DataFrame, FailureFrame, ProgressFrame
from kpg.errors import ProtocolError
from kpg.progress.tracker import Change

FIRST = 8  # words of a message that are looked at together
SHAPE = 8  # words that say how large the blocks are, whether they are tidy, and how many lanes are text


class SymbolDictionary:
    """Which symbols the other end of a connection knows, and what its own mean here.

    One that is `holding` keeps all of them from being given back: for ends that cannot be told to forget.
    """

    def __init__(self, symbols: Symbols, holding: bool = False) -> None:
        self.symbols = symbols
        self._holding = holding
        self.forget()

    def forget(self) -> None:
        """Numbers were given back, here or there: all texts cross anew. Both ends must do this at the same point."""
        self._held: list[SymbolHold] = []
        self._known = np.zeros(0, np.bool_)
        self._mine = np.full(0, NULL, np.int64)

    def new_ids(self, lanes: Sequence[Ints]) -> Ints:
        """The symbols in some lanes that the other end has not been told; it is taken as told now."""
        ids = np.unique(np.concatenate(lanes))
        ids = ids[ids >= 0]
        if len(ids) and int(ids[-1]) >= len(self._known):
            grown = np.zeros(max(int(ids[-1]) + 1, 2 * len(self._known)), np.bool_)
            grown[: len(self._known)] = self._known
            self._known = grown
        fresh: Ints = ids[~self._known[ids]]
        self._known[fresh] = True
        self._hold(fresh)
        return fresh

    def _hold(self, ids: Ints) -> None:
        if self._holding and len(ids):
            self._held.append(self.symbols.hold(ids))

    def learn(self, ids: Ints, values: list[str | bytes]) -> None:
        """The other end says what some of its numbers mean."""
        if not len(ids):
            return
        top = int(ids.max()) + 1
        if int(ids.min()) < 0 or top > 1 << 40:
            raise ProtocolError("a symbol has an impossible number")
        if top > len(self._mine):
            grown = np.full(max(top, 2 * len(self._mine)), NULL, np.int64)
            grown[: len(self._mine)] = self._mine
            self._mine = grown
        mine = self.symbols.intern(values)
        self._mine[ids] = mine
        self._hold(mine)

    def translate(self, lane: Ints) -> None:
        """The other end's numbers in a lane as ours, in place; what is no symbol (null) stays."""
        is_symbol = lane >= 0
        if is_symbol.all():
            _check_known(lane, len(self._mine))
            lane[:] = self._mine[lane]
        else:
            _check_known(lane[is_symbol], len(self._mine))
            lane[is_symbol] = self._mine[lane[is_symbol]]


def _check_known(ids: Ints, known: int) -> None:
    if len(ids) and int(ids.max()) >= known:
        raise ProtocolError("a symbol came without its text")


def encode_updates(updates: Updates, symbolic: tuple[int, ...], told: SymbolDictionary) -> list[Buffer]:
    """The blocks of some updates, and the texts that the other end lacks."""
    data, times, diffs = updates.data, updates.times, updates.diffs
    texts = encode_texts(told, [data[lane] for lane in symbolic]) if symbolic else []
    shape = struct.pack(
        f"<{SHAPE + len(symbolic)}q",
        *data.shape,
        *times.shape,
        *diffs.shape,
        updates.tidy,
        len(symbolic),
        *symbolic,
    )
    return [shape, _words(data), _words(times), _words(diffs), *texts]


def decode_updates(body: Ints, at: int, told: SymbolDictionary) -> tuple[Updates, int]:
    """Some updates from the words of a frame, and where they end."""
    if len(body) < at + SHAPE:
        raise ProtocolError("a frame of rows is cut off")
    shape = body[at : at + SHAPE].tolist()
    lanes, n, depth, time_columns, width, diff_columns, tidy, texts = shape
    sizes = (lanes * n, depth * time_columns, width * diff_columns)
    at += SHAPE + texts
    if min(shape) < 0 or len(body) < at + sum(sizes):
        raise ProtocolError("a frame of rows is cut off")
    symbolic = body[at - texts : at].tolist() if texts else ()
    if time_columns not in (1, n) or diff_columns not in (1, n) or not all(0 <= lane < lanes for lane in symbolic):
        raise ProtocolError("a frame of rows has an impossible shape")
    data = body[at : at + sizes[0]].reshape(lanes, n)
    at += sizes[0]
    times = body[at : at + sizes[1]].reshape(depth, time_columns)
    at += sizes[1]
    diffs = body[at : at + sizes[2]].reshape(width, diff_columns)
    at += sizes[2]
    if symbolic:
        at = decode_texts(body, at, told)
        for lane in symbolic:
            told.translate(data[lane])
    return Updates(data, times, diffs, bool(tidy) and not symbolic), at


def encode_texts(told: SymbolDictionary, lanes: Sequence[Ints]) -> list[Buffer]:
    """The texts in some lanes that the other end lacks: count, bytes, numbers, lengths (~length for binary), text."""
    ids = told.new_ids(lanes)
    values = told.symbols.values(ids)
    raw = [value.encode() if isinstance(value, str) else value for value in values]
    lengths = [len(r) if isinstance(v, str) else ~len(r) for v, r in zip(values, raw, strict=True)]
    text = b"".join(raw)
    head = struct.pack(f"<{2 + len(lengths)}q", len(ids), len(text), *lengths)
    return [head, _words(np.ascontiguousarray(ids)), padded(text)]


def decode_texts(body: Ints, at: int, told: SymbolDictionary) -> int:
    """Learn the texts at some place of a frame; where they end."""
    if len(body) < at + 2:
        raise ProtocolError("a frame of texts is cut off")
    count, size = body[at : at + 2].tolist()
    words = -(-size // 8)
    if count < 0 or size < 0 or len(body) < at + 2 + 2 * count + words:
        raise ProtocolError("a frame of texts is cut off")
    lengths = body[at + 2 : at + 2 + count].tolist()
    ids = body[at + 2 + count : at + 2 + 2 * count]
    at += 2 + 2 * count
    text = body[at : at + words].tobytes()[:size]
    values: list[str | bytes] = []
    begin = 0
    try:
        for length in lengths:
            end = begin + (length if length >= 0 else ~length)
            values.append(text[begin:end].decode() if length >= 0 else text[begin:end])
            begin = end
    except UnicodeDecodeError as error:
        raise ProtocolError("a text is not UTF-8", detail=str(error)) from None
    if begin != size:
        raise ProtocolError("the lengths of texts do not add up")
    told.learn(ids, values)
    return int(at + words)


def encode_rows(
    dataflow: int, channel: int, message: Message, symbolic: tuple[int, ...], told: SymbolDictionary
) -> list[Buffer]:
    """A message for a channel of a dataflow."""
    times = [x for time in message.times for x in time]
    depth = len(message.times[0]) if message.times else 0
    head = struct.pack(f"<{4 + len(times)}q", dataflow, channel, len(message.times), depth, *times)
    return [head, *encode_updates(message.payload, symbolic, told)]


def decode_head(body: Ints) -> tuple[int, int, tuple[tuple[int, ...], ...], int]:
    """The dataflow, channel and times of a message, and where its rows begin."""
    if len(body) < 4:
        raise ProtocolError("a frame of rows is cut off")
    dataflow, channel, count, depth, *flat = body[:FIRST].tolist()
    if count < 0 or depth < 0 or len(body) < 4 + count * depth:
        raise ProtocolError("a frame of rows is cut off")
    if count == 1 and depth <= FIRST - 4:
        return dataflow, channel, (tuple(flat[:depth]),), 4 + depth
    flat = body[4 : 4 + count * depth].tolist()
    times = tuple([tuple(flat[i * depth : (i + 1) * depth]) for i in range(count)])
    return dataflow, channel, times, 4 + count * depth


def decode_rows(body: Ints, told: SymbolDictionary) -> DataFrame:
    """A message, its texts made ours."""
    dataflow, channel, times, at = decode_head(body)
    updates, _ = decode_updates(body, at, told)
    return DataFrame(dataflow, channel, Message(times, updates))


def encode_progress(frame: ProgressFrame) -> bytes:
    """All count changes of a step."""
    words: list[int] = []
    for dataflow, changes in frame.changes:
        words += (dataflow, len(changes))
        for location, time, difference in changes:
            words += (location, difference, len(time), *time)
    return struct.pack(f"<{len(words)}q", *words)


def decode_progress(body: Ints) -> ProgressFrame:
    """Count changes from the words of a frame."""
    words = body.tolist()
    found: list[tuple[int, list[Change]]] = []
    at = 0
    try:
        while at < len(words):
            dataflow, count = words[at], words[at + 1]
            at += 2
            changes: list[Change] = []
            for _ in range(count):
                location, difference, depth = words[at], words[at + 1], words[at + 2]
                at += 3 + depth
                changes.append((location, tuple(words[at - depth : at]), difference))
            found.append((dataflow, changes))
    except IndexError:
        raise ProtocolError("a frame of progress is cut off") from None
    if at != len(words):
        raise ProtocolError("a frame of progress is cut off")
    return ProgressFrame(tuple(found))


def encode_failure(frame: FailureFrame) -> bytes:
    """A dataflow, and the error that ended it."""
    said = json.dumps(write_error(frame.error)).encode()
    return struct.pack("<2q", frame.dataflow, len(said)) + padded(said)


def decode_failure(body: Ints) -> FailureFrame:
    """A dataflow and its error from the words of a frame."""
    if len(body) < 2 or not 0 <= int(body[1]) <= 8 * (len(body) - 2):
        raise ProtocolError("a frame of failure is cut off")
    try:
        written = json.loads(body[2:].tobytes()[: int(body[1])])
    except ValueError as error:
        raise ProtocolError("a failure is not JSON", detail=str(error)) from None
    if not isinstance(written, dict):
        raise ProtocolError("a failure is not an object")
    return FailureFrame(int(body[0]), read_error(written))


def _words(block: Ints) -> memoryview:
    return block.data.cast("B") if block.size else memoryview(b"")
