"""Twins of kpg.kernels.sort_rows and of `sort_columns` of kpg.kernels.compare_rows."""

from __future__ import annotations

from collections.abc import Sequence

from kpg.columns.updates import Ints
from kpg.testing.kernel_twins.row_tuples import Row


def lane_bounds(columns: Sequence[Row]) -> list[tuple[int, int]]:
    """Return the least and the greatest value of each lane."""
    return [(min(lane), max(lane)) for lane in zip(*columns, strict=True)]


def pack_words(columns: Sequence[Row], fields: Sequence[tuple[int, int, int, int]]) -> list[int]:
    """Return the word of each column; `fields` holds (low, drop, mask, shift) of each lane."""
    return [
        sum(
            (((value - low) >> drop) & mask) << shift
            for value, (low, drop, mask, shift) in zip(row, fields, strict=True)
        )
        for row in columns
    ]


def count_tied_rows(words: Sequence[int], longest: int) -> int:
    """Return the number of words that occur more than `longest` times, counting each occurrence."""
    return sum(1 for word in words if words.count(word) > longest)


def rank_words(words: Sequence[int]) -> list[int]:
    """Return, for each word, the number of different words that are less."""
    distinct = sorted(set(words))
    return [distinct.index(word) for word in words]


def sort_columns(block: Ints, first: int, end: int, numbers: Sequence[int]) -> list[int]:
    """Return column numbers sorted by the lanes from `first` to `end`; equal columns keep their order."""
    return sorted(numbers, key=lambda i: tuple(block[first:end, i]))


def is_increasing(rows: list[tuple[int, ...]]) -> bool:
    """Return whether each row is greater than the one before."""
    return all(before < after for before, after in zip(rows, rows[1:], strict=False))
