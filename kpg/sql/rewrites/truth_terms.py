"""Terms of logic that rewrites build: p IS TRUE, written as CASE WHEN p THEN true ELSE false END."""

from __future__ import annotations

from typing import Final

from kpg.sql.relational.scalars import TRUE, Case, Constant, Scalar
from kpg.sql.sql_types import BOOLEAN

FALSE: Final = Constant(False, type=BOOLEAN)


def asserting(term: Scalar) -> Scalar:
    """Return `term IS TRUE`: false where the term is null."""
    return Case(((term, TRUE),), FALSE, type=BOOLEAN, span=term.span)


def is_asserted(term: Scalar) -> bool:
    """Return whether a term is `… IS TRUE`."""
    return (
        isinstance(term, Case) and len(term.branches) == 1 and term.branches[0][1] == TRUE and term.otherwise == FALSE
    )


def asserted(term: Scalar) -> Scalar:
    """Return the term of `term IS TRUE`."""
    assert isinstance(term, Case)
    return term.branches[0][0]
