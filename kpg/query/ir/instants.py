"""Instants: integers that count milliseconds since 1970, as clients of 3DF send them.

    truncated(t, "hour")  =  the greatest instant at or before t that begins an hour, in UTC

Weeks begin on Monday. Instants before 1970 are negative and round down like all others.
"""

from __future__ import annotations

from kpg.query.ir.terms import CallTerm, ConstantTerm, Term
from kpg.query.source_text import Position

MILLISECONDS = {"second": 1_000, "minute": 60_000, "hour": 3_600_000, "day": 86_400_000, "week": 604_800_000}
FIRST_MONDAY = 4 * MILLISECONDS["day"]  # 1970 began on a Thursday


def truncated(instant: Term, unit: str, at: Position) -> Term:
    """Return the beginning of an instant's second, minute, hour, day or week."""
    length = number(MILLISECONDS[unit], at)
    origin = number(FIRST_MONDAY if unit == "week" else 0, at)
    remainder = call("%", call("-", instant, origin, at), length, at)  # of the sign of its dividend
    return call("-", instant, call("%", call("+", remainder, length, at), length, at), at)


def number(value: int, at: Position) -> Term:
    """Return an integer as a term."""
    return ConstantTerm(value, "number", at)


def call(functor: str, left: Term, right: Term, at: Position) -> Term:
    """Return a functor of two terms."""
    return CallTerm(functor, (left, right), None, at)
