"""Admission of queries to a db: whoever runs queries for others may refuse plans and watch dataflows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from kpg.dataflow.graph import Dataflow
    from kpg.plan.nodes import PlanNode


class Admission(Protocol):
    """Decides on the queries of a db. Indexes of relations and answers are not asked about."""

    def check_plan(self, root: PlanNode) -> None:
        """Raise if a plan must not be installed."""

    def admit(self, dataflow: Dataflow) -> None:
        """Note that the dataflow of a query was installed."""
