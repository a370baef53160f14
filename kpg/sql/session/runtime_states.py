"""The SQLSTATE of an expression that fails on a row, by the reason that the engine gives."""

from __future__ import annotations

from typing import Final

from kpg.errors import DataError, KpgError

DATA_EXCEPTION: Final = "22000"
_STATES: Final = (  # the first phrase that occurs in the reason decides
    ("division by zero", "22012"),
    ("divided by zero", "22012"),
    ("too long", "22001"),
    ("several rows", "21000"),
    ("more than one row", "21000"),
    ("invalid input", "22P02"),
    ("invalid text", "22P02"),
    ("invalid regular expression", "2201B"),
    ("logarithm", "2201E"),
    ("power", "2201F"),
    ("time zone", "22023"),
    ("date", "22008"),
    ("timestamp", "22008"),
    ("out of range", "22003"),
    ("overflow", "22003"),
    ("range", "22003"),
)


def state_of_reason(reason: str) -> str:
    """Return the SQLSTATE for the reason of a failure."""
    return next((state for phrase, state in _STATES if phrase in reason), DATA_EXCEPTION)


def with_state(error: KpgError) -> KpgError:
    """Return an error of a row with its SQLSTATE."""
    if error.sqlstate is None and isinstance(error, DataError):
        error.sqlstate = state_of_reason(error.what)
    return error
