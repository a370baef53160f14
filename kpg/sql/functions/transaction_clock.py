"""The time that now() and current_date have: one moment for all statements of a transaction.

A session fixes it for each statement that it runs, with `fixed_moment`. Views may not read it, because their answers
depend on the tables alone.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from kpg.columns.expression import Expression, Literal
from kpg.sql.lower.engine_types import engine_type
from kpg.sql.sql_types import SqlType

_MOMENT: Final[ContextVar[datetime.datetime | None]] = ContextVar("moment of a transaction", default=None)


@contextmanager
def fixed_moment(moment: datetime.datetime) -> Iterator[None]:
    """Let now() have a value inside of a block."""
    token = _MOMENT.set(moment)
    try:
        yield
    finally:
        _MOMENT.reset(token)


def transaction_moment() -> datetime.datetime:
    """Return the value of now(); outside of a statement, the time of the clock."""
    return _MOMENT.get() or datetime.datetime.now(datetime.UTC)


def moment_build(arguments: Sequence[Expression], types: Sequence[SqlType], result: SqlType) -> Expression:
    """Build now() and its relatives: a constant of the result type."""
    moment = transaction_moment()
    type_ = engine_type(result, nullable=False)
    match result.name:
        case "date":
            return Literal(moment.date())
        case "time without time zone":
            return Literal(moment.time())
    return Literal(moment).cast(type_)
