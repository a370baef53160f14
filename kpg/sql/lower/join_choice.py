"""The choice between a tree of binary joins and delta queries: by what each keeps beyond the arrangements that exist.

    binary   each side of a join that no arrangement serves: filtered rows of a table, or the rows of an inner join
    delta    for each key that a relation is looked up by, its filtered rows, unless an arrangement serves

Delta queries are chosen if they keep at most half as many bytes. Rows are estimates. While some table is empty they are
guesses, and delta queries are chosen only if they keep nothing at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from kpg.sql.lower.join_graph import JoinGraph
from kpg.sql.lower.join_order import IsArranged, JoinTree
from kpg.sql.relational.relations import (
    Aggregate,
    BoundJoin,
    BoundRelation,
    Distinct,
    Filter,
    Project,
    Scan,
    TopRows,
    Values,
)
from kpg.sql.relational.scalars import Column
from kpg.sql.rewrites.relation_traversal import nodes_of

BYTES_PER_VALUE: Final = 8  # of one lane
DELTA_ADVANTAGE: Final = 2.0  # bytes of binary joins per byte of delta queries, whose changes pass through more lookups
JOIN_SIGN: Final = "⋈"


@dataclass(frozen=True, slots=True)
class KeptRows:
    """An estimate of what a plan keeps."""

    rows: float = 0.0
    nbytes: float = 0.0

    def with_rows(self, rows: float, columns: int) -> KeptRows:
        """Return the sum with rows of some columns."""
        return KeptRows(self.rows + rows, self.nbytes + rows * columns * BYTES_PER_VALUE)


@dataclass(frozen=True, slots=True)
class JoinChoice:
    """What was chosen for a graph of joins: the orders of its joins, and what each kind of plan would keep."""

    kind: Literal["binary", "delta"]
    orders: tuple[str, ...]
    kept: KeptRows
    other: KeptRows | None = None  # of the other kind; None if it is not possible


def columns_kept(graph: JoinGraph, relations: int, read: Iterable[Column]) -> set[Column]:
    """Return the columns of a set of joined relations that the joins above them, and the query, read.

    `read` are the columns that the query and the terms that are not applied yet read. Of each class that continues
    outside, the first member is enough.
    """
    kept = {column for column in read if graph.owners((column,)) & relations}
    for group, members in zip(graph.classes, graph.members(relations), strict=True):
        if members and len(members) < len(group):
            kept.add(members[0])
    return kept


def kept_by_tree(
    graph: JoinGraph, tree: JoinTree, is_arranged: IsArranged, columns_of: Callable[[int], int]
) -> KeptRows:
    """Return what a tree of binary joins keeps. `columns_of` has the number of columns of a set of relations."""
    kept = KeptRows()
    stack = [tree]
    while stack:
        node = stack.pop()
        if node.left is None or node.right is None:
            continue
        stack += [node.left, node.right]
        for side, other in ((node.left, node.right), (node.right, node.left)):
            if not is_served(graph, side, other, is_arranged):
                kept = kept.with_rows(side.rows, columns_of(side.relations))
    return kept


def is_served(graph: JoinGraph, side: JoinTree, other: JoinTree, is_arranged: IsArranged) -> bool:
    """Return whether a side of a join is a table that is arranged by the columns of the join."""
    if side.left is not None:
        return False
    pairs = zip(graph.members(side.relations), graph.members(other.relations), strict=True)
    columns = frozenset(mine[0] for mine, theirs in pairs if mine and theirs)
    return bool(columns) and is_arranged(side.relations.bit_length() - 1, columns)


# Names for EXPLAIN


def labels_of(relations: Sequence[BoundRelation]) -> list[str]:
    """Return a short name for each relation of a graph; equal names are numbered."""
    labels: list[str] = []
    for relation in relations:
        name = label_of(relation)
        number = 1 + sum(label == name or label.startswith(f"{name} #") for label in labels)
        labels.append(name if number == 1 else f"{name} #{number}")
    return labels


def label_of(relation: BoundRelation) -> str:
    """Return a table's name, or the kind of another relation and the tables that it reads."""
    node = relation
    while isinstance(node, (Filter, Project)):
        node = node.input
    if isinstance(node, Scan):
        return node.source
    tables = ", ".join(dict.fromkeys(scan.source for scan in nodes_of(node) if isinstance(scan, Scan)))
    match node:
        case Aggregate():
            return f"groups of {tables}"
        case Distinct():
            return f"distinct rows of {tables}"
        case TopRows():
            return f"first rows of {tables}"
        case BoundJoin():
            return f"{node.kind} join of {tables}"
        case Values():
            return "values"
    return f"rows of {tables}" if tables else "rows"


def tree_text(tree: JoinTree, labels: Sequence[str]) -> str:
    """Return the order of a tree of joins, with parentheses around inner joins."""
    if tree.left is None or tree.right is None:
        return labels[tree.relations.bit_length() - 1]
    sides = [tree_text(side, labels) for side in (tree.left, tree.right)]
    inner = [side.left is not None for side in (tree.left, tree.right)]
    return f" {JOIN_SIGN} ".join(f"({text})" if nested else text for text, nested in zip(sides, inner, strict=True))
