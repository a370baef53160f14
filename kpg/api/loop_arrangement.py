"""An arrangement inside a loop: part of the query's plan, shared by the operators of the loop that use its key.

It exists only within the dataflow of its query, so that it cannot be read from outside: `lookup` and `scan` raise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kpg.api.contracts import Arrangement
from kpg.errors import BadPlan
from kpg.plan.nodes import ArrangeNode

if TYPE_CHECKING:
    from kpg.api.contracts import Database


class LoopArrangement(Arrangement):
    """The plan of an index inside a loop."""

    def __init__(self, db: Database, node: ArrangeNode) -> None:
        super().__init__(db, node)
        self._keys = node.keys

    @property
    def keys(self) -> tuple[str, ...]:
        return self._keys

    def lookup_many(self, keys: Any, as_of: Any = None) -> pa.Table:
        raise self._not_readable()

    def scan(self, as_of: Any = None) -> pa.Table:
        raise self._not_readable()

    @property
    def rows(self) -> int:
        raise self._not_readable()

    @property
    def nbytes(self) -> int:
        raise self._not_readable()

    def _not_readable(self) -> BadPlan:
        loops = ", ".join(sorted(loop.name for loop in self.node.loops))
        return BadPlan(f"cannot read an arrangement inside {loops}", hint="Leave the loop first, with leave().")

    def release(self) -> None:
        """Do nothing: the index is freed with the answer of its query."""
