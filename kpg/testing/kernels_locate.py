"""Plain-Python twins of kpg.kernels.locate_keys and signposts: same names, obvious bodies, no cleverness."""

from __future__ import annotations

from collections.abc import Sequence

Row = tuple[int, ...]


def locate(blocks: Sequence[Sequence[Row]], keys: Sequence[Row]) -> list[list[tuple[int, int]]]:
    """For each sorted block and each key, where the rows that begin with the key begin and end."""
    return [
        [
            (
                sum(row[: len(key)] < key for row in block),
                sum(row[: len(key)] <= key for row in block),
            )
            for key in keys
        ]
        for block in blocks
    ]


def place(lane: Sequence[int], base: int, shift: int, count: int) -> tuple[list[int], int, int]:
    """The places of a sorted lane; how many values differ; and the sum over places of the square of that."""
    intervals = [(base + each) << shift for each in range(count)]
    places = [sum(value < low for value in lane) for low in intervals]
    differing = [len(set(lane[start:end])) for start, end in zip(places, places[1:], strict=False)]
    return places, sum(differing), sum(each * each for each in differing)
