"""Aggregates that are computed from the array of a group's values: bits, extremes of arrays, text with own delimiters.

The engine keeps the array up to date. A changed group costs its size.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import and_, or_, xor
from typing import Any, Final

from kpg.sql.functions.array_values import order_of_elements
from kpg.sql.functions.sql_casts import read_array

_BITS: Final[dict[str, Callable[[int, int], int]]] = {"bit_and": and_, "bit_or": or_, "bit_xor": xor}


def folded_bits(name: str, values: tuple[int | None, ...]) -> int | None:
    """Return the values combined bit by bit; null if there is none."""
    present = [value for value in values if value is not None]
    return reduce(_BITS[name], present) if present else None


def extreme_array(name: str, element: str, texts: tuple[str | None, ...]) -> tuple[Any, ...] | None:
    """Return the least or greatest of arrays, which are given as text; null if there is none."""
    arrays = [read_array(element, text) for text in texts if text is not None]
    choose: Callable[..., tuple[Any, ...] | None] = min if name == "min" else max
    return choose(arrays, key=order_of_elements, default=None)


def with_delimiter(value: str, delimiter: str | None) -> str | None:
    """Return a value and the delimiter before it as one text; null for a null value, which string_agg skips."""
    return None if value is None else f"{len(delimiter or '')}:{delimiter or ''}{value}"


def joined_pairs(pairs: tuple[str | None, ...]) -> str | None:
    """Join values, each after its own delimiter; the delimiter of the first one is left out."""
    parts: list[str] = []
    for pair in pairs:
        if pair is not None:
            length, _, rest = pair.partition(":")
            parts.append(rest if parts else rest[int(length) :])
    return "".join(parts) if parts else None
