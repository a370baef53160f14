"""Rows and progress counts as the words of a frame, and back.

    rows      dataflow, channel, shapes, the times of the message, the three blocks, new texts
    progress  for each dataflow its id and its changes: worker, location, time, difference

A text crosses by value the first time and by its symbol after. Each end keeps the symbols that the other end knows, and
translates received symbols into its own by one array look-up.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np

from kpg.cluster.frames import Buffer, padded
from kpg.columns.exact_diffs import from_words, to_words
from kpg.columns.lane_values import NULL
from kpg.columns.packed_updates import NARROW, Layout, PackedUpdates
from kpg.columns.symbols import SymbolHold, Symbols
from kpg.columns.updates import Ints, Updates, constant
from kpg.dataflow.operator import Message
from kpg.dataflow.transport import DataFrame, FailureFrame, ProgressFrame
from kpg.errors import ProtocolError
from kpg.progress.tracker import Change
from kpg.protocol.error_messages import error_of, failure_of
from kpg.protocol.message_codec import dump_json, plain, read
from kpg.protocol.parts import FailureSpec
from kpg.protocol.strict_decoder import build

HEAD_WORDS = 8  # of a message of rows, unpacked by one call: enough for a message of one time of four coordinates
SHAPE_WORDS = 8  # the shapes of the three blocks, their form (consolidated, digits of a diff), and the text lanes
CONSOLIDATED, PACKED, FORM_BITS = 1, 2, 2  # bits of the form; the digits of a diff follow
MAX_SYMBOL = 1 << 40  # a larger one cannot be real, and would only make a huge array


class SymbolDictionary:
    """The symbols that the other end of a connection knows, and the meaning of its symbols here.

    A `holding` dictionary keeps its symbols from being reclaimed, for ends that do not take part in `forget`.
    """

    def __init__(self, symbols: Symbols, holding: bool = False) -> None:
        self.symbols = symbols
        self._holding = holding
        self.forget()

    def forget(self) -> None:
        """Forget all symbols, because either end renumbers them. Both ends must do this at the same point."""
        self._held: list[SymbolHold] = []
        self._known = np.zeros(0, np.bool_)  # by symbol of this end: whether the other end knows it
        self._local = np.full(0, NULL, np.int64)  # by symbol of the other end: the symbol of this end

    def new_ids(self, lanes: Sequence[Ints]) -> Ints:
        """Return the symbols in some lanes that the other end does not know; the caller sends their texts now."""
        ids = np.unique(np.concatenate(lanes))
        ids = ids[ids >= 0]
        if len(ids) and int(ids[-1]) >= len(self._known):
            grown = np.zeros(max(int(ids[-1]) + 1, 2 * len(self._known)), np.bool_)
            grown[: len(self._known)] = self._known
            self._known = grown
        unknown: Ints = ids[~self._known[ids]]
        self._known[unknown] = True
        self._hold(unknown)
        return unknown

    def _hold(self, ids: Ints) -> None:
        if self._holding and len(ids):
            self._held.append(self.symbols.hold(ids))

    def learn(self, ids: Ints, values: list[str | bytes]) -> None:
        """Intern the texts of some symbols of the other end."""
        if not len(ids):
            return
        top = int(ids.max()) + 1
        if int(ids.min()) < 0 or top > MAX_SYMBOL:
            raise ProtocolError("a symbol has an impossible number")
        if top > len(self._local):
            grown = np.full(max(top, 2 * len(self._local)), NULL, np.int64)
            grown[: len(self._local)] = self._local
            self._local = grown
        local = self.symbols.intern(values)
        self._local[ids] = local
        self._hold(local)

    def translate(self, lane: Ints) -> None:
        """Translate the other end's symbols in a lane into this end's, in place; nulls stay."""
        is_symbol = lane >= 0
        if is_symbol.all():
            _check_known(lane, len(self._local))
            lane[:] = self._local[lane]
        else:
            _check_known(lane[is_symbol], len(self._local))
            lane[is_symbol] = self._local[lane[is_symbol]]


def _check_known(ids: Ints, known_count: int) -> None:
    if len(ids) and int(ids.max()) >= known_count:
        raise ProtocolError("a symbol came without its text")


def encode_updates(updates: Updates, symbolic: tuple[int, ...], dictionary: SymbolDictionary) -> list[Buffer]:
    """Return the blocks of some updates, and the texts that the other end lacks."""
    if isinstance(updates, PackedUpdates) and not symbolic:
        return encode_packed(updates)
    data, times = updates.data, updates.times
    diffs, digits = to_words(updates.diffs)
    texts = encode_texts(dictionary, [data[lane] for lane in symbolic]) if symbolic else []
    shape = struct.pack(
        f"<{SHAPE_WORDS + len(symbolic)}q",
        *data.shape,
        *times.shape,
        *diffs.shape,
        updates.consolidated | digits << FORM_BITS,
        len(symbolic),
        *symbolic,
    )
    return [shape, _words(data), _words(times), _words(diffs), *texts]


def decode_updates(body: Ints, at: int, dictionary: SymbolDictionary) -> tuple[Updates, int]:
    """Return the updates at a position of a frame, and where they end."""
    if len(body) < at + SHAPE_WORDS:
        raise ProtocolError("a frame of rows is cut off")
    shape = body[at : at + SHAPE_WORDS].tolist()
    lanes, n, depth, time_columns, width, diff_columns, form, texts = shape
    consolidated, digits = form & CONSOLIDATED, form >> FORM_BITS
    if form & PACKED:
        return decode_packed(body, at)
    sizes = (lanes * n, depth * time_columns, width * diff_columns)
    at += SHAPE_WORDS + texts
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
    if digits > width or (digits and width % digits):
        raise ProtocolError("a frame of rows has an impossible shape")
    diffs = from_words(diffs, digits)
    if symbolic:
        at = decode_texts(body, at, dictionary)
        for lane in symbolic:
            dictionary.translate(data[lane])
    return Updates(data, times, diffs, bool(consolidated) and not symbolic), at


def encode_packed(updates: PackedUpdates) -> list[Buffer]:
    """Return the layout and the words of packed updates, and their time; the diff, if all have the same."""
    layout, constant = updates.layout, updates.has_constant_diff
    diffs = updates.diffs[:, 0].tolist() if constant else []
    numbers = [layout.lanes, len(updates), updates.depth, 1, updates.width, len(diffs) and 1]
    size, words = updates.words.nbytes, updates.words.data.cast("B")
    numbers += [updates.consolidated | PACKED, updates.words.itemsize]
    numbers += [*layout.lows, *layout.widths, *updates.times[:, 0].tolist(), *diffs]
    return [struct.pack(f"<{len(numbers)}q", *numbers), words, bytes(-size % 8)]


def decode_packed(body: Ints, at: int) -> tuple[Updates, int]:
    """Return the packed updates at a position of a frame, and where they end."""
    lanes, n, depth, _, width, is_constant, form, itemsize = body[at : at + SHAPE_WORDS].tolist()
    at += SHAPE_WORDS
    fields = lanes if is_constant else lanes + width
    head = 2 * fields + depth + (width if is_constant else 0)
    size = -(-n * itemsize // 8)
    if min(lanes, n, depth, width) < 0 or itemsize not in (NARROW.itemsize, 8) or len(body) < at + head + size:
        raise ProtocolError("a frame of rows is cut off")
    numbers = body[at : at + head].tolist()
    layout = Layout(numbers[:fields], numbers[fields : 2 * fields], lanes)
    if not layout.is_possible:
        raise ProtocolError("a frame of rows has an impossible shape")
    times, diffs = constant(tuple(numbers[2 * fields :][:depth])), constant(tuple(numbers[2 * fields + depth :]))
    at += head + size
    words = body[at - size : at] if itemsize == 8 else body[at - size : at].view(NARROW)[:n]
    return PackedUpdates(words, layout, times, diffs if is_constant else None, bool(form & CONSOLIDATED)), at


def encode_texts(dictionary: SymbolDictionary, lanes: Sequence[Ints]) -> list[Buffer]:
    """Return the texts that the other end lacks: count, bytes, lengths (~length for binary), symbols, text."""
    ids = dictionary.new_ids(lanes)
    values = dictionary.symbols.values(ids)
    raw = [value.encode() if isinstance(value, str) else value for value in values]
    lengths = [len(r) if isinstance(v, str) else ~len(r) for v, r in zip(values, raw, strict=True)]
    text = b"".join(raw)
    head = struct.pack(f"<{2 + len(lengths)}q", len(ids), len(text), *lengths)
    return [head, _words(np.ascontiguousarray(ids)), padded(text)]


def decode_texts(body: Ints, at: int, dictionary: SymbolDictionary) -> int:
    """Learn the texts at a position of a frame; return where they end."""
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
    dictionary.learn(ids, values)
    return int(at + words)


def encode_rows(
    dataflow: int, channel: int, message: Message, symbolic: tuple[int, ...], dictionary: SymbolDictionary
) -> list[Buffer]:
    """Return the words of a message for a channel of a dataflow."""
    times = [x for time in message.times for x in time]
    depth = len(message.times[0]) if message.times else 0
    head = struct.pack(f"<{4 + len(times)}q", dataflow, channel, len(message.times), depth, *times)
    return [head, *encode_updates(message.payload, symbolic, dictionary)]


def decode_head(body: Ints) -> tuple[int, int, tuple[tuple[int, ...], ...], int]:
    """Return the dataflow, channel and times of a message, and where its rows begin."""
    if len(body) < 4:
        raise ProtocolError("a frame of rows is cut off")
    dataflow, channel, count, depth, *flat = body[:HEAD_WORDS].tolist()
    if count < 0 or depth < 0 or len(body) < 4 + count * depth:
        raise ProtocolError("a frame of rows is cut off")
    if count == 1 and depth <= HEAD_WORDS - 4:
        return dataflow, channel, (tuple(flat[:depth]),), 4 + depth
    flat = body[4 : 4 + count * depth].tolist()
    times = tuple([tuple(flat[i * depth : (i + 1) * depth]) for i in range(count)])
    return dataflow, channel, times, 4 + count * depth


def decode_rows(body: Ints, dictionary: SymbolDictionary) -> DataFrame:
    """Return a message, its symbols translated."""
    dataflow, channel, times, at = decode_head(body)
    updates, _ = decode_updates(body, at, dictionary)
    return DataFrame(dataflow, channel, Message(times, updates))


def encode_progress(frame: ProgressFrame) -> bytes:
    """Return the words of all count changes of a step."""
    words: list[int] = []
    for dataflow, changes in frame.changes:
        words += (dataflow, len(changes))
        for worker, location, time, difference in changes:
            words += (worker, location, difference, len(time), *time)
    return struct.pack(f"<{len(words)}q", *words)


def decode_progress(body: Ints) -> ProgressFrame:
    """Return the count changes in the words of a frame."""
    words = body.tolist()
    by_dataflow: list[tuple[int, list[Change]]] = []
    at = 0
    try:
        while at < len(words):
            dataflow, count = words[at], words[at + 1]
            at += 2
            if count < 0:
                raise ProtocolError("a frame of progress has an impossible shape")
            changes: list[Change] = []
            for _ in range(count):
                worker, location, difference, depth = words[at : at + 4]
                if depth < 0:  # a negative depth would move the position back, and the loop might never end
                    raise ProtocolError("a frame of progress has an impossible shape")
                at += 4 + depth
                changes.append((worker, location, tuple(words[at - depth : at]), difference))
            by_dataflow.append((dataflow, changes))
    except (IndexError, ValueError):
        raise ProtocolError("a frame of progress is cut off") from None
    if at != len(words):
        raise ProtocolError("a frame of progress is cut off")
    return ProgressFrame(tuple(by_dataflow))


def encode_failure(frame: FailureFrame) -> bytes:
    """Return the words of a dataflow, the error that ended it, and the values that went round in it."""
    text = dump_json(plain(failure_of(frame.error))).encode()
    values = struct.pack(f"<{len(frame.circulating)}q", *frame.circulating)
    return struct.pack("<3q", frame.dataflow, len(text), len(frame.circulating)) + padded(text) + values


def decode_failure(body: Ints) -> FailureFrame:
    """Return the dataflow and its error in the words of a frame."""
    if len(body) < 3 or min(body[1], body[2]) < 0 or len(body) != 3 + -(-int(body[1]) // 8) + int(body[2]):
        raise ProtocolError("a frame of failure is cut off")
    try:
        text = body[3:].tobytes()[: int(body[1])].decode()
    except UnicodeDecodeError as error:
        raise ProtocolError("a failure is not UTF-8", detail=str(error)) from None
    values = body[len(body) - int(body[2]) :].tolist()
    return FailureFrame(int(body[0]), error_of(build(FailureSpec, read(text, python_only=True), "$")), tuple(values))


def _words(block: Ints) -> memoryview:
    return block.data.cast("B") if block.size else memoryview(b"")
