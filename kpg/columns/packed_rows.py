"""Rows packed into words of 64 bits: the position of each lane's bits in a word, and the words of some blocks.

    Fields(blocks)                 the least value of each lane, and the number of bits of its greatest difference to it
    pack_rows(blocks, fields, …)   the words: all bits of the rows, or a window of them

Words compare as the rows do, as far as they hold their bits (kpg.kernels.sort_rows).
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from kpg.columns.updates import Ints
from kpg.kernels.sort_rows import lane_bounds, pack_words

WORD_BITS = 63  # usable bits of a word: one less than 64, so that words are never negative
Blocks: TypeAlias = tuple[Ints, ...]  # of equal length; the lanes of the first block are the most significant


class Fields:
    """The least value and the width in bits of each lane of some blocks, most significant first."""

    __slots__ = ("lows", "widths", "bits")

    def __init__(self, parts: list[Blocks]) -> None:
        lows, highs = zip(*[bounds_of(blocks) for blocks in parts], strict=True)
        self.lows = list(map(min, zip(*lows, strict=True)))
        most = map(max, zip(*highs, strict=True))
        self.widths = [(high - low).bit_length() for low, high in zip(self.lows, most, strict=True)]
        self.bits = sum(self.widths)

    def followed_by(self, parts: list[Blocks]) -> Fields:
        """Return these lanes, followed by those of other blocks of the same rows."""
        fields = Fields(parts)
        fields.lows = self.lows + fields.lows
        fields.widths = self.widths + fields.widths
        fields.bits += self.bits
        return fields

    def whole(self) -> Ints:
        """Return low, drop, mask and shift of each lane for words that hold all bits: int64[4, lanes]."""
        shifts = []
        at = self.bits
        for width in self.widths:
            at -= width
            shifts.append(at)
        masks = [(1 << width) - 1 for width in self.widths]
        return np.array([self.lows, [0] * len(shifts), masks, shifts], np.int64)

    def window(self, start: int, space: int) -> Ints:
        """Return the same for words that hold `space` bits from bit `start` on."""
        columns = []
        end = start + space
        at = 0
        for low, width in zip(self.lows, self.widths, strict=True):
            first, last = max(at, start), min(at + width, end)
            bits = max(0, last - first)
            columns.append((low, at + width - last, (1 << bits) - 1, end - last) if bits else (low, 0, 0, 0))
            at += width
        return np.array(columns, np.int64).reshape(len(columns), 4).T.copy()

    def whole_in(self, window: Ints) -> list[bool]:
        """Return for each lane whether the window holds all of its bits."""
        return [mask == (1 << width) - 1 for mask, width in zip(window[2].tolist(), self.widths, strict=True)]


def bounds_of(blocks: Blocks) -> tuple[list[int], list[int]]:
    """Return the least and greatest value of each lane, as Python ints: their difference may exceed 64 bits."""
    low: list[int] = []
    high: list[int] = []
    for block in blocks:
        ends = np.empty((2, block.shape[0]), np.int64)
        lane_bounds(block, ends[0], ends[1])
        low += ends[0].tolist()
        high += ends[1].tolist()
    return low, high


def pack_rows(parts: list[Blocks], fields: Ints, words: Ints) -> None:
    """Write the words of the rows of each part, part by part."""
    begin = 0
    for blocks in parts:
        at, first = 0, 1
        part_words = words[begin : begin + blocks[0].shape[1]]
        for block in blocks:
            pack_words(block, fields[0, at:], fields[1, at:], fields[2, at:], fields[3, at:], first, part_words)
            at += block.shape[0]
            first = 0
        begin += len(part_words)
