"""Installing on several workers: the plan is sent as a document, and each worker installs it on a db of its own.

What people hold of it is here (kpg/cluster/cluster_output.py); the workers know it by its name, or by a number.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

from kpg.api.input import Input
from kpg.api.installer import Installer
from kpg.api.output import output_name
from kpg.cluster.cluster_input import ClusterInput
from kpg.cluster.cluster_output import ClusterArrangement, ClusterIndex, ClusterOutput, ClusterProbe
from kpg.errors import KpgError
from kpg.plan import plan_document
from kpg.plan.nodes import PlanNode

if TYPE_CHECKING:
    from kpg.cluster.cluster_database import ClusterDatabase


class ClusterInstaller(Installer):
    """What has all workers make dataflows of plans."""

    db: ClusterDatabase

    def __init__(self, db: ClusterDatabase) -> None:
        super().__init__(db)
        self._numbers = count()

    def output(self, node: PlanNode, name: str | None, keep: bool) -> ClusterOutput:  # type: ignore[override]
        """Install a plan as an answer on all workers."""
        chosen = output_name(self.db, name)
        self.db.ask({"do": "output", "name": chosen, "plan": described(node), "keep": keep})
        made = self.db.outputs[chosen] = ClusterOutput(self.db, chosen, node.schema, keep)
        return made

    def arrangement(  # type: ignore[override]
        self, node: PlanNode, name: str, keys: tuple[str, ...], of: str | None = None
    ) -> ClusterArrangement:
        """Install a plan as an index on all workers; `of`: the relation whose index it is."""
        index = ClusterIndex(next(self._numbers), name, keys)
        self.db.ask({
            "do": "arrangement", "number": index.number, "name": name, "keys": list(keys), "of": of,
            "plan": described(node),
        })  # fmt: skip
        return ClusterArrangement(self.db, index, node)

    def arrangement_of(self, source: Input, keys: tuple[str, ...]) -> ClusterArrangement:
        """The index of a relation by some columns, shared with whoever has one already."""
        return self.arrangement(source.node, f"{source.name} by {', '.join(keys)}", keys, source.name)

    def answers(self, name: str, wanted: dict[str, PlanNode]) -> dict[str, ClusterArrangement]:  # type: ignore[override]
        """Install several plans, each as an index by all its columns, and on workers as a dataflow of its own."""
        return {each: self.arrangement(node, each, node.schema.names) for each, node in wanted.items()}

    def probe(self, node: PlanNode) -> ClusterProbe:  # type: ignore[override]
        """Install a plan only to know how far it has come."""
        number = next(self._numbers)
        self.db.ask({"do": "probe", "number": number, "plan": described(node)})
        return ClusterProbe(self.db, number)


def described(node: PlanNode) -> dict[str, Any]:
    """A plan as the workers read it."""
    return plan_document.write(node, reference_of)


def reference_of(owner: Any) -> list[Any]:
    """What the workers know a relation or index by."""
    if isinstance(owner, ClusterIndex):
        return ["index", owner.number]
    if isinstance(owner, ClusterInput):
        return ["input", owner.name]
    raise KpgError("this collection belongs to another db", hint="Make it from inputs of the db that installs it.")
