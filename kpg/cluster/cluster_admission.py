"""The limits of the queries on several workers: this process checks plans, and each worker enforces the rest.

Limits, and the groups whose use a query adds to, travel with the plan. Each worker compares the use of its own share
with them. A worker that stops a query makes the others stop it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kpg.api.query_limits import QueryAdmission, QueryLimits
from kpg.api.usage_groups import UsageGroup
from kpg.cluster.rank_commands.query_commands import AdmittedLimits, EndGroupCommand, NumberedGroup

if TYPE_CHECKING:
    from kpg.cluster.cluster_database import ClusterDatabase
    from kpg.plan.nodes import PlanNode


class ClusterAdmission(QueryAdmission):
    """The limits of the queries that are installed on all workers of a db."""

    def __init__(self, db: ClusterDatabase, limits: QueryLimits) -> None:
        super().__init__(limits)
        self._db = db

    def admit(self, node: PlanNode) -> AdmittedLimits:
        """Raise if a plan is not admitted; return the limits of its query."""
        self.check_plan(node)
        return AdmittedLimits(self.current, tuple(map(numbered, self.groups)))

    def end_group(self, group: UsageGroup) -> None:
        self._db.tell_workers(EndGroupCommand(group.number))


def numbered(group: UsageGroup) -> NumberedGroup:
    """Return a group as workers know it."""
    return NumberedGroup(group.number, group.kind, group.limits)
