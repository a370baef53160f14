"""Many comparisons of one column with constants, as one test of membership.

    c = 1 OR c = 2 OR … OR other      ==      c.is_in([1, 2, …]) OR other

A list of IN is bound as such a disjunction. The test costs one search for each row, whatever the number of constants,
and one expression to plan instead of thousands. Null is no constant here: `c = NULL` stays a term of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from kpg.columns.expression import ColumnReference, Expression
from kpg.columns.pause_points import pause
from kpg.sql.relational.scalars import Column, ColumnValue, Constant, Scalar, ScalarCall

MIN_MEMBERS: Final = 8  # fewer comparisons are as fast
INTEGERS: Final = ("smallint", "integer", "bigint")
COMPARED_TYPES: Final = {**dict.fromkeys(INTEGERS, INTEGERS), "text": ("text",), "date": ("date",)}


def split_memberships(terms: Sequence[Scalar], names: Mapping[Column, str]) -> tuple[list[Expression], list[Scalar]]:
    """Return the tests of membership that stand for some terms of a disjunction, and the other terms."""
    if len(terms) < MIN_MEMBERS:
        return [], list(terms)
    values: dict[Column, list[Any]] = {}
    compared = []
    for term in terms:
        pause()
        compared.append(compared_constant(term))
    for pair in compared:
        if pair is not None:
            values.setdefault(pair[0], []).append(pair[1])
    chosen = {column for column, constants in values.items() if len(constants) >= MIN_MEMBERS}
    tests = [ColumnReference(names[column]).is_in(values[column]) for column in values if column in chosen]
    others = [term for term, pair in zip(terms, compared, strict=True) if pair is None or pair[0] not in chosen]
    return tests, others


def compared_constant(term: Scalar) -> tuple[Column, Any] | None:
    """Return the column and the constant that a term compares for equality; None if it is another term."""
    if not isinstance(term, ScalarCall) or term.function.name != "=" or len(term.arguments) != 2:
        return None
    for left, right in (term.arguments, term.arguments[::-1]):
        if isinstance(left, ColumnValue) and isinstance(right, Constant) and right.value is not None:
            if right.type.name in COMPARED_TYPES.get(left.type.name, ()):
                return left.column, right.value
    return None
