"""A dataflow for one interest alone: nothing but base relations, or a trunk, is shared with others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from kpg.query.ir.program import Relation
from kpg.service.interest import Interest

if TYPE_CHECKING:
    from kpg.api.output import Output


class Private:
    """An answer that nobody else reads, and that keeps nothing."""

    def __init__(self, relation: Relation, output: Output, held: Sequence[Callable[[], None]], reason: str) -> None:
        self.relation = relation
        self.output = output
        self.reason = reason
        self._held = list(held)

    def join(self, interest: Interest) -> None:
        """Give it the rows of now, and from now on each change."""
        interest.failure = self.output.error
        self.output.db.settle()
        self.output.on_change(lambda changes: interest.push_all(changes.updates))
        self.output.notify()

    def leave(self, interest: Interest) -> None:
        """Drop the dataflow."""
        self.output.release()
        for release in self._held:
            release()
        self._held.clear()
