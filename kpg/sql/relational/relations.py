"""Bound relations: the nodes of the algebra. Each is a multiset of rows with the columns that it names.

    Scan, Values, FunctionScan, VariableScan     sources
    Project, Filter, Distinct, TopRows           one input
    BoundJoin                                    two inputs; `dependent`: the right refers to columns of the left
    Aggregate                                    groups
    SetOperation                                 union, intersect, except
    BoundRecursion                               mutually recursive definitions, and a body that reads them

Every node defines its own new `Column` objects, except that rows pass through Filter, Distinct, TopRows and BoundJoin
with the columns they have, and a Project may list a column of its input as itself. No two sources share a column, so a
node can be moved without renaming. A node that several nodes use (a CTE) is built once.

The binder produces dependent joins only for LATERAL, and subqueries inside scalars. The rewrites turn subqueries into
dependent joins, then remove the dependence (kpg/sql/rewrites); lowering accepts neither.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from kpg.sql.relational.scalars import TRUE, AggregateCall, Column, ColumnValue, Scalar, SortKey

JoinKind: TypeAlias = Literal["inner", "left", "full", "semi", "anti", "mark", "single"]


@dataclass(frozen=True, eq=False, slots=True)
class BoundRelation:
    """A multiset of rows."""

    columns: tuple[Column, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Scan(BoundRelation):
    """A table or installed view. `fields` has the name in the source of each column; unread columns are left out."""

    source: str
    fields: tuple[str, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Values(BoundRelation):
    """Rows of scalars without columns. No columns and one row: the input of a SELECT without FROM."""

    rows: tuple[tuple[Scalar, ...], ...]


@dataclass(frozen=True, eq=False, slots=True)
class FunctionScan(BoundRelation):
    """Rows that a function returns, as generate_series and unnest do; arguments may refer to outer columns."""

    function: Any
    arguments: tuple[Scalar, ...]
    ordinality: Column | None = None


@dataclass(frozen=True, eq=False, slots=True)
class RecursiveVariable:
    """A relation that is defined recursively."""

    name: str
    columns: tuple[Column, ...]


@dataclass(frozen=True, eq=False, slots=True)
class VariableScan(BoundRelation):
    """The current rows of a recursive variable; `columns` are new, in the order of the variable's."""

    variable: RecursiveVariable


@dataclass(frozen=True, eq=False, slots=True)
class Project(BoundRelation):
    """A scalar for each column. A column of the input that is kept has itself as its value."""

    input: BoundRelation
    values: tuple[Scalar, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Filter(BoundRelation):
    """The rows on which a condition is true."""

    input: BoundRelation
    condition: Scalar


@dataclass(frozen=True, eq=False, slots=True)
class BoundJoin(BoundRelation):
    """Pairs of rows on which a condition is true, and, by kind, other rows.

    inner   pairs                          semi    left rows that are in some pair
    left    and left rows in no pair       anti    left rows that are in no pair
    full    and right rows in no pair      mark    left rows with `mark`: whether some pair is, as AnyRow says
    single  as left, and an error for a left row that is in several pairs
    """

    kind: JoinKind
    left: BoundRelation
    right: BoundRelation
    condition: Scalar = TRUE
    mark: Column | None = None
    dependent: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class Aggregate(BoundRelation):
    """One row for each group of rows with equal keys (nulls are equal): keys, then aggregates.

    Without keys there is one group, which exists even if there is no row. `sets` are grouping sets, as indices of keys;
    None means one set of all keys. `grouping` has for each GROUPING(…) the indices of its keys; its columns come last.
    """

    input: BoundRelation
    keys: tuple[Column, ...]
    aggregates: tuple[AggregateCall, ...]
    sets: tuple[tuple[int, ...], ...] | None = None
    grouping: tuple[tuple[int, ...], ...] = ()


@dataclass(frozen=True, eq=False, slots=True)
class Distinct(BoundRelation):
    """Each row once."""

    input: BoundRelation


@dataclass(frozen=True, eq=False, slots=True)
class TopRows(BoundRelation):
    """Of each group of rows with equal keys, those at positions [offset, offset + limit) of an order.

    Ties are broken by all columns in value order, nulls last; with `ties`, rows equal to the last one are included.
    """

    input: BoundRelation
    keys: tuple[Column, ...]
    order: tuple[SortKey, ...]
    limit: Scalar | None
    offset: Scalar | None = None
    ties: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class SetOperation(BoundRelation):
    """Union, intersection or difference of the rows of two relations, column by column; `all` keeps duplicates."""

    kind: Literal["union", "intersect", "except"]
    all: bool
    left: BoundRelation
    right: BoundRelation


@dataclass(frozen=True, eq=False, slots=True)
class Definition:
    """The definition of one recursive variable.

    union    a set: the fixed point of `base` and `step`
    sum      UNION ALL: each round's rows come from the round before; all rounds are added up
    replace  WITH MUTUALLY RECURSIVE: the variable becomes `step` in every round, until nothing changes
    """

    variable: RecursiveVariable
    kind: Literal["union", "sum", "replace"]
    base: BoundRelation | None
    step: BoundRelation


@dataclass(frozen=True, eq=False, slots=True)
class BoundRecursion(BoundRelation):
    """A body that reads recursively defined variables at their fixed point."""

    definitions: tuple[Definition, ...]
    body: BoundRelation
    limit: int | None = None  # the maximum number of rounds
    error_at_limit: bool = True  # False: the value after the last round is the answer


@dataclass(frozen=True, slots=True)
class Query:
    """A whole query: its relation, the names of its result columns, and the order of reads.

    The result is the first columns of the relation, one for each name. Further columns serve the order only.
    """

    relation: BoundRelation
    names: tuple[str, ...]
    order: tuple[SortKey, ...] = ()


def without_order(query: Query) -> Query:
    """Return a query without its order, and without the columns that serve the order only: what a view keeps."""
    relation = query.relation
    kept = relation.columns[: len(query.names)]
    if len(kept) < len(relation.columns):
        values = tuple(ColumnValue(column, type=column.type) for column in kept)
        relation = Project(kept, relation, values)
    return Query(relation, query.names)


def inputs(relation: BoundRelation) -> tuple[BoundRelation, ...]:
    """Return the direct inputs of a node; definitions of a recursion come before its body."""
    if isinstance(relation, (BoundJoin, SetOperation)):
        return relation.left, relation.right
    if isinstance(relation, BoundRecursion):
        inner = [part for entry in relation.definitions for part in (entry.base, entry.step) if part is not None]
        return (*inner, relation.body)
    inner_relation = getattr(relation, "input", None)
    return () if inner_relation is None else (inner_relation,)


RelationRewrite: TypeAlias = Callable[[BoundRelation], BoundRelation]
