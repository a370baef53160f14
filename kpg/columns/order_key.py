"""Order keys: an expression to order rows by, its direction, and the position of nulls.

    "age"    "-age"    col("age").asc()    col("age").desc(nulls_last=False)

Nulls are last in either direction unless a key says otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from kpg.columns.expression import Expression


@dataclass(frozen=True, slots=True, eq=False)
class OrderKey:
    """An expression that rows are ordered by."""

    expression: Expression
    descending: bool = False
    nulls_last: bool = True

    def __repr__(self) -> str:
        nulls = "" if self.nulls_last else "nulls_last=False"
        return f"{self.expression!r}.{'desc' if self.descending else 'asc'}({nulls})"


OrderBy: TypeAlias = "str | Expression | OrderKey"  # a string is the name of a column, with "-" before it if descending


def order_keys_of(by: OrderBy | Iterable[OrderBy]) -> tuple[OrderKey, ...]:
    """Return order keys in any of their forms as a tuple."""
    from kpg.columns.expression import ColumnReference, Expression

    keys: list[OrderKey] = []
    for key in (by,) if isinstance(by, (str, Expression, OrderKey)) else by:
        if isinstance(key, str):
            keys.append(OrderKey(ColumnReference(key.removeprefix("-")), key.startswith("-")))
        else:
            keys.append(key if isinstance(key, OrderKey) else OrderKey(key))
    return tuple(keys)
