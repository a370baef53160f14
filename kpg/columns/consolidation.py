"""Consolidation: sum the diffs of equal updates, and sort them.

    consolidate({(d, t, r)})  =  {(d, t, Σ r)  |  Σ r ≠ 0}        sorted by data lanes, then time lanes

A constant time stays constant; equal diffs become a constant. Sums never wrap (kpg.columns.exact_diffs). Rows are
packed into 64-bit words. Each lane takes the number of bits of the difference between its greatest and its least value.
The first of these methods that applies is used:

    few rows                              one kernel sorts positions by insertion
    rows in order, each once              nothing to do: relations are often loaded in the order of their keys
    fewer possible words than rows        a table has an entry for each possible word; nothing is sorted
    row and diff fit into one word        the words are sorted, and hold rows and diffs
    row and sign fit, diffs are small     a row with diff ±k becomes k words that hold the row and the sign
    otherwise                             words of leading bits and a position are sorted; rows with equal words are
                                          ordered by their next bits if they are many, by comparison if few

Cost: one sort of n words, or less.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import cast

import numpy as np

from kpg.columns.exact_diffs import (
    MAX_MASS,
    digit_count,
    is_exact,
    mass,
    set_mass,
    shrink_exact,
    total_mass,
    with_digits,
    without_digits,
)
from kpg.columns.output_buffer import allocate_block, release_unused
from kpg.columns.packed_rows import WORD_BITS, Blocks, Fields, pack_rows
from kpg.columns.packed_updates import NARROW, Layout, PackedUpdates, are_packed, common_layout
from kpg.columns.updates import Ints, Updates, common_constant, concatenate, no_updates, spread, trim
from kpg.columns.word_order import sort_words
from kpg.kernels.consolidate_rows import (
    add_narrow_to_table,
    add_to_table,
    add_words_to_table,
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
from kpg.kernels.sort_rows import (
    append_positions,
    count_tied_rows,
    is_increasing,
    pack_words,
    rank_words,
    sort_ties,
)

INSERTION_SORT_ROWS = 128  # up to this number of rows, one call of a kernel is faster than packing words
MIN_ORDERED_ROWS = 1 << 14  # of which it is worth finding out whether they are in order
TABLE_BITS = 22  # the table has at most 2^22 entries; a larger one does not fit the cache, and sorting is faster


def consolidate(updates: Updates) -> Updates:
    """Return the updates with each (data, time) once, sorted, and with its summed diff."""
    return consolidate_all([updates])


def consolidate_all(parts: list[Updates]) -> Updates:
    """Consolidate the updates of several parts of equal shape together.

    The parts are removed from the list once they are read, so that memory does not hold them twice during the sort.
    """
    bound = total_mass(parts)
    if bound > MAX_MASS:
        return _consolidate_exactly(parts)
    updates = _consolidate_parts(parts)
    set_mass(updates, bound)
    return updates


def _consolidate_exactly(parts: list[Updates]) -> Updates:
    """Consolidate where sums may leave 64 bits."""
    digits = digit_count(parts)
    parts[:] = [with_digits(part, digits) for part in parts]
    return without_digits(_consolidate_parts(parts), digits)


def _consolidate_parts(parts: list[Updates]) -> Updates:
    """Consolidate where no sum can leave 64 bits."""
    if len(parts) > 1:
        parts[:] = [part for part in parts if part.data.shape[1]] or parts[:1]
    n = parts[0].data.shape[1] if len(parts) == 1 else sum(map(len, parts))
    if n <= INSERTION_SORT_ROWS:
        return _consolidate_small(_join(parts), n) if n else parts[0]
    if are_packed(parts) and (layout := common_layout(parts)) is not None:
        return _consolidate_words(parts, n, layout)
    if len(parts) > 1:
        _align_constants(parts)
    if parts[0].times.shape[1] == 1 and _is_increasing(parts):
        return _without_zeros(_join(parts), n)
    row = Fields([_row_blocks(part) for part in parts])
    width, constant = parts[0].diffs.shape[0], parts[0].diffs.shape[1] == 1
    if row.bits <= TABLE_BITS and 1 << row.bits <= n and width == 1:
        return _consolidate_in_table(parts, row)
    if constant:
        if row.bits <= WORD_BITS:
            return _consolidate_counts(parts, n, row)
        if len(row.lows) == 1:
            return _consolidate_single_lane(_join(parts))
        return _consolidate_by_position(_join(parts), n, row)
    both = row.followed_by([(part.diffs,) for part in parts])
    if both.bits <= WORD_BITS:
        return _consolidate_packed(parts, n, both, both.bits - row.bits)
    whole = _join(parts)
    if row.bits < WORD_BITS and width == 1 and (total := count_signed_words(whole.diffs[0])) > 0:
        return _consolidate_signed(whole, n, row, total)
    return _consolidate_by_position(whole, n, row)


def consolidate_dense(updates: Updates, updates_per_value: int) -> Updates | None:
    """Consolidate updates of a dense range: several for each possible row, and few enough possible rows for a table.

    Return None for other updates.
    """
    if mass(updates) > MAX_MASS or updates.diffs.shape[0] != 1:
        return None
    row = Fields([_row_blocks(updates)])
    is_dense = row.bits <= TABLE_BITS and updates_per_value << row.bits <= updates.data.shape[1]
    return _consolidate_in_table([updates], row) if is_dense else None


def _is_increasing(parts: list[Updates]) -> bool:
    """Return whether the data of all parts, one after the other, are sorted and without repetition."""
    for before, after in pairwise(parts):
        if before.data[:, -1].tolist() >= after.data[:, 0].tolist():
            return False
    return all(is_increasing(part.data) for part in parts)


def _without_zeros(updates: Updates, n: int) -> Updates:
    """Return sorted updates of distinct rows without those whose diff is zero."""
    data, diffs = updates.data, updates.diffs
    nonzero = diffs.any(axis=0)
    if not nonzero.any():
        return no_updates(updates.lanes, updates.depth, updates.width)
    if not nonzero.all():
        kept = np.flatnonzero(nonzero)
        data, diffs, n = data.take(kept, axis=1), diffs.take(kept, axis=1), len(kept)
    elif data.base is not None and data.base.size > data.size:
        data = data.copy()  # a batch must not keep the other lanes of a larger block alive
    return Updates(data, updates.times, shrink_block(diffs, n))


def _join(parts: list[Updates]) -> Updates:
    """Return the parts as one, and empty their list."""
    whole = concatenate(parts)
    parts.clear()
    return whole


def _align_constants(parts: list[Updates]) -> None:
    """Make times a constant in all parts or in none, and diffs likewise."""
    times, diffs = (
        common_constant(blocks) for blocks in ([part.times for part in parts], [part.diffs for part in parts])
    )
    if times is not None and diffs is not None:
        return
    if min(map(len, parts)) == 1:  # the column of a single row would be taken for a constant
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


def _row_blocks(updates: Updates) -> Blocks:
    return (updates.data,) if updates.times.shape[1] == 1 else (updates.data, updates.times)


class _Output:
    """The output blocks; until rows are unpacked, their last lane holds the words."""

    __slots__ = ("data", "times", "timed", "words")

    def __init__(self, updates: Updates, n: int) -> None:
        self.timed = updates.times.shape[1] > 1
        self.data = allocate_block(updates.lanes, n)
        self.times = allocate_block(updates.times.shape[0], n) if self.timed else updates.times
        if self.timed:
            self.words = self.times[-1]
        else:
            self.words = self.data[-1] if self.data.shape[0] else np.empty(n, np.int64)

    def scratch(self) -> Ints | None:
        """Return memory as long as the words that is not used before rows are unpacked, if there is some."""
        if self.timed:
            return self.data[0] if self.data.shape[0] else None
        return self.data[0] if self.data.shape[0] > 1 else None

    def unpack(self, kept: int, fields: Ints, diffs: Ints) -> Updates:
        """Return the updates of the first `kept` words, with the given diffs."""
        lanes = self.data.shape[0]
        words, times = self.words, self.times
        unpack_words(words, kept, fields[0], fields[2], fields[3], self.data)
        if self.timed:
            unpack_words(words, kept, fields[0, lanes:], fields[2, lanes:], fields[3, lanes:], times)
        return Updates(release_unused(self.data, kept), shrink_block(times, kept), shrink_block(diffs, kept))


def shrink_block(block: Ints, n: int) -> Ints:
    """Return the first n columns, as a constant if they are equal or if n is 0; see `release_unused`."""
    if block.shape[1] == 1:
        return block
    if n == 0:
        return np.zeros((block.shape[0], 1), np.int64)
    if is_exact(block):
        return shrink_exact(block[:, :n])
    return block[:, :1].copy() if is_uniform(block, n) else release_unused(block, n)


def _consolidate_small(updates: Updates, n: int) -> Updates:
    data, times, diffs = updates.data, updates.times, updates.diffs
    out_data = np.empty((data.shape[0], n), np.int64)
    out_times = np.empty((times.shape[0], n), np.int64) if times.shape[1] > 1 else times
    out_diffs = np.empty((diffs.shape[0], n), np.int64)
    kept = consolidate_few(data, times, diffs, np.empty(n, np.int64), out_data, out_times, out_diffs)
    if kept == n and diffs.shape[1] == 1 == times.shape[1]:  # no sum: every row has the diff that it had
        return Updates(out_data, times, diffs)
    return Updates(trim(out_data, kept), shrink_block(out_times, kept), shrink_block(out_diffs, kept))


def _consolidate_in_table(parts: list[Updates], row: Fields) -> Updates:
    """Consolidate where there are at most as many possible words as rows: count in a table."""
    fields = row.whole()
    table = np.zeros(1 << row.bits, np.int64)
    for part in parts:
        add_to_table(part.data, part.times, fields[0], fields[3], part.diffs, table)
    return _read_table(parts, table, fields)


def _read_table(parts: list[Updates], table: Ints, fields: Ints) -> Updates:
    """Return the updates in a table; empty the list of parts, which have the same form."""
    out, sums = _Output(parts[0], len(table)), allocate_block(1, len(table))
    parts.clear()
    kept = read_table(table, out.words, sums)
    return out.unpack(kept, fields, sums)


def _consolidate_words(parts: list[PackedUpdates], n: int, layout: Layout) -> Updates:
    """Consolidate rows that came packed."""
    first, bits, diff_bits = parts[0], layout.bits, layout.diff_bits
    row_bits = bits - diff_bits
    in_order = all(part.consolidated for part in parts)  # then each part passes through the table once
    if row_bits <= TABLE_BITS and 1 << row_bits <= (2 * n if in_order else n) and first.width == 1:
        table = np.zeros(1 << row_bits, np.int64)
        for part in parts:
            _add_packed(part, layout, table)
        return _read_table(cast(list[Updates], parts), table, layout.rows.fields)
    diff, out = first.diffs if first.has_constant_diff else None, _Output(first, n)
    end = n
    while parts:  # from the end, so that each part is freed when it is copied
        part = parts.pop()
        out.words[end - len(part) : end] = part.words if part.layout == layout else part.words_in(layout)
        end -= len(part)
    return (
        _sort_and_count(out, bits, layout.fields, diff)
        if diff is not None
        else _sort_and_sum(out, bits, layout.fields, diff_bits, first.width)
    )


def _add_packed(part: PackedUpdates, layout: Layout, table: Ints) -> None:
    """Add packed rows to a table of the possible rows of a layout. Their diffs may have a layout of their own."""
    has_same_rows = part.layout.rows == layout.rows
    words, own = (part.words, part.layout) if has_same_rows else (part.words_in(layout), layout)
    add: Callable[..., None] = add_narrow_to_table if words.dtype == NARROW else add_words_to_table
    add(words, own.diff_bits, int(part.diffs[0, 0]) if part.has_constant_diff else own.lows[-1], table)


def _consolidate_counts(parts: list[Updates], n: int, row: Fields) -> Updates:
    """Consolidate where the diff is constant and a row fits into a word: sort and count."""
    fields, diff = row.whole(), parts[0].diffs
    out, sorted_bits = _Output(parts[0], n), bits_in_order(parts, row)
    pack_rows([_row_blocks(part) for part in parts], fields, out.words)
    parts.clear()
    return _sort_and_count(out, row.bits, fields, diff, sorted_bits)


def bits_in_order(parts: list[Updates], row: Fields) -> int:
    """Return how many of the lowest bits of all rows are in order already: those of the time, or none.

    Rows that arrive in the order of time need only a stable sort by their other lanes.
    """
    times = parts[0].times[0]
    if (
        len(parts) > 1
        or len(parts[0].times) > 1
        or len(times) < MIN_ORDERED_ROWS
        or not (times[1:] >= times[:-1]).all()
    ):
        return 0
    return int(row.widths[-1])


def _sort_and_count(out: _Output, bits: int, fields: Ints, diff: Ints, sorted_bits: int = 0) -> Updates:
    """Sort the words of an output, whose rows all have one diff, and count equal ones."""
    sort_words(out.words, sorted_bits, bits, out.scratch())
    kept, diffs = _count(out.words, diff)
    return out.unpack(kept, fields, diffs)


def _count(words: Ints, diff: Ints) -> tuple[int, Ints]:
    """Remove repeated words of a sorted array, in place; return the number left, and the diff of each."""
    kept = count_distinct(words, 0) if diff.any() else 0
    if kept in (0, len(words)):
        return kept, diff
    diffs = np.empty((diff.shape[0], kept), np.int64)
    count_words(words, diff[:, 0].copy(), diffs)
    return kept, diffs


def _consolidate_packed(parts: list[Updates], n: int, both: Fields, diff_bits: int) -> Updates:
    """Consolidate where a row and its diff fit into a word."""
    fields, width = both.whole(), parts[0].diffs.shape[0]
    out = _Output(parts[0], n)
    pack_rows([(*_row_blocks(part), part.diffs) for part in parts], fields, out.words)
    parts.clear()
    return _sort_and_sum(out, both.bits, fields, diff_bits, width)


def _sort_and_sum(out: _Output, bits: int, fields: Ints, diff_bits: int, width: int) -> Updates:
    """Sort the words of an output, which end in diffs, and sum the diffs of equal rows."""
    sort_words(out.words, diff_bits, bits, out.scratch())
    diff = fields[:, -width:].copy()
    sums = allocate_block(width, count_distinct(out.words, diff_bits))
    kept = sum_words(out.words, diff_bits, diff[0], diff[2], diff[3], sums)
    return out.unpack(kept, fields, sums)


def _consolidate_signed(updates: Updates, n: int, row: Fields, total: int) -> Updates:
    """Consolidate where a row and a sign fit into a word and diffs are small: repeat words, `total` in all."""
    fields = row.whole()
    words, out = np.empty(n, np.int64), _Output(updates, total)
    pack_rows([_row_blocks(updates)], fields, words)
    write_signed_words(words, updates.diffs[0], out.words)
    sort_words(out.words, 1, row.bits + 1, out.scratch())
    sums = allocate_block(1, total)
    kept = sum_signed_words(out.words, sums)
    fields[3] += 1
    return out.unpack(kept, fields, sums)


def _consolidate_single_lane(updates: Updates) -> Updates:
    """Consolidate a single lane of more than 63 bits with constant time and diff."""
    words = np.sort(updates.data[0] if updates.data.shape[0] else updates.times[0])
    kept, diffs = _count(words, updates.diffs)
    lane, diffs = words[:kept].copy().reshape(1, kept), shrink_block(diffs, kept)
    if updates.data.shape[0]:
        return Updates(lane, updates.times, diffs)
    return Updates(np.empty((0, kept), np.int64), shrink_block(lane, kept), diffs)


def _consolidate_by_position(updates: Updates, n: int, row: Fields) -> Updates:
    """Consolidate where a row and its diff do not fit into a word: sort positions by leading bits."""
    data, times, diffs = updates.data, updates.times, updates.diffs
    words, fields, exact = _sort_positions(updates, n, row)
    sums, mask = allocate_block(diffs.shape[0], n), (1 << n.bit_length()) - 1
    kept = sum_positions(data, times, diffs, words, mask, exact, sums)
    lanes, whole = data.shape[0], row.whole_in(fields)
    data = _gather_rows(data, words, kept, mask, fields, whole)
    if times.shape[1] > 1:
        times = shrink_block(_gather_rows(times, words, kept, mask, fields[:, lanes:], whole[lanes:]), kept)
    return Updates(data, times, shrink_block(sums, kept))


def _gather_rows(block: Ints, words: Ints, kept: int, mask: int, fields: Ints, whole: list[bool]) -> Ints:
    """Return the rows of words: a lane that the words hold whole from them, other lanes by position."""
    out = np.empty((block.shape[0], kept), np.int64)
    for lane in range(block.shape[0]):
        if whole[lane]:
            low, _, bits, shift = (fields[part, lane : lane + 1] for part in range(4))
            unpack_words(words, kept, low, bits, shift, out[lane : lane + 1])
        else:
            gather_lane(block, lane, words, mask, kept, out)
    return out


def _sort_positions(updates: Updates, n: int, row: Fields) -> tuple[Ints, Ints, int]:
    """Return the sorted rows as words that end in a position, their fields, and 1 if equal fields mean equal rows."""
    position_bits = n.bit_length()
    words, ranks = np.empty(n, np.int64), np.empty((1, n), np.int64)
    space, start, rank_bits = WORD_BITS - position_bits, 0, 0
    while True:
        fields = row.window(start, space)
        pack_rows([_row_blocks(updates)], fields, words)
        if rank_bits:
            zero, mask, shift = np.array([[0], [-1], [space]], np.int64)
            pack_words(ranks, zero, zero, mask, shift, 0, words)
        append_positions(words, position_bits)
        sort_words(words, position_bits, WORD_BITS, ranks[0])
        start += space
        fields[3] += position_bits
        if start >= row.bits:
            return words, fields, 1
        if 8 * count_tied_rows(words, position_bits) <= n:
            sort_ties(updates.data, updates.times, words, position_bits, ranks[0])
            return words, fields, 0
        rank_bits = rank_words(words, position_bits, ranks).bit_length()
        space = WORD_BITS - position_bits - rank_bits
