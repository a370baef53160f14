"""Sum the diffs of equal updates, in order.

    consolidate({(d, t, r)})  =  {(d, t, Σ r)  |  Σ r ≠ 0}        sorted by data lanes, then time lanes

A constant time stays constant; diffs that come out equal become a constant. Each lane needs as many bits as the
difference of its greatest and least value. Ways, the first that applies:

    few rows                              one kernel sorts positions by insertion
    fewer words than rows                 a table with a place for each possible word; nothing is sorted
    row and diff fit into one word        words are sorted, and carry all there is
    row and sign fit, diffs are small     each word as often as its diff says, which its sign then need not
    otherwise                             words of leading bits and a position are sorted; rows tied in them are told
                                          apart by their next bits if many, by comparison if few
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from kpg.columns.output_buffer import allocate_block, release_unused
from kpg.columns.updates import Ints, Updates, common_constant, concatenate, spread, trim
from kpg.kernels.consolidate_rows import (
    add_to_table,
    consolidate_few,
    count_distinct,
    count_signed_words,
    count_words,
    gather_lane,
    is_uniform,
    read_table,
    sum_positions,
    sum_signed_words,
    sum_words,
    unpack_words,
    write_signed_words,
)
from kpg.kernels.sort_rows import append_positions, count_tied_rows, lane_bounds, pack_words, rank_words, sort_ties

FEW = 128
WORD_BITS = 63  # so that words are never negative
TABLE_BITS = 22  # the table must stay in the cache, or sorting is quicker


def consolidate(updates: Updates) -> Updates:
    """The same accumulated diffs, each (data, time) once and in order."""
    return consolidate_all([updates])


def consolidate_all(parts: list[Updates]) -> Updates:
    """The same for what several parts of equal shape hold together. They are taken from the list as soon as they are
    read, so that what nobody else holds is not in memory twice while it is sorted."""
    if len(parts) > 1:
        parts[:] = [part for part in parts if len(part)] or parts[:1]
    n = sum([part.data.shape[1] for part in parts])
    if n <= FEW:
        return _few(_joined(parts), n) if n else parts[0]
    if len(parts) > 1:
        _make_alike(parts)
    row = _Fields([_row_blocks(part) for part in parts])
    width, constant = parts[0].diffs.shape[0], parts[0].diffs.shape[1] == 1
    if row.bits <= TABLE_BITS and 1 << row.bits <= n and width == 1:
        return _tallied(parts, row)
    if constant:
        if row.bits <= WORD_BITS:
            return _counted(parts, n, row)
        if len(row.lows) == 1:
            return _lone(_joined(parts))
        return _ordered(_joined(parts), n, row)
    both = row.and_also([(part.diffs,) for part in parts])
    if both.bits <= WORD_BITS:
        return _packed(parts, n, both, both.bits - row.bits)
    whole = _joined(parts)
    if row.bits < WORD_BITS and width == 1 and (total := count_signed_words(whole.diffs[0])) > 0:
        return _signed(whole, n, row, total)
    return _ordered(whole, n, row)


def consolidate_dense(updates: Updates) -> Updates | None:
    """The same for updates that must repeat themselves: there are less than half as many values as updates, and few
    enough. None for others."""
    row = _Fields([_row_blocks(updates)])
    crowded = row.bits <= TABLE_BITS and 2 << row.bits <= updates.data.shape[1] and updates.diffs.shape[0] == 1
    return _tallied([updates], row) if crowded else None


def _joined(parts: list[Updates]) -> Updates:
    """The parts as one, taken from their list."""
    whole = concatenate(parts)
    parts.clear()
    return whole


def _make_alike(parts: list[Updates]) -> None:
    """Let times, and diffs, be one constant in all parts or in none."""
    times, diffs = (
        common_constant(blocks) for blocks in ([part.times for part in parts], [part.diffs for part in parts])
    )
    if times is not None and diffs is not None:
        return
    if min(map(len, parts)) == 1:  # one row would be taken for a constant
        parts[:] = [concatenate(parts)]
        return
    parts[:] = [
        Updates(
            part.data,
            part.times if times is not None else spread(part.times, len(part)),
            part.diffs if diffs is not None else spread(part.diffs, len(part)),
        )
        for part in parts
    ]


Blocks: TypeAlias = tuple[Ints, ...]  # of equal length, the lanes of the first the most significant


class _Fields:
    """The lanes of some blocks, most significant first: the least value and the bits needed of each."""

    __slots__ = ("lows", "widths", "bits")

    def __init__(self, parts: list[Blocks]) -> None:
        lows, highs = zip(*[_ends(blocks) for blocks in parts], strict=True)
        self.lows = list(map(min, zip(*lows, strict=True)))
        most = map(max, zip(*highs, strict=True))
        self.widths = [(high - low).bit_length() for low, high in zip(self.lows, most, strict=True)]
        self.bits = sum(self.widths)

    def and_also(self, parts: list[Blocks]) -> _Fields:
        """These lanes, then those of other blocks of the same rows."""
        made = _Fields(parts)
        made.lows = self.lows + made.lows
        made.widths = self.widths + made.widths
        made.bits += self.bits
        return made

    def whole(self) -> Ints:
        """Low, drop, mask and shift of each lane, when a word holds all bits: int64[4, lanes]."""
        shifts = []
        at = self.bits
        for width in self.widths:
            at -= width
            shifts.append(at)
        masks = [(1 << width) - 1 for width in self.widths]
        return np.array([self.lows, [0] * len(shifts), masks, shifts], np.int64)

    def window(self, start: int, room: int) -> Ints:
        """The same, when a word holds the `room` bits from `start` on."""
        columns = []
        end = start + room
        at = 0
        for low, width in zip(self.lows, self.widths, strict=True):
            first, last = max(at, start), min(at + width, end)
            taken = max(0, last - first)
            columns.append((low, at + width - last, (1 << taken) - 1, end - last) if taken else (low, 0, 0, 0))
            at += width
        return np.array(columns, np.int64).reshape(len(columns), 4).T.copy()

    def whole_in(self, window: Ints) -> list[bool]:
        """Whether the window has all bits of each lane."""
        return [mask == (1 << width) - 1 for mask, width in zip(window[2].tolist(), self.widths, strict=True)]


def _ends(blocks: Blocks) -> tuple[list[int], list[int]]:
    """The least and the greatest value of each lane, as Python ints: their difference may not fit 64 bits."""
    low: list[int] = []
    high: list[int] = []
    for block in blocks:
        ends = np.empty((2, block.shape[0]), np.int64)
        lane_bounds(block, ends[0], ends[1])
        low += ends[0].tolist()
        high += ends[1].tolist()
    return low, high


def _pack(parts: list[Blocks], fields: Ints, words: Ints) -> None:
    """Write the words of the rows of each part, one part after the other."""
    begin = 0
    for blocks in parts:
        at, first = 0, 1
        mine = words[begin : begin + blocks[0].shape[1]]
        for block in blocks:
            pack_words(block, fields[0, at:], fields[1, at:], fields[2, at:], fields[3, at:], first, mine)
            at += block.shape[0]
            first = 0
        begin += len(mine)


def _row_blocks(updates: Updates) -> Blocks:
    return (updates.data,) if updates.times.shape[1] == 1 else (updates.data, updates.times)


class _Output:
    """Where rows are unpacked to; the words themselves live in the last lane of it until then."""

    __slots__ = ("data", "times", "timed", "words")

    def __init__(self, updates: Updates, n: int) -> None:
        self.timed = updates.times.shape[1] > 1
        self.data = allocate_block(updates.data.shape[0], n)
        self.times = allocate_block(updates.times.shape[0], n) if self.timed else updates.times
        if self.timed:
            self.words = self.times[-1]
        else:
            self.words = self.data[-1] if self.data.shape[0] else np.empty(n, np.int64)

    def unpacked(self, kept: int, fields: Ints, diffs: Ints) -> Updates:
        """The rows of the first words, with the given diffs."""
        lanes = self.data.shape[0]
        words, times = self.words, self.times
        unpack_words(words, kept, fields[0], fields[2], fields[3], self.data)
        if self.timed:
            unpack_words(words, kept, fields[0, lanes:], fields[2, lanes:], fields[3, lanes:], times)
        return Updates(release_unused(self.data, kept), shrink_block(times, kept), shrink_block(diffs, kept))


def shrink_block(block: Ints, n: int) -> Ints:
    """The first n columns, or one of them if they are alike; one column also if there is none. See `release_unused`."""
    if block.shape[1] == 1:
        return block
    if n == 0:
        return np.zeros((block.shape[0], 1), np.int64)
    return block[:, :1].copy() if is_uniform(block, n) else release_unused(block, n)


def _few(updates: Updates, n: int) -> Updates:
    data, times, diffs = updates.data, updates.times, updates.diffs
    out_data = np.empty((data.shape[0], n), np.int64)
    out_times = np.empty((times.shape[0], n), np.int64) if times.shape[1] > 1 else times
    out_diffs = np.empty((diffs.shape[0], n), np.int64)
    kept = consolidate_few(data, times, diffs, np.empty(n, np.int64), out_data, out_times, out_diffs)
    return Updates(trim(out_data, kept), shrink_block(out_times, kept), shrink_block(out_diffs, kept))


def _tallied(parts: list[Updates], row: _Fields) -> Updates:
    """There are not more possible words than rows."""
    fields = row.whole()
    table = np.zeros(1 << row.bits, np.int64)
    for part in parts:
        add_to_table(part.data, part.times, fields[0], fields[3], part.diffs, table)
    out, sums = _Output(parts[0], len(table)), allocate_block(1, len(table))
    parts.clear()
    kept = read_table(table, out.words, sums)
    return out.unpacked(kept, fields, sums)


def _counted(parts: list[Updates], n: int, row: _Fields) -> Updates:
    """The diff is constant, and a row fits into a word."""
    fields, diff = row.whole(), parts[0].diffs
    out = _Output(parts[0], n)
    _pack([_row_blocks(part) for part in parts], fields, out.words)
    parts.clear()
    out.words.sort()
    kept, diffs = _count(out.words, diff)
    return out.unpacked(kept, fields, diffs)


def _count(words: Ints, diff: Ints) -> tuple[int, Ints]:
    """Leave each of the sorted words once; returns how many these are and the diff of each."""
    kept = count_distinct(words, 0) if diff.any() else 0
    if kept in (0, len(words)):
        return kept, diff
    diffs = np.empty((diff.shape[0], kept), np.int64)
    count_words(words, diff[:, 0].copy(), diffs)
    return kept, diffs


def _packed(parts: list[Updates], n: int, both: _Fields, diff_bits: int) -> Updates:
    """A row and its diff fit into a word."""
    fields, width = both.whole(), parts[0].diffs.shape[0]
    out = _Output(parts[0], n)
    _pack([(*_row_blocks(part), part.diffs) for part in parts], fields, out.words)
    parts.clear()
    out.words.sort()
    diff = fields[:, -width:].copy()
    sums = allocate_block(width, count_distinct(out.words, diff_bits))
    kept = sum_words(out.words, diff_bits, diff[0], diff[2], diff[3], sums)
    return out.unpacked(kept, fields, sums)


def _signed(updates: Updates, n: int, row: _Fields, total: int) -> Updates:
    """A row and a sign fit into a word, and diffs are small: each word as often as its diff says, `total` in all."""
    fields = row.whole()
    words, out = np.empty(n, np.int64), _Output(updates, total)
    _pack([_row_blocks(updates)], fields, words)
    write_signed_words(words, updates.diffs[0], out.words)
    out.words.sort()
    sums = allocate_block(1, total)
    kept = sum_signed_words(out.words, sums)
    fields[3] += 1
    return out.unpacked(kept, fields, sums)


def _lone(updates: Updates) -> Updates:
    """One lane of more than 63 bits, of one time and diff."""
    words = np.sort(updates.data[0] if updates.data.shape[0] else updates.times[0])
    kept, diffs = _count(words, updates.diffs)
    lane, diffs = words[:kept].copy().reshape(1, kept), shrink_block(diffs, kept)
    if updates.data.shape[0]:
        return Updates(lane, updates.times, diffs)
    return Updates(np.empty((0, kept), np.int64), shrink_block(lane, kept), diffs)


def _ordered(updates: Updates, n: int, row: _Fields) -> Updates:
    """A row and its diff do not fit into a word."""
    data, times, diffs = updates.data, updates.times, updates.diffs
    words, fields, exact = _tagged(updates, n, row)
    sums, mask = allocate_block(diffs.shape[0], n), (1 << n.bit_length()) - 1
    kept = sum_positions(data, times, diffs, words, mask, exact, sums)
    lanes, whole = data.shape[0], row.whole_in(fields)
    data = _picked(data, words, kept, mask, fields, whole)
    if times.shape[1] > 1:
        times = shrink_block(_picked(times, words, kept, mask, fields[:, lanes:], whole[lanes:]), kept)
    return Updates(data, times, shrink_block(sums, kept))


def _picked(block: Ints, words: Ints, kept: int, mask: int, fields: Ints, whole: list[bool]) -> Ints:
    """The columns of the rows in the words: a lane that is in them whole from there, others from their positions."""
    out = np.empty((block.shape[0], kept), np.int64)
    for lane in range(block.shape[0]):
        if whole[lane]:
            low, _, bits, shift = (fields[part, lane : lane + 1] for part in range(4))
            unpack_words(words, kept, low, bits, shift, out[lane : lane + 1])
        else:
            gather_lane(block, lane, words, mask, kept, out)
    return out


def _tagged(updates: Updates, n: int, row: _Fields) -> tuple[Ints, Ints, int]:
    """The rows in order, as words that end in a position; the fields in them; 1 if equal fields mean equal rows."""
    position_bits = n.bit_length()
    words, ranks = np.empty(n, np.int64), np.empty((1, n), np.int64)
    space, start, rank_bits = WORD_BITS - position_bits, 0, 0
    while True:
        fields = row.window(start, space)
        _pack([_row_blocks(updates)], fields, words)
        if rank_bits:
            zero, mask, shift = np.array([[0], [-1], [space]], np.int64)
            pack_words(ranks, zero, zero, mask, shift, 0, words)
        append_positions(words, position_bits)
        words.sort()
        start += space
        fields[3] += position_bits
        if start >= row.bits:
            return words, fields, 1
        if 8 * count_tied_rows(words, position_bits) <= n:
            sort_ties(updates.data, updates.times, words, position_bits, ranks[0])
            return words, fields, 0
        rank_bits = rank_words(words, position_bits, ranks).bit_length()
        space = WORD_BITS - position_bits - rank_bits
