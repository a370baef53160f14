"""Functions of sequences: nextval, currval, lastval and setval.

They read and change the numbers of a session, which passes them to the statements that it runs with
`sequence_numbers`. The binder allows only a constant as the name of a sequence and refuses these functions in views.
The session computes them itself, after the rows of a statement (kpg/sql/session/volatile_rows.py), so no worker draws
numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, Protocol

import numpy as np

from kpg.columns.expression import Apply, Expression
from kpg.columns.lane_values import NULL
from kpg.columns.updates import Ints
from kpg.sql.functions.building import constant_text
from kpg.sql.functions.function import Build, Function
from kpg.sql.lower.engine_types import engine_type
from kpg.sql.sql_types import BIGINT, BOOLEAN, TEXT, SqlType

SEQUENCE_FUNCTIONS: Final = frozenset({"nextval", "currval", "setval", "lastval"})


class Numbers(Protocol):
    """The sequences that a session sees, and the numbers that it drew from them."""

    def next_numbers(self, name: str, count: int) -> Ints:
        """Draw numbers."""
        ...

    def current_number(self, name: str) -> int:
        """Return the last number that the session drew from a sequence."""
        ...

    def last_number(self) -> int:
        """Return the last number that the session drew from any sequence."""
        ...

    def set_number(self, name: str, number: int, is_drawn: bool) -> None:
        """Let a sequence continue after a number, or with it."""
        ...


_NUMBERS: Final[ContextVar[Numbers | None]] = ContextVar("numbers of a session", default=None)


@contextmanager
def sequence_numbers(numbers: Numbers) -> Iterator[None]:
    """Let the functions of sequences use the numbers of a session inside of a block."""
    token = _NUMBERS.set(numbers)
    try:
        yield
    finally:
        _NUMBERS.reset(token)


def _numbers() -> Numbers:
    numbers = _NUMBERS.get()
    assert numbers is not None, "a sequence is used outside of a statement"
    return numbers


def next_values(name: str, count: int) -> Ints:
    """Return new numbers of a sequence, one for each row."""
    return _numbers().next_numbers(name, count)


def current_values(name: str, count: int) -> Ints:
    """Return the last number that the session drew from a sequence."""
    return np.full(count, _numbers().current_number(name), np.int64)


def last_values(count: int) -> Ints:
    """Return the last number that the session drew."""
    return np.full(count, _numbers().last_number(), np.int64)


def set_values(name: str, values: Ints, drawn: Ints | None = None) -> Ints:
    """Let a sequence continue after each value in turn; null changes nothing."""
    flags = np.ones(1, np.int64) if drawn is None else drawn
    for value, flag in zip(*(lane.tolist() for lane in np.broadcast_arrays(values, flags)), strict=True):
        if NULL not in (value, flag):
            _numbers().set_number(name, value, bool(flag))
    return values


def _drawing(function: Callable[..., Ints]) -> Build:
    def build(arguments: Sequence[Expression], types: Sequence[SqlType], result: SqlType) -> Expression:
        names = tuple(constant_text(argument) for argument in arguments)
        return Apply(function, engine_type(result, nullable=False), "volatile", (), names)

    return build


def _setting(arguments: Sequence[Expression], types: Sequence[SqlType], result: SqlType) -> Expression:
    options = (constant_text(arguments[0]),)
    return Apply(set_values, engine_type(result, nullable=False), "total", tuple(arguments[1:]), options)


FUNCTIONS: Final = (
    Function("nextval", (TEXT,), BIGINT, _drawing(next_values), volatile=True),
    Function("currval", (TEXT,), BIGINT, _drawing(current_values), volatile=True),
    Function("lastval", (), BIGINT, _drawing(last_values), volatile=True),
    Function("setval", (TEXT, BIGINT), BIGINT, _setting, volatile=True),
    Function("setval", (TEXT, BIGINT, BOOLEAN), BIGINT, _setting, volatile=True),
)
