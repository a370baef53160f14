"""Expressions that fail on purpose: a row on which a condition is true becomes an error row with a given reason."""

from __future__ import annotations

from typing import Final

from kpg.columns.expression import Expression, FunctionCall, Literal
from kpg.columns.schema import BOOL

SEVERAL_ROWS: Final = "more than one row returned by a subquery used as an expression"  # SQLSTATE 21000


def failing_if(condition: Expression, reason: str, value: Expression) -> Expression:
    """Return a value; a row fails if the condition is true."""
    unless = FunctionCall("when", (condition, Literal(None).cast(BOOL.optional()), Literal(True)))
    return FunctionCall("when", (FunctionCall("not_null", (unless,), (reason,)), value, value))
