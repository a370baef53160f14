"""Updates whose rows are words of 64 or 32 bits: the form in which many rows travel between workers.

    PackedUpdates.words    the lanes of a row, most significant first, then its diff unless all are equal:
                           int64[n], or uint32[n] where that is enough
    PackedUpdates.layout   the least value and the width in bits of each lane

All updates have one time. A packed row takes 4 or 8 bytes however many lanes it has. The receiver sorts the words as
they are: it need not pack them again (kpg.columns.consolidation). Every other reader asks for `data` and `diffs`, which
unpacks all rows once. The layout begins at zero where no value is negative, so that the layouts of different workers
usually agree; otherwise rows are packed again in a common layout.
Cost: two passes to pack, one to unpack.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import accumulate
from typing import Any, Final, TypeAlias, TypeGuard

import numpy as np
import numpy.typing as npt

from kpg.columns.exact_diffs import MAX_LOOSE_MASS, is_exact
from kpg.columns.lane_values import MAX
from kpg.columns.packed_rows import WORD_BITS, bounds_of, pack_rows
from kpg.columns.updates import Ints, Updates
from kpg.kernels.consolidate_rows import unpack_words

_DATA: Final[Any] = Updates.__dict__["data"]  # the slots, which properties of the subclass hide
_DIFFS: Final[Any] = Updates.__dict__["diffs"]


NARROW_BITS = 32  # words of at most this many bits are stored in half the memory
NARROW = np.dtype(np.uint32)
Words: TypeAlias = Ints | npt.NDArray[np.uint32]


class Layout:
    """The position of each lane in a word; the lanes after the first `lanes` are those of the diff."""

    def __init__(self, lows: Sequence[int], widths: Sequence[int], lanes: int) -> None:
        self.lows = tuple(lows)
        self.widths = tuple(widths)
        self.lanes = lanes

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Layout) and (self.lows, self.widths) == (other.lows, other.widths)

    __hash__ = None  # type: ignore[assignment]

    @cached_property
    def bits(self) -> int:
        """The bits of a word that are used."""
        return sum(self.widths)

    @cached_property
    def diff_bits(self) -> int:
        """The bits of the diff, the lowest of a word; 0 if all diffs are equal."""
        return sum(self.widths[self.lanes :])

    @cached_property
    def fields(self) -> Ints:
        """Low, drop, mask and shift of each lane, as kpg.kernels.sort_rows takes them: int64[4, lanes]."""
        shifts = [self.bits - end for end in accumulate(self.widths)]
        masks = [(1 << width) - 1 for width in self.widths]
        return np.array([self.lows, [0] * len(masks), masks, shifts], np.int64).reshape(4, len(masks))

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of words that is large enough."""
        return NARROW if self.bits <= NARROW_BITS else np.dtype(np.int64)

    @property
    def rows(self) -> Layout:
        """The layout of words without their diffs."""
        return Layout(self.lows[: self.lanes], self.widths[: self.lanes], self.lanes)

    @property
    def highs(self) -> tuple[int, ...]:
        """The greatest value that each lane can have."""
        return tuple(low + (1 << width) - 1 for low, width in zip(self.lows, self.widths, strict=True))

    @property
    def is_possible(self) -> bool:
        """Whether words of this layout stand for rows of int64."""
        return min(self.widths, default=0) >= 0 and self.bits <= WORD_BITS and max(self.highs, default=0) <= MAX

    def mass_of(self, rows: int, diffs: Ints | None) -> int:
        """Return a bound of Σ |diff|, given the constant diffs if they are not in the words."""
        ends = [*self.lows[self.lanes :], *self.highs[self.lanes :]] if diffs is None else diffs[:, 0].tolist()
        return max(map(abs, ends), default=0) * rows


class PackedUpdates(Updates):
    """Updates of one time, packed into words."""

    __slots__ = ("words", "layout")
    words: Words
    layout: Layout

    def __init__(self, words: Words, layout: Layout, times: Ints, diffs: Ints | None, consolidated: bool) -> None:
        """Take words; `diffs` is the constant diff, or None if the words hold the diffs."""
        fields = (words, layout, times, consolidated, layout.mass_of(len(words), diffs))
        for name, value in zip(("words", "layout", "times", "consolidated", "known_mass"), fields, strict=True):
            object.__setattr__(self, name, value)
        if diffs is not None:
            _DIFFS.__set__(self, diffs)

    def __len__(self) -> int:
        return len(self.words)

    @property
    def has_constant_diff(self) -> bool:
        """Whether all diffs are equal; otherwise the words hold them."""
        return len(self.layout.widths) == self.layout.lanes

    @property
    def data(self) -> Ints:
        """The lanes of the rows."""
        return self._unpacked(_DATA, slice(0, self.layout.lanes))

    @property
    def diffs(self) -> Ints:
        """The diffs."""
        return self._unpacked(_DIFFS, slice(self.layout.lanes, None))

    def _unpacked(self, slot: Any, lanes: slice) -> Ints:
        """Return the block in a slot; unpack it on first use."""
        try:
            block: Ints = slot.__get__(self)
        except AttributeError:
            low, _, mask, shift = np.ascontiguousarray(self.layout.fields[:, lanes])
            block = np.empty((len(low), len(self)), np.int64)
            unpack_words(self.words.astype(np.int64, copy=False), len(self), low, mask, shift, block)
            slot.__set__(self, block)
        return block

    def unpack_into(self, block: Ints) -> None:
        """Write the lanes of the first rows into a block, int64[lanes, n], whose lanes are contiguous."""
        low, _, mask, shift = self.layout.fields
        words = self.words[: block.shape[1]].astype(np.int64, copy=False)
        for lane in range(self.layout.lanes):
            of = slice(lane, lane + 1)
            unpack_words(words, len(words), low[of], mask[of], shift[of], block[of])

    @property
    def lanes(self) -> int:
        return self.layout.lanes

    @property
    def width(self) -> int:
        return len(self.layout.widths) - self.layout.lanes or int(self.diffs.shape[0])

    @property
    def nbytes(self) -> int:
        return self.words.nbytes

    def words_in(self, layout: Layout) -> Ints:
        """Return the words in a layout that includes this one."""
        if layout == self.layout:
            return self.words.astype(np.int64, copy=False)
        if self.width == 1 and not self.has_constant_diff and self.layout.rows == layout.rows:
            return self._words_with_diffs_in(layout)
        words = np.empty(len(self), np.int64)
        blocks = (self.data,) if self.has_constant_diff else (self.data, self.diffs)
        pack_rows([blocks], layout.fields, words)
        return words

    def _words_with_diffs_in(self, layout: Layout) -> Ints:
        """Return the words in a layout that differs only in its diffs: their position does not depend on the rows."""
        old, words = self.layout, self.words.astype(np.int64)  # a copy, which is changed in place
        diffs = words & ((1 << old.diff_bits) - 1)
        diffs += old.lows[-1] - layout.lows[-1]
        words >>= old.diff_bits
        words <<= layout.diff_bits
        words |= diffs
        return words


def packed_layout(updates: Updates) -> Layout | None:
    """Return the layout of updates, or None if they have several times, or a row and its diff exceed a word."""
    if updates.times.shape[1] != 1 or not updates.data.size or is_exact(updates.diffs):
        return None
    diffs = updates.diffs if updates.diffs.shape[1] == 1 else None
    blocks = (updates.data,) if diffs is not None else (updates.data, updates.diffs)
    layout = layout_of(*bounds_of(blocks), updates.lanes)
    return None if layout is None or layout.mass_of(len(updates), diffs) >= MAX_LOOSE_MASS else layout


def pack_updates(updates: Updates) -> PackedUpdates | None:
    """Return updates packed, or None if they have no layout."""
    layout = packed_layout(updates)
    if layout is None:
        return None
    words = np.empty(len(updates), np.int64)
    diffs = updates.diffs if len(layout.widths) == layout.lanes else None
    pack_rows([(updates.data,) if diffs is not None else (updates.data, updates.diffs)], layout.fields, words)
    return PackedUpdates(words.astype(layout.dtype, copy=False), layout, updates.times, diffs, updates.consolidated)


def layout_of(lows: Sequence[int], highs: Sequence[int], lanes: int) -> Layout | None:
    """Return the layout of lanes between some bounds; None if a word is too short for them."""
    lows = [min(low, 0) for low in lows]
    layout = Layout(lows, [(high - low).bit_length() for low, high in zip(lows, highs, strict=True)], lanes)
    return layout if layout.is_possible else None


def are_packed(parts: list[Updates]) -> TypeGuard[list[PackedUpdates]]:
    """Return whether all parts are packed, with one time, and with one diff or their diffs in the words."""
    first = parts[0]
    if not isinstance(first, PackedUpdates):
        return False
    for part in parts[1:]:
        if not isinstance(part, PackedUpdates) or part.has_constant_diff != first.has_constant_diff:
            return False
        if part.times.tolist() != first.times.tolist():
            return False
        if first.has_constant_diff and part.diffs.tolist() != first.diffs.tolist():
            return False
    return True


def common_layout(parts: list[PackedUpdates]) -> Layout | None:
    """Return a layout for the words of all parts; None if a word is too short for it."""
    first = parts[0].layout
    if all(part.layout == first for part in parts):
        return first
    lows = map(min, zip(*[part.layout.lows for part in parts], strict=True))
    highs = map(max, zip(*[part.layout.highs for part in parts], strict=True))
    return layout_of(list(lows), list(highs), first.lanes)
