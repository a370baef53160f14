"""Compute scalars without columns once, when the query is planned.

`date '1998-12-01' - interval '90 days'` becomes a date, so conditions that use it cannot fail and can be moved. A
scalar that fails is left as it is: whether it counts is decided where rows are.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kpg.columns.bind import bind
from kpg.columns.decode_column import decode_list
from kpg.columns.schema import Schema
from kpg.columns.symbols import Symbols
from kpg.errors import KpgError
from kpg.sql.lower.lower_scalars import expression_of
from kpg.sql.relational.relations import BoundRelation, Query
from kpg.sql.relational.scalars import Cast, Constant, Scalar, ScalarCall, map_parts, parts
from kpg.sql.rewrites.relation_traversal import map_relations, map_scalars


def fold_constants(query: Query) -> Query:
    """Return a query with scalars without columns replaced by their values."""
    return replace(query, relation=map_relations(query.relation, _folded_node))


def _folded_node(node: BoundRelation) -> BoundRelation:
    return map_scalars(node, folded)


def folded(scalar: Scalar) -> Scalar:
    """Return a scalar with its constant parts computed."""
    inner = map_parts(scalar, folded)
    if not isinstance(inner, (ScalarCall, Cast)) or not all(isinstance(part, Constant) for part in parts(inner)):
        return inner
    if isinstance(inner, ScalarCall) and (inner.function.volatile or inner.function.stable):
        return inner
    try:
        return _value(inner)
    except (KpgError, ValueError, TypeError, OverflowError):
        return inner


def _value(scalar: Scalar) -> Scalar:
    symbols = Symbols()
    bound = bind(expression_of(scalar, {}), Schema((), ()), symbols)
    evaluated = bound.evaluate(np.empty((0, 1), np.int64))
    if evaluated.failed is not None and evaluated.failed.any():
        return scalar
    (value,) = decode_list(bound.type, evaluated.values, symbols)
    return Constant(value, type=scalar.type, span=scalar.span)
