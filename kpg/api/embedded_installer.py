"""Installing in this process: description → dataflow → handle, in one method for each kind of handle.

    collection.output(…)     an answer: an arrangement of its rows, and their changes
    collection.arrange(…)    an index that queries share
    collection.probe()       the progress of a collection, without its rows

Each method chooses a builder (kpg/api/dataflow_builders.py), has the db install it, and returns the handle. A db on
several workers has an installer of its own (kpg/cluster/cluster_installer.py), which makes every worker do the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from kpg.api.contracts import Arrangement, Database, Input, Installer, Output
from kpg.api.dataflow_builders import ArrangementsBuilder, RelationBuilder, StreamBuilder
from kpg.api.embedded_arrangement import EmbeddedArrangement
from kpg.api.embedded_input import EmbeddedInput
from kpg.api.embedded_output import EmbeddedOutput, EmbeddedProbe
from kpg.api.installed_arrangement import InstalledArrangement
from kpg.api.shared_indexes import ArrangementSource, IndexSource, SharedRelation, shared_indexes
from kpg.api.unread_changes import UnreadChanges
from kpg.columns.schema import Schema
from kpg.errors import InUse
from kpg.operators.source import Source
from kpg.plan.nodes import InstalledNode, PlanNode, ReduceNode, RelationNode

if TYPE_CHECKING:
    from kpg.api.embedded_database import EmbeddedDatabase
    from kpg.dataflow.graph import Dataflow


class EmbeddedInstaller(Installer):
    """Turns plans into dataflows of the worker in this process."""

    def __init__(self, db: EmbeddedDatabase) -> None:
        self.db = db

    def relation(
        self, name: str, schema: Schema, keys: tuple[str, ...], logged: bool
    ) -> tuple[Source, InstalledArrangement]:
        """Install the base arrangement of an input; return also the source that rows are fed into."""
        builder = RelationBuilder(self.db, name, schema, keys)
        self.db.install(name, builder, logged)
        return builder.source, builder.installed

    def shared(self, source: Input | Output | Arrangement, schema: Schema) -> SharedRelation:
        return SharedRelation(self.db, arrangement_source(source), schema)

    def output(self, node: PlanNode, name: str | None, keep: bool, replace: bool = False) -> EmbeddedOutput:
        self.db.check()
        self._check([node])
        chosen = free_output_name(self.db, name, replace)
        with shared_indexes(node):
            output = self.build_output(node, chosen, keep)
        output.node = node
        self._admit(output.dataflow)
        enter(self.db, output, name)
        return output

    def _check(self, roots: Iterable[PlanNode]) -> None:
        """Raise if the db does not admit one of the plans."""
        if self.db.admission is not None:
            for root in roots:
                self.db.admission.check_plan(root)

    def _admit(self, dataflow: Dataflow) -> None:
        """Let limits hold for a new dataflow, if the db has some."""
        if self.db.admission is not None:
            self.db.admission.admit(dataflow)

    def build_output(self, node: PlanNode, chosen: str, keep: bool) -> EmbeddedOutput:
        """Install the dataflow of an answer, without entering it into the table of outputs."""
        changes = UnreadChanges(node.schema, self.db.config.coordinates)
        if not keep:
            stream = StreamBuilder(self.db, chosen, node, changes)
            dataflow = self.db.install(chosen, stream)
            return EmbeddedOutput(self.db, chosen, dataflow, changes, None, stream.errors, stream.relations)
        (installed,) = self._install(
            ArrangementsBuilder(self.db, chosen, {chosen: (node, index_columns(node))}, changes)
        )
        dataflow, relations = installed.dataflow, installed.relations
        return EmbeddedOutput(self.db, chosen, dataflow, changes, installed, installed.errors, relations)

    def arrangement(
        self, node: PlanNode, name: str, keys: tuple[str, ...], in_place: bool = False
    ) -> EmbeddedArrangement:
        is_index = isinstance(node, (InstalledNode, RelationNode))
        if not is_index:
            self._check([node])
        (installed,) = self._install(ArrangementsBuilder(self.db, name, {name: (node, keys)}, in_place=in_place))
        if not is_index:
            self._admit(installed.dataflow)
        return EmbeddedArrangement(self.db, installed, node)

    def answers(
        self, name: str, plans: dict[str, PlanNode], relations: Mapping[PlanNode, str] | None = None
    ) -> dict[str, EmbeddedArrangement]:
        """Install several plans as one dataflow, each as an index by all its columns."""
        self._check(plans.values())
        by_all = {answer: (node, node.schema.names) for answer, node in plans.items()}
        installed = self._install(ArrangementsBuilder(self.db, name, by_all, relations=relations))
        if installed:
            self._admit(installed[0].dataflow)
        return {
            answer: EmbeddedArrangement(self.db, arrangement, node)
            for (answer, node), arrangement in zip(plans.items(), installed, strict=True)
        }

    def probe(self, node: PlanNode) -> EmbeddedProbe:
        builder = StreamBuilder(self.db, "probe", node)
        return EmbeddedProbe(self.db, self.db.install("probe", builder), builder.delivery)

    def _install(self, builder: ArrangementsBuilder) -> list[InstalledArrangement]:
        try:
            self.db.install(builder.name, builder)
        except BaseException:
            builder.abandon()
            raise
        return builder.installed


def arrangement_source(source: Input | Output | Arrangement) -> ArrangementSource:
    """Return an input, output or arrangement of this process as a source of arrangements."""
    if isinstance(source, EmbeddedOutput):
        return source.indexes
    if isinstance(source, EmbeddedArrangement):
        return IndexSource(source)
    assert isinstance(source, EmbeddedInput)
    return source


def free_output_name(db: Database, name: str | None, replace: bool) -> str:
    """Return the requested name, free or freed now, or else a free one."""
    db.outputs.release_abandoned()
    if name is not None and name in db.outputs:
        if not replace:
            raise InUse(
                f"there is an output {name!r} already",
                hint="Choose another name, release() that one, or pass replace=True.",
            )
        db.outputs[name].release()
    return name or db.outputs.new_name()


def enter(db: Database, output: Output, name: str | None) -> None:
    """Enter an output into the db's table: by its name, or until its last handle is garbage."""
    if name is None:
        output.is_named = False
        db.outputs.add_unnamed(output.name, output)
    else:
        db.outputs[name] = output


def index_columns(node: PlanNode) -> tuple[str, ...]:
    """Return the columns to index an answer by: of groups their keys, by which the reduction has an index, else all."""
    if isinstance(node, ReduceNode) and node.keys and node.schema.names[: len(node.keys)] == node.keys:
        return node.keys
    return node.schema.names
