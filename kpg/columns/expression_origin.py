"""Origins: the source text of expressions that a query language compiled, for the messages of rows that fail.

A user of Datalog writes `x / y`. kpg computes it by several operations on columns, and messages must name none of them.
An expression of Python needs no origin: its own text is what the user wrote.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class ExpressionOrigin:
    """The text of an expression, its position, and the values that messages show.

    `columns` pairs each variable with the column that holds it. `rule` identifies the rule: errors with equal rule,
    reason and values are one error, whichever operator reports them, so the pipelines of a rule may share one.
    """

    text: str
    at: str = ""
    excerpt: str = ""
    columns: tuple[tuple[str, str], ...] = ()
    rule: str = ""


class Failure(NamedTuple):
    """The reason why a row failed, and the origin of the failing expression if a query language compiled it."""

    reason: str
    origin: ExpressionOrigin | None = None
