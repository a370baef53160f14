"""GROUP BY: its keys, and the grouping sets that ROLLUP, CUBE and GROUPING SETS describe.

An item is the position of a result column, the name of an input column, the label of a result column, or an
expression. Several items that are grouping sets give their product: each set of one with each set of the other.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain, combinations, product
from typing import Final

from sqlglot import exp

from kpg.errors import ProgramError
from kpg.sql.bind.bind_context import BindContext
from kpg.sql.bind.grouped_rows import GroupKeys
from kpg.sql.parse.sql_failures import sql_failure
from kpg.sql.relational.scalars import Scalar

MAX_GROUPING_SETS: Final = 4096  # as in PostgreSQL
MAX_CUBE_KEYS: Final = 12  # as in PostgreSQL: 2 ** 12 sets

KeySet = tuple[int, ...]


class GroupClause:
    """Reads the items of GROUP BY. `bind_key` binds one key by its rules for positions and names."""

    def __init__(self, context: BindContext, bind_key: Callable[[exp.Expr], Scalar]) -> None:
        self.context = context
        self.bind_key = bind_key
        self.keys: list[Scalar] = []

    def read(self, node: exp.Expr) -> GroupKeys:
        """Return the keys and the grouping sets."""
        (items,) = self.context.take(node, "expressions")
        plain = not any(isinstance(item, (exp.Rollup, exp.Cube, exp.GroupingSets)) or is_empty(item) for item in items)
        lists = [self.sets_of(item) for item in items]
        count = 1
        for sets in lists:
            count *= len(sets)
        if count > MAX_GROUPING_SETS:
            what = f"too many grouping sets present (maximum {MAX_GROUPING_SETS})"
            raise sql_failure(ProgramError, what, self.context.span(node), "54001")
        if plain:
            return GroupKeys(tuple(self.keys), None)
        products = tuple(tuple(sorted(set(chain.from_iterable(chosen)))) for chosen in product(*lists))
        return GroupKeys(tuple(self.keys), products)

    def sets_of(self, item: exp.Expr) -> list[KeySet]:
        """Return the grouping sets of one item."""
        if isinstance(item, exp.Rollup):
            parts = self.parts(item)
            return [tuple(chain.from_iterable(parts[:length])) for length in range(len(parts), -1, -1)]
        if isinstance(item, exp.Cube):
            parts = self.parts(item)
            if len(parts) > MAX_CUBE_KEYS:
                what = f"CUBE is limited to {MAX_CUBE_KEYS} elements"
                raise sql_failure(ProgramError, what, self.context.span(item), "54011")
            lengths = range(len(parts), -1, -1)
            return [tuple(chain.from_iterable(chosen)) for n in lengths for chosen in combinations(parts, n)]
        if isinstance(item, exp.GroupingSets):
            (items,) = self.context.take(item, "expressions")
            return [keys for inner in items for keys in self.sets_of(inner)]
        return [self.key_set(item)]

    def parts(self, item: exp.Expr) -> list[KeySet]:
        """Return the items of ROLLUP or CUBE, each of which may be several keys."""
        (items,) = self.context.take(item, "expressions")
        return [self.key_set(part) for part in items]

    def key_set(self, item: exp.Expr) -> KeySet:
        """Return the indices of the keys of an expression or a row."""
        if isinstance(item, exp.Tuple):
            (items,) = self.context.take(item, "expressions")
            return tuple(chain.from_iterable(self.key_set(part) for part in items))
        if isinstance(item, exp.Paren):
            return self.key_set(self.context.take(item, "this")[0])
        key = self.bind_key(item)
        if key not in self.keys:
            self.keys.append(key)
        return (self.keys.index(key),)


def is_empty(item: exp.Expr) -> bool:
    """Return whether an item is ()."""
    return isinstance(item, exp.Tuple) and not item.expressions
