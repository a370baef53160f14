"""Installing on several workers: description → dataflows → handle.

The plan is sent as a document, and each worker installs it on its own db. The workers know it by its name, or by a
number; the caller holds a handle of kpg/cluster/cluster_output.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import TYPE_CHECKING, Any

from kpg.api.contracts import Installer
from kpg.api.embedded_installer import enter, free_output_name
from kpg.cluster.cluster_input import ClusterInput
from kpg.cluster.cluster_output import ClusterArrangement, ClusterIndex, ClusterOutput, ClusterProbe
from kpg.cluster.rank_commands.query_commands import (
    InstallArrangementCommand,
    InstallOutputCommand,
    InstallProbeCommand,
)
from kpg.errors import KpgError
from kpg.plan import plan_document
from kpg.plan.nodes import PlanNode

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
        references = plan_document.references(plan)
        direct = frozenset(name for kind, name in references if kind == "input")
        return direct.union(*[self._reads[number] for kind, number in references if kind == "index"])

    def output(self, node: PlanNode, name: str | None, keep: bool, replace: bool = False) -> ClusterOutput:
        self.db.check()
        chosen, plan = free_output_name(self.db, name, replace), document(node)
        self.db.ask(InstallOutputCommand(chosen, plan, keep))
        output = self._output_class(self.db, chosen, node.schema, keep, self._inputs_of(plan))
        enter(self.db, output, name)
        return output

    def arrangement(self, node: PlanNode, name: str, keys: tuple[str, ...]) -> ClusterArrangement:
        return self._arrangement(node, name, keys, None)

    def arrangement_of(self, source: ClusterInput, keys: tuple[str, ...]) -> ClusterArrangement:
        """Install an index of a relation, or share the one that exists."""
        return self._arrangement(source.node, f"{source.name} by {', '.join(keys)}", keys, source.name)

    def _arrangement(
        self, node: PlanNode, name: str, keys: tuple[str, ...], relation: str | None
    ) -> ClusterArrangement:
        index, plan = ClusterIndex(next(self._numbers), name, keys), document(node)
        self.db.ask(InstallArrangementCommand(index.number, name, tuple(keys), relation, plan))
        self._reads[index.number] = self._inputs_of(plan)
        return ClusterArrangement(self.db, index, node)

    def answers(
        self, name: str, plans: dict[str, PlanNode], relations: Mapping[PlanNode, str] | None = None
    ) -> dict[str, ClusterArrangement]:
        """Install several plans, each as an index by all its columns and as a dataflow of its own."""
        return {answer: self.arrangement(node, answer, node.schema.names) for answer, node in plans.items()}

    def probe(self, node: PlanNode) -> ClusterProbe:
        number = next(self._numbers)
        self.db.ask(InstallProbeCommand(number, document(node)))
        return ClusterProbe(self.db, number)


def document(node: PlanNode) -> dict[str, Any]:
    """Return a plan as the document that workers read."""
    return plan_document.write(node, reference_of)


def reference_of(owner: Any) -> list[Any]:
    """Return the name or number by which the workers know a relation or index."""
    if isinstance(owner, ClusterIndex):
        return ["index", owner.number]
    if isinstance(owner, ClusterInput):
        return ["input", owner.name]
    raise KpgError("this collection belongs to another db", hint="Make it from inputs of the db that installs it.")
