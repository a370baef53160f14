"""Indexes that queries share: made when the first query asks for one, gone with the last that reads it.

A base relation, and a rule that is kept as a trunk, can be read by any of their columns. Who renders a query asks for
an arrangement by some columns; here it is found, or made as a dataflow of its own, so that the next query finds it.
A relation of one column has one index, which counts, proposes and validates alike.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from kpg.api.collection import Collection
from kpg.api.input import Input
from kpg.columns.schema import Schema
from kpg.plan import nodes
from kpg.plan.joins import keys_of, pairs_of

if TYPE_CHECKING:
    from kpg.api.arrangement import Arrangement
    from kpg.api.database import Database
    from kpg.api.installed_arrangement import InstalledArrangement


class Indexed(Protocol):
    """What keeps rows by some columns, and can be asked for them by others."""

    closed: bool  # whether it never changes again

    @property
    def size(self) -> int:
        """About how many rows it has now."""

    def base(self) -> InstalledArrangement:
        """The arrangement that keeps the rows."""

    def arranged_by(self, keys: tuple[str, ...]) -> InstalledArrangement | None:
        """A living arrangement by these columns, if there is one."""

    def arrange(self, *keys: str) -> Arrangement:
        """An arrangement by these columns."""


class Shared:
    """A relation as one query reads it while it is built: whatever index it asks for is shared."""

    def __init__(self, source: Indexed) -> None:
        self._source = source
        self.closed = source.closed
        self.latest = source.latest if isinstance(source, Input) else None  # an answer is never closed
        self.size = source.size
        self.made: list[Arrangement] = []

    def base(self) -> InstalledArrangement:
        """The arrangement that keeps the rows."""
        return self._source.base()

    def arranged_by(self, keys: tuple[str, ...]) -> InstalledArrangement:
        """The arrangement by these columns, made if there is none."""
        found = self._source.arranged_by(keys)
        if found is None:
            made = self._source.arrange(*keys)
            self.made.append(made)
            found = made.installed
        return found

    def release(self) -> None:
        """The query is built and holds what it reads: let go of the rest."""
        for made in self.made:
            made.release()
        self.made.clear()


class SharedRelation(Collection):
    """A relation to build queries on."""

    def __init__(self, db: Database, shared: Shared, schema: Schema) -> None:
        super().__init__(db, nodes.RelationNode(schema, frozenset(), shared))
        self.closed = shared.closed  # whether it never changes again
        self.latest = shared.latest
        self.size = shared.size


class Fed(Collection):
    """A collection in the place of a relation: what arguments come to."""

    closed = False  # it may always change
    size = 0  # arguments are few


def prepare(root: nodes.PlanNode) -> None:
    """Make the indexes that the joins of a query will ask for, before its own dataflow."""
    for node in nodes.count_uses((root,)):
        if isinstance(node, nodes.JoinNode):
            for pair in pairs_of(node):
                for view, keys in zip(pair, keys_of(node), strict=True):
                    if isinstance(view.node, nodes.RelationNode):
                        view.node.owner.arranged_by(keys)
