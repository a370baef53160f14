"""A relation whose dependence on outer columns has been made explicit.

relation    no longer refers to outer columns
bound       the column of the relation that holds the value of each outer expression. The rows for an outer row are
            those on which they are equal, null included
pending     conditions over the relation and outer columns that these rows must satisfy as well
defaults    None, or the values of the one row that there is for an outer row for which the relation has none: a
            group without keys exists even if no row is in it
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from kpg.sql.relational.relations import BoundRelation
from kpg.sql.relational.scalars import (
    TRUE,
    Case,
    Cast,
    Column,
    ColumnValue,
    Constant,
    IsNull,
    Not,
    Scalar,
    ScalarCall,
    map_parts,
    parts,
)
from kpg.sql.rewrites.join_conditions import columns_of, equal_sides
from kpg.sql.rewrites.node_builders import extend, value_of, where
from kpg.sql.sql_types import BOOLEAN

STRICT_OPERATORS: Final = frozenset({"+", "-", "*", "/", "%", "=", "<>", "<", "<=", ">", ">="})


@dataclass(frozen=True, slots=True)
class DefaultedColumn:
    """A column with a value for outer rows without a row: its value over the relation, and that default.

    The value is computed after the join with outer rows, so that it fails only on rows that an outer row asks for.
    """

    found: Scalar
    default: Scalar


@dataclass(frozen=True, slots=True)
class UnnestedRelation:
    """A relation without outer columns, and how its rows belong to outer rows."""

    relation: BoundRelation
    bound: Mapping[Scalar, Column] = field(default_factory=dict)
    pending: tuple[Scalar, ...] = ()
    defaults: Mapping[Column, DefaultedColumn] | None = None

    def replaced(self, scalar: Scalar) -> Scalar:
        """Return a scalar with the outer expressions that are bound replaced by columns."""
        return replace_scalars(scalar, {outer: value_of(column) for outer, column in self.bound.items()})


def replace_scalars(scalar: Scalar, values: Mapping[Scalar, Scalar]) -> Scalar:
    """Return a scalar in which some scalars are replaced by others."""
    replacement = values.get(scalar)
    return replacement if replacement is not None else map_parts(scalar, lambda part: replace_scalars(part, values))


def with_terms(unnested: UnnestedRelation, terms: Iterable[Scalar], outer: frozenset[Column]) -> UnnestedRelation:
    """Return the rows that satisfy further terms, which may refer to outer columns.

    An equation of an outer expression with a value of the row binds the expression. Other terms with outer columns are
    left pending.
    """
    relation, bound = unnested.relation, dict(unnested.bound)
    waiting = list(terms)
    local: list[Scalar] = []
    progress = True
    while progress:
        progress = False
        values: dict[Scalar, Scalar] = {key: value_of(column) for key, column in bound.items()}
        waiting = [replace_scalars(term, values) for term in waiting]
        for term in waiting:
            if not columns_of(term) & outer:
                waiting.remove(term)
                local.append(term)
                progress = True
                break
            equation = outer_equation(term, outer)
            if equation is not None:
                key, own = equation
                if isinstance(own, ColumnValue) and own.column in relation.columns:
                    column = own.column
                else:
                    column = Column("key", own.type)
                    relation = extend(relation, {column: own})
                bound[key] = column
                local.append(Not(IsNull(value_of(column), type=BOOLEAN), type=BOOLEAN))
                waiting.remove(term)
                progress = True
                break
    pending = unnested.pending + tuple(waiting)
    return UnnestedRelation(where(relation, local), bound, pending)


def outer_equation(term: Scalar, outer: frozenset[Column]) -> tuple[Scalar, Scalar] | None:
    """Return the outer and the inner side of an equation between them."""
    sides = equal_sides(term)
    if sides is None or sides[0].type != sides[1].type or type(term).__name__ == "SameValue":
        return None
    for own, other in (sides, sides[::-1]):
        if columns_of(own) and columns_of(own) <= outer and columns_of(other) and not columns_of(other) & outer:
            return own, other
    return None


def marked(unnested: UnnestedRelation) -> tuple[BoundRelation, dict[Column, Scalar]]:
    """Return a relation with defaults for a left join, and the value of each column after it.

    A value whose default is null is null if its columns are, as they are for an outer row without a row.
    """
    assert unnested.defaults is not None
    values: dict[Column, Scalar] = {column: value_of(column) for column in unnested.bound.values()}
    marker = Column("found", BOOLEAN)
    missing = IsNull(value_of(marker), type=BOOLEAN)
    for column, entry in unnested.defaults.items():
        given = Case(((missing, entry.default),), entry.found, type=column.type)
        values[column] = entry.found if is_null(entry.default) else given
    if all(is_null(entry.default) for entry in unnested.defaults.values()):
        return unnested.relation, values
    return extend(unnested.relation, {marker: TRUE}), values


def is_null(scalar: Scalar) -> bool:
    """Return whether a scalar is the constant null."""
    return isinstance(scalar, Constant) and scalar.value is None


def folded_null(scalar: Scalar) -> Scalar:
    """Return the constant null for a scalar that is null because a strict operator has a null argument."""
    folded = map_parts(scalar, folded_null)
    strict = isinstance(folded, Cast) or (isinstance(folded, ScalarCall) and folded.function.name in STRICT_OPERATORS)
    return Constant(None, type=folded.type) if strict and any(map(is_null, parts(folded))) else folded
