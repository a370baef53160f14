"""Installing on several workers: description → dataflows → handle.

The plan is sent as a document, and each worker installs it on its own db. The workers know it by its name, or by a
number; the caller holds a handle of kpg/cluster/cluster_output.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING, Any, Literal

from kpg.algebra.order import Time
from kpg.api.contracts import Arrangement, Input, Installer, Output, SourceCollection
from kpg.api.embedded_installer import enter, free_output_name
from kpg.cluster.cluster_arrangement import ClusterArrangement, ClusterIndex, ClusterProbe
from kpg.cluster.cluster_input import ClusterInput
from kpg.cluster.cluster_output import ClusterOutput
from kpg.cluster.rank_commands.input_commands import SizeCommand
from kpg.cluster.rank_commands.query_commands import (
    AdmittedLimits,
    BuildOutputCommand,
    BuildPartCommand,
    EndBuildCommand,
    InstallArrangementCommand,
    InstallOutputCommand,
    InstallProbeCommand,
)
from kpg.cluster.rank_generation import SHARED_PREFIX
from kpg.columns.building_turns import turns_of_building
from kpg.columns.schema import Schema
from kpg.errors import KpgError, UndefinedName
from kpg.plan import plan_document
from kpg.plan.nodes import InstalledNode, PlanNode, RelationNode

if TYPE_CHECKING:
    from kpg.cluster.cluster_database import ClusterDatabase


class ClusterInstaller(Installer):
    """Makes all workers turn a plan into a dataflow."""

    def __init__(self, db: ClusterDatabase, output_class: type[ClusterOutput]) -> None:
        self.db = db
        self._output_class = output_class
        self._numbers = count()
        self._reads: dict[int, frozenset[str]] = {}  # by the number of an arrangement: the inputs that it depends on

    def _inputs_of(self, plan: dict[str, Any]) -> frozenset[str]:
        """Return the names of the inputs that a plan reads, directly or through arrangements."""
        reads: frozenset[str] = frozenset()
        for kind, name in plan_document.references(plan):
            match kind.removeprefix(SHARED_PREFIX):
                case "input":
                    reads |= {name}
                case "index":
                    reads |= self._reads[name]
                case "output":
                    if name not in self.db.outputs:  # others may run while a plan is written
                        raise UndefinedName(f"{name} was dropped while a query on it was built")
                    reads |= self.db.outputs[name].reads
        return reads

    def _admit(self, node: PlanNode) -> AdmittedLimits | None:
        """Raise if the db does not admit a plan; return the limits of its query, if it has some."""
        return None if self.db.admission is None else self.db.admission.admit(node)

    def shared(self, source: Input | Output | Arrangement, schema: Schema) -> ClusterSource:
        return ClusterSource(self.db, source, schema)

    def output(self, node: PlanNode, name: str | None, keep: bool, replace: bool = False) -> ClusterOutput:
        self.db.check()
        chosen, plan = free_output_name(self.db, name, replace), document(node)
        limits, inputs = self._admit(node), self._inputs_of(plan)
        command = InstallOutputCommand(chosen, plan, keep, limits)
        in_turns = self.db.in_request and turns_of_building() is not None
        number = self._build_in_parts(command) if in_turns else self.db.install_on_workers(command)
        output = self._output_class(self.db, chosen, node.schema, keep, inputs, number, limits)
        enter(self.db, output, name)
        return output

    def _build_in_parts(self, install: InstallOutputCommand) -> int:
        """Make all workers install an output in parts, between which others run there and here.

        Return the number of the command that has completed it. If workers begin a new generation, which does not know
        the build, they install it whole.
        """
        db, build, recoveries = self.db, next(self._numbers), self.db.recoveries
        command: BuildOutputCommand | BuildPartCommand
        command = BuildOutputCommand(build, install.name, install.plan, install.keep, install.limits)
        try:
            while db.recoveries == recoveries:
                number = db.build_on_workers(command, install)
                if number is not None:
                    return number
                db.pause_request()
                command = BuildPartCommand(build)
        except BaseException:
            with suppress(KpgError):
                db.ask(EndBuildCommand(build))
            raise
        db.ask(EndBuildCommand(build))
        return db.install_on_workers(install)

    def arrangement(
        self, node: PlanNode, name: str, keys: tuple[str, ...], in_place: bool = False
    ) -> ClusterArrangement:
        return self._arrangement(node, name, keys, None, in_place)

    def arrangement_of(self, source: ClusterInput, keys: tuple[str, ...]) -> ClusterArrangement:
        """Install an index of a relation, or share the one that exists."""
        return self._arrangement(source.node, f"{source.name} by {', '.join(keys)}", keys, source.name)

    def _arrangement(
        self, node: PlanNode, name: str, keys: tuple[str, ...], relation: str | None, in_place: bool = False
    ) -> ClusterArrangement:
        index, plan = ClusterIndex(self.db, next(self._numbers), name, keys), document(node)
        limits = None if isinstance(node, (InstalledNode, RelationNode)) else self._admit(node)
        command = InstallArrangementCommand(index.number, name, tuple(keys), relation, plan, limits, in_place)
        installed_by = self.db.install_on_workers(command)
        self._reads[index.number] = self._inputs_of(plan)
        return ClusterArrangement(self.db, index, node, installed_by)

    def answers(
        self, name: str, plans: dict[str, PlanNode], relations: Mapping[PlanNode, str] | None = None
    ) -> dict[str, ClusterArrangement]:
        """Install several plans, each as an index by all its columns and as a dataflow of its own."""
        return {
            answer: self.arrangement(node, answer, node.schema.names, in_place=True) for answer, node in plans.items()
        }

    def probe(self, node: PlanNode) -> ClusterProbe:
        number = next(self._numbers)
        self.db.install_on_workers(InstallProbeCommand(number, document(node)))
        return ClusterProbe(self.db, number)


class SharedReference:
    """The reference by which a plan names a source; the workers find or install the indexes of it that they need."""

    kind: Literal["input", "output", "index"]
    name: str | int  # of an index, its number

    def __init__(self, source: Any) -> None:
        if isinstance(source, ClusterArrangement):
            self.kind, self.name = "index", source.index.number
        else:
            self.kind, self.name = "output" if isinstance(source, ClusterOutput) else "input", source.name
        self._db = source.db

    @property
    def size(self) -> int:
        """An estimate of its row count on all workers."""
        return sum(reply.value for reply in self._db.ask(SizeCommand(self.kind, self.name)))


class ClusterSource(SourceCollection):
    """An input, output or arrangement with shared indexes, as a collection to build queries on."""

    def __init__(self, db: ClusterDatabase, source: Input | Output | Arrangement, schema: Schema) -> None:
        self._reference = SharedReference(source)
        super().__init__(db, RelationNode(schema, frozenset(), self._reference))
        self._input = source if isinstance(source, ClusterInput) else None
        self.closed = self._input is not None and self._input.closed  # other sources may always change

    @property
    def latest(self) -> Time | None:
        return None if self._input is None else self._input.latest

    @property
    def size(self) -> int:
        return self._reference.size


def document(node: PlanNode) -> dict[str, Any]:
    """Return a plan as the document that workers read."""
    return plan_document.write(node, reference_of)


def reference_of(owner: Any) -> list[Any]:
    """Return the name or number by which the workers know a relation or index."""
    if isinstance(owner, ClusterIndex):
        return ["index", owner.number]
    if isinstance(owner, ClusterInput):
        return ["input", owner.name]
    if isinstance(owner, SharedReference):
        return [SHARED_PREFIX + owner.kind, owner.name]
    raise KpgError("this collection belongs to another db", hint="Make it from inputs of the db that installs it.")
