"""Indexes that queries share: a query reads a relation by any columns, and the next query finds the same index.

    relation = db.installer.shared(source)       an input, output or arrangement, as a collection to build queries on
    db.installer.output(plan, ...)               installs the indexes that the plan reads, then the plan itself

`SharedIndexes` finds the index by some columns, or installs it as a dataflow of its own. An index is dropped with its
last reader: after a plan was installed, `SharedIndexes` releases its own hold on every index.
A relation of one column needs a single index: it counts, proposes and validates.

On several workers, a plan names the source only (kpg/cluster/cluster_installer.py). Each worker makes a
`SharedIndexes` of it while it installs the plan, so that all install the same indexes in the same order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from kpg.algebra.order import Time
from kpg.api.contracts import SourceCollection
from kpg.api.embedded_arrangement import EmbeddedArrangement, wanted_keys
from kpg.api.trace_reads import check_readable, to_table
from kpg.columns.building_turns import building_in_turns
from kpg.columns.schema import Schema
from kpg.columns.updates import Ints
from kpg.plan import nodes
from kpg.plan.joins import keys_of, pairs_of
from kpg.plan.node_traversal import count_uses

if TYPE_CHECKING:
    from kpg.api.embedded_database import EmbeddedDatabase
    from kpg.api.embedded_output import EmbeddedOutput
    from kpg.api.installed_arrangement import InstalledArrangement


class ArrangementSource(Protocol):
    """A relation, answer or index: holds rows by some columns, and can arrange them by others."""

    closed: bool  # whether it never changes again

    @property
    def latest(self) -> Time | None:
        """The join of all times at which rows were inserted; None if unknown."""

    @property
    def size(self) -> int:
        """The approximate row count."""

    def base(self) -> InstalledArrangement:
        """Return the arrangement that holds the rows."""

    def arranged_by(self, keys: tuple[str, ...]) -> InstalledArrangement | None:
        """Return an installed arrangement by these columns with each row on the worker of its key, if there is one."""

    def sorted_by(self, keys: tuple[str, ...]) -> InstalledArrangement | None:
        """Return an installed arrangement by these columns, wherever its rows are, if there is one."""

    def arrange(self, *keys: str) -> EmbeddedArrangement:
        """Install an arrangement by these columns."""


class OutputIndexes:
    """An answer as a source of arrangements: queries built on it read it by any columns."""

    closed = False  # an answer may always change
    latest = None

    def __init__(self, output: EmbeddedOutput) -> None:
        self._output = output
        self._indexes: list[EmbeddedArrangement] = []

    @property
    def size(self) -> int:
        """The approximate row count."""
        return self.base().handle.spine.estimated_rows

    def base(self) -> InstalledArrangement:
        """Return the arrangement that holds the rows."""
        return self._output.readable()

    def arranged_by(self, keys: tuple[str, ...]) -> InstalledArrangement | None:
        """Return an installed arrangement of the rows by some columns, if there is one."""
        self._indexes = [index for index in self._indexes if not index.installed.released]
        indexes = (index.installed for index in self._indexes if index.keys == keys)
        return self.base().arranged_by(keys) or next(indexes, None)

    def sorted_by(self, keys: tuple[str, ...]) -> InstalledArrangement | None:
        """Return an installed arrangement of the rows by some columns, wherever they are, if there is one."""
        return self.base().sorted_by(keys) or self.arranged_by(keys)

    def arrange(self, *keys: str) -> EmbeddedArrangement:
        """Install a new arrangement of the rows by some columns."""
        node = nodes.InstalledNode(self._output.schema, frozenset(), self.base())
        name = f"{self._output.name} by {', '.join(keys)}"
        index = self._output.db.installer.arrangement(node, name, keys)
        self._indexes.append(index)
        return index


class IndexSource:
    """An arrangement as a source of others, by any columns."""

    closed = False
    latest = None

    def __init__(self, arrangement: EmbeddedArrangement) -> None:
        self._arrangement = arrangement

    @property
    def size(self) -> int:
        """The approximate row count."""
        return self._arrangement.installed.handle.spine.estimated_rows

    def base(self) -> InstalledArrangement:
        """Return the arrangement that holds the rows."""
        return self._arrangement.installed

    def arranged_by(self, keys: tuple[str, ...]) -> InstalledArrangement | None:
        """Return the arrangement if it is by these columns, and each row on the worker of its key."""
        return self._arrangement.installed.arranged_by(keys)

    def sorted_by(self, keys: tuple[str, ...]) -> InstalledArrangement | None:
        """Return the arrangement if it is by these columns."""
        return self._arrangement.installed.sorted_by(keys)

    def arrange(self, *keys: str) -> EmbeddedArrangement:
        """Install an arrangement by these columns."""
        arrangement = self._arrangement.arrange(*keys)
        assert isinstance(arrangement, EmbeddedArrangement)
        return arrangement


class SharedIndexes:
    """The indexes of a source while a query is built on it; each one that the query asks for is shared."""

    def __init__(self, source: ArrangementSource) -> None:
        self._source = source
        self._installed: list[EmbeddedArrangement] = []

    @property
    def size(self) -> int:
        """The approximate row count."""
        return self._source.size

    def base(self) -> InstalledArrangement:
        """Return the arrangement that holds the rows."""
        return self._source.base()

    def arranged_by(self, keys: tuple[str, ...]) -> InstalledArrangement:
        """Return the arrangement by these columns, installed if necessary."""
        existing = self._source.arranged_by(keys)
        if existing is not None:
            return existing
        arrangement = self._source.arrange(*keys)
        self._installed.append(arrangement)
        return arrangement.installed

    def sorted_by(self, keys: tuple[str, ...]) -> InstalledArrangement | None:
        """Return an installed arrangement by these columns, wherever its rows are, if there is one."""
        return self._source.sorted_by(keys)

    def release(self) -> None:
        """Release the indexes installed here; an installed query holds those that it reads."""
        for arrangement in self._installed:
            arrangement.release()
        self._installed.clear()


class SharedRelation(SourceCollection):
    """A source with shared indexes, as a collection to build queries on."""

    def __init__(self, db: EmbeddedDatabase, source: ArrangementSource, schema: Schema) -> None:
        super().__init__(db, nodes.RelationNode(schema, frozenset(), SharedIndexes(source)))
        self.closed = source.closed
        self._source = source

    @property
    def latest(self) -> Time | None:
        return self._source.latest

    @property
    def size(self) -> int:
        return self._source.size


class shared_indexes:  # noqa: N801 - used as a statement, like contextlib.suppress
    """Install the indexes that the joins of a plan read, before the plan's own dataflow, and release them after it.

    Does nothing for a plan without shared sources.
    """

    __slots__ = ("_uses", "_shared")

    def __init__(self, root: nodes.PlanNode) -> None:
        self._uses = uses = count_uses((root,))
        self._shared = [owner for node in uses if isinstance(owner := getattr(node, "owner", None), SharedIndexes)]

    def __enter__(self) -> None:
        if not self._shared:
            return
        try:
            with building_in_turns(False):  # or two queries would install the same index
                install_indexes(self._uses)
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *error: object) -> None:
        for indexes in self._shared:
            indexes.release()


def install_indexes(plan: Iterable[nodes.PlanNode]) -> None:
    """Install the indexes of relations that the joins among some nodes read."""
    for node in plan:
        if isinstance(node, nodes.JoinNode):
            for pair in pairs_of(node, alone=False):
                for view, keys in zip(pair, keys_of(node), strict=True):
                    if isinstance(view.node, nodes.RelationNode):
                        view.node.owner.arranged_by(keys)


def indexed_rows(
    db: EmbeddedDatabase, source: ArrangementSource, schema: Schema, keys: tuple[str, ...], data: Ints, as_of: Any
) -> Callable[[], pa.Table] | None:
    """Return a function that reads the rows with some encoded keys from an index by these columns, as of a time.

    Without such an index, return None. The function holds the index until it is called, once.
    """
    installed = source.sorted_by(keys)
    if installed is None:
        return None
    return partial(read_shared, db, installed.share(), schema, wanted_keys(data), as_of)


def read_shared(
    db: EmbeddedDatabase, installed: InstalledArrangement, schema: Schema, keys: Ints, as_of: Any
) -> pa.Table:
    """Read rows with some keys from a shared index, and release it; others run while there are many."""
    try:
        time = check_readable(db, installed, as_of)
        with db.in_turns():
            return to_table(db, installed, schema, time, keys)
    finally:
        installed.release()
