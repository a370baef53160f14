"""Build one dataflow from a program, on indexes that queries share.

    with DataflowBuilder(db, find, max_rounds) as dataflow:
        answer = dataflow.collections(program)["tc"]
        output = dataflow.install(answer, "answer tc")

`find` returns the source of a relation outside the program: a base relation, or an answer that is already maintained.
Either can be read by any of its columns. The planner asks for an arrangement by some columns; `SharedIndexes` finds it,
or installs it as a dataflow of its own, so that the next query finds it too. An index is dropped with its last reader.
A relation of one column needs a single index: it counts, proposes and validates.
On exit, the builder releases every index that the installed dataflow does not read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Protocol

from kpg.algebra.order import Time
from kpg.api.collection import Collection
from kpg.api.contracts import SourceCollection
from kpg.api.embedded_input import EmbeddedInput
from kpg.columns.schema import Schema
from kpg.plan import nodes
from kpg.plan.joins import keys_of, pairs_of
from kpg.plan.node_traversal import count_uses
from kpg.query.ir.program import Program
from kpg.query.lower.lower_program import LoweredProgram, base_relations, schema_of

if TYPE_CHECKING:
    from kpg.api.embedded_arrangement import EmbeddedArrangement
    from kpg.api.embedded_database import EmbeddedDatabase
    from kpg.api.embedded_output import EmbeddedOutput
    from kpg.api.installed_arrangement import InstalledArrangement


class DataflowBuilder:
    """Builds one dataflow."""

    def __init__(
        self,
        db: EmbeddedDatabase,
        find: Callable[[str], ArrangementSource],
        max_rounds: int | None,
        joins: str = "auto",
    ) -> None:
        self.db = db
        self.held: list[Callable[[], None]] = []  # releases to call when the dataflow is dropped
        self._find = find
        self._max_rounds = max_rounds
        self._joins = joins
        self._shared: dict[str, SharedIndexes] = {}
        self._installed = False

    def collections(self, program: Program, arguments: Mapping[str, Collection] | None = None) -> dict[str, Collection]:
        """Return the collections of a compiled program; `arguments` replaces some of its inputs."""
        outside = {directive.relation for directive in program.directives if directive.kind == "input"}
        relations = program.by_name()
        inputs: dict[str, SourceCollection] = {
            name: ArgumentCollection(collection.db, collection.node) for name, collection in (arguments or {}).items()
        }
        for name in base_relations(program):
            if name in inputs:
                continue
            schema = schema_of(relations[name])
            if name in outside:
                shared = self._shared.setdefault(name, SharedIndexes(self._find(name)))
                inputs[name] = SharedRelation(self.db, shared, schema)
            else:  # no rule derives it, so it stays empty
                label = f"@nothing {len(self.db.inputs)}"
                empty = self.db.input(label, schema, keep_on_disk=False)
                self.held.append(empty.drop)
                inputs[name] = empty
        lowered = LoweredProgram(
            self.db,
            program,
            distinct_inputs=False,
            max_rounds=self._max_rounds,
            inputs=inputs,
            joins=self._joins,
        )
        return lowered.collections

    def install(self, answer: Collection, label: str, keep: bool = True) -> EmbeddedOutput:
        """Install the dataflow of an answer."""
        install_indexes(answer.node)
        output = self.db.installer.output(answer.node, label, keep)
        self._installed = True
        return output

    def __enter__(self) -> DataflowBuilder:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for shared in self._shared.values():
            shared.release()
        if not self._installed:
            for release in self.held:
                release()


def install_indexes(root: nodes.PlanNode) -> None:
    """Install the indexes that the joins of a query read, before the query's own dataflow."""
    for node in count_uses((root,)):
        if isinstance(node, nodes.JoinNode):
            for pair in pairs_of(node, alone=False):
                for view, keys in zip(pair, keys_of(node), strict=True):
                    if isinstance(view.node, nodes.RelationNode):
                        view.node.owner.arranged_by(keys)


# Indexes


class ArrangementSource(Protocol):
    """A base relation or answer: holds rows by some columns, and can arrange them by others."""

    closed: bool  # whether it never changes again

    @property
    def size(self) -> int:
        """The approximate row count."""

    def base(self) -> InstalledArrangement:
        """Return the arrangement that holds the rows."""

    def arranged_by(self, keys: tuple[str, ...]) -> InstalledArrangement | None:
        """Return an installed arrangement by these columns, if there is one."""

    def arrange(self, *keys: str) -> EmbeddedArrangement:
        """Install an arrangement by these columns."""


class SharedIndexes:
    """The indexes of a relation while a query is built on it; each one the query asks for is shared."""

    def __init__(self, source: ArrangementSource) -> None:
        self._source = source
        self.closed = source.closed
        self.latest = source.latest if isinstance(source, EmbeddedInput) else None  # an answer is never closed
        self.size = source.size
        self._installed: list[EmbeddedArrangement] = []

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

    def release(self) -> None:
        """Release the indexes installed here; the built query holds those that it reads."""
        for arrangement in self._installed:
            arrangement.release()
        self._installed.clear()


class SharedRelation(SourceCollection):
    """A relation with shared indexes, as a collection to build queries on."""

    def __init__(self, db: EmbeddedDatabase, shared: SharedIndexes, schema: Schema) -> None:
        super().__init__(db, nodes.RelationNode(schema, frozenset(), shared))
        self.closed = shared.closed  # whether it never changes again
        self._shared = shared

    @property
    def latest(self) -> Time | None:
        return self._shared.latest

    @property
    def size(self) -> int:
        return self._shared.size


class ArgumentCollection(SourceCollection):
    """A collection that is used instead of a relation: the arguments of tenants."""

    closed = False  # arguments may always change
    latest = None
    size = 0  # the planner treats it as the smallest input: arguments are few
