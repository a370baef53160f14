"""Choose the order of the joins of a graph: the tree of binary joins that keeps and produces the fewest rows.

    cost of a join  =  rows of the sides that have to be arranged for it  +  rows that it produces

Every split of every connected set of relations is considered (dynamic programming), up to MAX_EXACT relations; beyond
that the cheapest pair is joined first. Relations without a connection are joined last, as cross products.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from kpg.columns.pause_points import pause
from kpg.sql.lower.join_graph import JoinGraph
from kpg.sql.lower.row_estimates import RowEstimates, share_of_term
from kpg.sql.relational.scalars import Column

MAX_EXACT: Final = 9  # relations; the number of splits grows with 3 to the power of it

MANY_TO_MANY_FACTOR: Final = 100.0  # rows of a join without a key on either side, if the sizes of tables are guesses

KeyMembers = tuple[tuple[Column, ...], tuple[Column, ...]]  # of one class, the members of both sides of a join
IsArranged = Callable[[int, frozenset[Column]], bool]  # whether a relation is arranged by some columns already


@dataclass(frozen=True, slots=True)
class JoinTree:
    """A relation of a graph, or a join of two trees; `relations` are its relations, as bits.

    `unique` are those of its relations that have each of their rows at most once in it: a key of theirs is one of it.
    """

    relations: int
    unique: int
    rows: float
    cost: float
    left: JoinTree | None = None
    right: JoinTree | None = None


@dataclass
class JoinOrder:
    """Finds the cheapest tree for the relations of a graph."""

    graph: JoinGraph
    estimates: RowEstimates
    is_arranged: IsArranged
    best: dict[int, JoinTree] = field(default_factory=dict)
    _shares: list[float] = field(init=False)  # of each term of the graph
    _sizes: list[float | None] = field(init=False)  # of each class, the least table that has a key in it
    _is_known: bool = field(init=False)  # whether all tables have rows, so that estimates are no guesses
    _found: dict[tuple[str, int, frozenset[Column]], Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._shares = [share_of_term(term) for term in self.graph.terms]
        self._is_known = all(map(self.estimates.is_known, self.graph.relations))
        self._sizes = [self._size_of_class(group) for group in self.graph.classes]

    def tree(self) -> JoinTree:
        """Return the cheapest tree of all relations."""
        leaves = [
            JoinTree(1 << number, 1 << number, self.estimates.rows(relation), 0.0)
            for number, relation in enumerate(self.graph.relations)
        ]
        parts = self._exact(leaves) if len(leaves) <= MAX_EXACT else self._greedy(leaves)
        parts.sort(key=lambda part: part.rows)
        tree = parts[0]
        for part in parts[1:]:
            tree = self.join(tree, part)
        return tree

    def _exact(self, leaves: list[JoinTree]) -> list[JoinTree]:
        """Return the cheapest tree of each connected part of the graph."""
        self.best = {leaf.relations: leaf for leaf in leaves}
        for wanted in range(1, 1 << len(leaves)):
            splits = [(part, wanted ^ part) for part in _parts(wanted)]
            for first, second in splits:
                left, right = self.best.get(first), self.best.get(second)
                if left is None or right is None or not self.graph.is_connected(first, second):
                    continue
                if wanted in self.best and left.cost + right.cost >= self.best[wanted].cost:
                    continue  # the join only adds to it
                joined = self.join(left, right)
                if wanted not in self.best or joined.cost < self.best[wanted].cost:
                    self.best[wanted] = joined
        trees: list[JoinTree] = []
        rest = (1 << len(leaves)) - 1
        for relations in sorted(self.best, key=int.bit_count, reverse=True):
            if not relations & ~rest:
                trees.append(self.best[relations])
                rest &= ~relations
        return trees

    def _greedy(self, leaves: list[JoinTree]) -> list[JoinTree]:
        """Join the pair that costs least, until no two parts are connected."""
        parts = list(leaves)
        while True:
            pairs = [
                self.join(a, b)
                for number, a in enumerate(parts)
                for b in parts[:number]
                if self.graph.is_connected(a.relations, b.relations)
            ]
            if not pairs:
                return parts
            joined = min(pairs, key=lambda tree: tree.cost)
            parts = [part for part in parts if not part.relations & joined.relations] + [joined]

    def join(self, left: JoinTree, right: JoinTree) -> JoinTree:
        """Return the join of two trees with its estimated rows and cost."""
        pause()
        both = left.relations | right.relations
        keys = self._keys(left, right)
        identified = tuple(self._is_identified(side, at, keys) for at, side in enumerate((left, right)))
        unique = (left.unique if identified[1] else 0) | (right.unique if identified[0] else 0)
        rows = left.rows * right.rows / self._different_keys(left, right, keys, any(identified))
        for owners, share in zip(self.graph.term_owners, self._shares, strict=True):
            if not owners & ~both and owners & ~left.relations and owners & ~right.relations:
                rows *= share
        arranged = sum(self._arranged(side, [pair[at] for pair in keys]) for at, side in enumerate((left, right)))
        cost = left.cost + right.cost + arranged + max(rows, 1.0)
        return JoinTree(both, unique, max(rows, 1.0), cost, left, right)

    def _is_identified(self, side: JoinTree, at: int, keys: Sequence[KeyMembers]) -> bool:
        """Return whether at most one row of a side has each key of a join."""
        return any(
            side.unique >> relation & 1 and self._is_key(relation, columns)
            for relation, columns in self._by_owner([pair[at] for pair in keys])
        )

    def _is_key(self, relation: int, columns: frozenset[Column]) -> bool:
        """Return whether no two rows of a relation are likely to have equal values in some columns; found once."""
        key = ("key", relation, columns)
        if key not in self._found:
            self._found[key] = self.estimates.is_key(columns, self.graph.relations[relation])
        return bool(self._found[key])

    def _keys(self, left: JoinTree, right: JoinTree) -> list[KeyMembers]:
        pairs = zip(self.graph.members(left.relations), self.graph.members(right.relations), strict=True)
        return [(a, b) for a, b in pairs if a and b]

    def _arranged(self, side: JoinTree, keys: list[tuple[Column, ...]]) -> float:
        """Return the number of rows of a side that have to be arranged for a join by some of its columns."""
        if side.left is None:
            number = side.relations.bit_length() - 1
            columns = frozenset(members[0] for members in keys)
            key = ("arranged", number, columns)
            if columns and key not in self._found:
                self._found[key] = self.is_arranged(number, columns)
            if columns and self._found[key]:
                return 0.0
        return side.rows

    def _different_keys(self, left: JoinTree, right: JoinTree, keys: Sequence[KeyMembers], identified: bool) -> float:
        """Return the guessed number of different keys of a join, by which the product of the rows is divided."""
        number = 1.0
        for mine, theirs in keys:
            number *= self._values(mine, theirs)
        for side, position in ((left, 0), (right, 1)) if len(keys) > 1 else ():
            for relation, columns in self._by_owner([pair[position] for pair in keys]):
                if len(columns) > 1 and side.relations >> relation & 1 and self._is_key(relation, columns):
                    number = min(number, self._table_rows(relation, columns))
        if not identified and not self._is_known:
            number /= MANY_TO_MANY_FACTOR
        return max(number, 1.0)

    def _values(self, mine: tuple[Column, ...], theirs: tuple[Column, ...]) -> float:
        """Return the guessed number of values of a class of equal columns: of a key, the rows of its table."""
        size = self._sizes[self.graph.class_of(mine[0])]
        if size is not None:
            return size
        tables = [self._table_rows(self.graph.owner(column), frozenset({column})) for column in (*mine, *theirs)]
        return max(1.0, min(tables) / 2)

    def _size_of_class(self, group: tuple[Column, ...]) -> float | None:
        """Return the rows of the least table of which a member of a class is the key; None if there is none."""
        owned = [(self.graph.owner(column), frozenset({column})) for column in group]
        sizes = [self._table_rows(owner, column) for owner, column in owned if self._is_key(owner, column)]
        return min(sizes, default=None)

    def _table_rows(self, relation: int, columns: frozenset[Column]) -> float:
        key = ("rows", relation, columns)
        if key not in self._found:
            node = self.graph.relations[relation]
            self._found[key] = min(self.estimates.base_rows(column, node) for column in columns)
        return float(self._found[key])

    def _by_owner(self, groups: list[tuple[Column, ...]]) -> list[tuple[int, frozenset[Column]]]:
        owned: dict[int, set[Column]] = {}
        for group in groups:
            for column in group:
                owned.setdefault(self.graph.owner(column), set()).add(column)
        return [(relation, frozenset(columns)) for relation, columns in owned.items()]


def _parts(relations: int) -> list[int]:
    """Return the parts of a set that contain its first relation, but not all of it."""
    first = relations & -relations
    rest = relations ^ first
    parts: list[int] = []
    part = rest
    while True:
        part = (part - 1) & rest if part else -1
        if part < 0:
            return parts
        parts.append(part | first)
