"""Terms that follow from a disjunction: what all its branches have in common, and what they say about few columns.

    (a AND x) OR (a AND y)                   implies   a
    (p AND q) OR (r AND s)                   implies   p OR r, if both concern the same relation

A join condition hidden in every branch thus becomes a key, and each side can be filtered before the join. The
disjunction itself is kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

from kpg.columns.pause_points import pause
from kpg.sql.relational.scalars import Or, Scalar, conjunction, conjuncts
from kpg.sql.rewrites.join_conditions import columns_of
from kpg.sql.rewrites.scalar_properties import can_fail
from kpg.sql.sql_types import BOOLEAN

Item = TypeVar("Item")


def implied_terms(term: Scalar) -> Iterator[Scalar]:
    """Yield terms that are true wherever a disjunction is; none of another term."""
    if not isinstance(term, Or):
        return
    branches = [conjuncts(branch) for branch in in_turns(disjuncts(term))]
    common = [part for part in branches[0] if all(part in branch for branch in in_turns(branches[1:]))]
    yield from common
    rest = [[part for part in branch if part not in common and not can_fail(part)] for branch in in_turns(branches)]
    for columns in _column_sets(rest):
        chosen = [[part for part in branch if columns_of(part) == columns] for branch in in_turns(rest)]
        if all(chosen):
            yield Or(tuple(conjunction(tuple(parts)) for parts in chosen), type=BOOLEAN)


def in_turns(items: Sequence[Item]) -> Iterator[Item]:
    """Yield some items; others may run before each."""
    for item in items:
        pause()
        yield item


def disjuncts(term: Scalar) -> tuple[Scalar, ...]:
    """Return the terms of a disjunction, nested ones included."""
    return tuple(inner for part in term.terms for inner in disjuncts(part)) if isinstance(term, Or) else (term,)


def _column_sets(branches: list[list[Scalar]]) -> list[frozenset[object]]:
    """Return the sets of columns that single terms of the first branch read."""
    return list(dict.fromkeys(frozenset(columns_of(part)) for part in branches[0] if columns_of(part)))
