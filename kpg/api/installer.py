"""Installing: a description becomes a dataflow of a db, and the thing that people hold of it.

    collection.output(…)     an answer: an arrangement of its rows, and the changes of it
    collection.arrange(…)    an index that queries share
    collection.probe()       nothing but how far it has come

A db has one installer; that of several workers (kpg/cluster/cluster_installer.py) has them all install the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kpg.api.arrangement import Arrangement
from kpg.api.installed_arrangement import install_arrangement, install_together
from kpg.api.output import Output, Probe
from kpg.plan.nodes import PlanNode

if TYPE_CHECKING:
    from kpg.api.database import Database


class Installer:
    """What makes dataflows of plans, in this process."""

    def __init__(self, db: Database) -> None:
        self.db = db

    def output(self, node: PlanNode, name: str | None, keep: bool) -> Output:
        """Install a plan as an answer."""
        return Output(self.db, node, name, keep)

    def arrangement(self, node: PlanNode, name: str, keys: tuple[str, ...]) -> Arrangement:
        """Install a plan as an index that queries share."""
        return Arrangement(self.db, install_arrangement(self.db, name, node, keys), node)

    def answers(self, name: str, wanted: dict[str, PlanNode]) -> dict[str, Arrangement]:
        """Install several plans as one dataflow, each as an index by all its columns."""
        made = install_together(self.db, name, {each: (node, node.schema.names) for each, node in wanted.items()})
        found = zip(wanted.items(), made, strict=True)
        return {each: Arrangement(self.db, installed, node) for (each, node), installed in found}

    def probe(self, node: PlanNode) -> Probe:
        """Install a plan only to know how far it has come."""
        return Probe(self.db, node)
