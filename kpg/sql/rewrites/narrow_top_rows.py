"""Order rows by no more columns than decide: the first rows of an order are found without the columns that follow.

    top(rows; order)   =   rows ⋈(key) top(rows with the columns of the order and the key; order)

Ties are broken by all columns in turn. Once the columns so far identify a row, no later column is compared, so it need
not be arranged, nor its text ranked, in every step of a hierarchical order. The rows found get their other columns by
a join with the key. This is worth it if the join saves several columns.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from kpg.sql.relational.relations import BoundRelation, Query, TopRows
from kpg.sql.relational.scalars import Column
from kpg.sql.rewrites.functional_dependence import RowIdentity
from kpg.sql.rewrites.join_conditions import columns_of
from kpg.sql.rewrites.node_builders import copy_of, join, keep, project, same, value_of
from kpg.sql.rewrites.relation_traversal import map_relations
from kpg.sql.rewrites.source_facts import QueryFacts

MIN_SAVED_COLUMNS: Final = 2  # fewer columns are carried more cheaply than they are joined


def narrow_top_rows(query: Query, facts: QueryFacts) -> Query:
    """Return a query whose limits compare no more columns than they need."""

    def narrowed(node: BoundRelation) -> BoundRelation:
        if not isinstance(node, TopRows) or node.keys or node.ties or node.limit is None:
            return node
        rows = facts.dependence.of(node.input)
        needed = deciding_columns(node, rows)
        if needed is None or len(node.columns) - len(needed) < MIN_SAVED_COLUMNS:
            return node
        return with_other_columns(node, needed, least_key(needed, rows))

    return replace(query, relation=map_relations(query.relation, narrowed))


def deciding_columns(node: TopRows, rows: RowIdentity) -> list[Column] | None:
    """Return the columns that decide the order of rows: those that it reads, and ties until a row is identified."""
    chosen = {column for key in node.order for column in columns_of(key.value)}
    for column in node.columns:
        if rows.is_key(chosen):
            return [column for column in node.columns if column in chosen]
        chosen.add(column)
    return None


def least_key(columns: list[Column], rows: RowIdentity) -> list[Column]:
    """Return as few of some columns as still identify a row."""
    kept = list(columns)
    for column in columns:
        rest = [other for other in kept if other is not column]
        if rows.is_key(rest):
            kept = rest
    return kept


def with_other_columns(node: TopRows, needed: list[Column], key: list[Column]) -> BoundRelation:
    """Return the first rows, found by the needed columns and joined with the other columns by the key."""
    copies = {column: copy_of(column) for column in key}
    first = replace(node, columns=tuple(needed), input=keep(node.input, needed))
    found = project(first, {copy: value_of(column) for column, copy in copies.items()})
    rows = keep(node.input, node.columns)
    terms = [same(value_of(column), value_of(copy)) for column, copy in copies.items()]
    return keep(join("inner", rows, found, terms), node.columns)
