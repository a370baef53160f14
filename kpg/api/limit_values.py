"""The values of limits: whole numbers for rows, bytes and rounds, and at most MAX_LIMIT, which no query can reach.

A larger value, also infinity, becomes MAX_LIMIT, so that it means the same on one worker and in messages to several.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Final

from kpg.errors import InputError

MAX_LIMIT: Final = 2**53 - 1  # the largest whole number that every reader of JSON takes exactly
FRACTIONS: Final = ("first_seconds", "cpu_percent")  # limits that need not be whole


def bound_limits(limits: Any) -> None:
    """Replace the values of a new dataclass of limits that are too large."""
    for name in [each.name for each in fields(limits)]:
        value = getattr(limits, name)
        if value is not None and value >= MAX_LIMIT:
            object.__setattr__(limits, name, float(MAX_LIMIT) if name in FRACTIONS else MAX_LIMIT)


def checked_limit(name: str, value: float) -> float:
    """Return the value of a limit that a request sets; raise InputError if it is not positive, or not whole."""
    if not value > 0:
        raise InputError(f"the limit {name} must be positive, not {value:g}")
    if name in FRACTIONS or value >= MAX_LIMIT:
        return value
    if value != int(value):
        raise InputError(f"the limit {name} must be a whole number, not {value:g}")
    return int(value)
