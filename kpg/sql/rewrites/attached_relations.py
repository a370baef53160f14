"""Join rows with an unnested relation: the join that a dependent join becomes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from kpg.sql.relational.relations import BoundRelation, JoinKind
from kpg.sql.relational.scalars import Column, Scalar
from kpg.sql.rewrites.node_builders import join, project, same, value_of, where
from kpg.sql.rewrites.truth_terms import asserting
from kpg.sql.rewrites.unnested_relation import UnnestedRelation, marked, replace_scalars

Settle = Callable[[UnnestedRelation], UnnestedRelation]


def attach(
    kind: JoinKind,
    left: BoundRelation,
    right: UnnestedRelation,
    outer: Mapping[Scalar, Scalar],
    terms: Iterable[Scalar],
    mark: Column | None,
    settle: Settle,
) -> BoundRelation:
    """Return a join of left rows with the right rows that belong to them.

    `outer` has the value over the left side of each outer expression that is not one itself. `settle` makes a relation
    with defaults complete.
    """
    own = tuple(terms)
    if right.defaults is not None:
        if kind in ("inner", "left", "single") and (kind == "inner" or not own) and not right.pending:
            return _with_defaults(kind, left, right, outer, own)
        right = settle(right)
    keys = [same(replace_scalars(key, outer), value_of(column)) for key, column in right.bound.items()]
    conditions = [*keys, *(replace_scalars(term, outer) for term in right.pending)]
    if kind == "mark":
        conditions = [asserting(term) for term in conditions]
    return join(kind, left, right.relation, (*conditions, *own), mark=mark)


def _with_defaults(
    kind: JoinKind,
    left: BoundRelation,
    right: UnnestedRelation,
    outer: Mapping[Scalar, Scalar],
    own: tuple[Scalar, ...],
) -> BoundRelation:
    """Return the left rows, each with its one right row: the one found, or the defaults."""
    relation, values = marked(right)
    keys = [
        same(replace_scalars(key, outer), value_of(column))
        for key, column in right.bound.items()
    ]  # fmt: skip
    pairs = join("left", left, relation, keys)
    filled = {column: replace_scalars(value, outer) for column, value in values.items()}
    result = project(pairs, {**{column: value_of(column) for column in left.columns}, **filled})
    return where(result, own) if kind == "inner" else result
