"""Answers of several workers that lag too far behind the clock: rebuilt once, then stopped.

Each rank compares its part of an answer with the limits (kpg/api/answer_lag.py) and reports those beyond one. The
coordinator decides, so that all ranks rebuild an answer, or stop it, at the same point of their commands. A report
from before an answer was rebuilt does not count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kpg.api.answer_lag import AnswerLag, LagLimit
from kpg.cluster.rank_commands.query_commands import FailOutputCommand
from kpg.cluster.rank_commands.time_commands import RankReport
from kpg.protocol.error_messages import failure_of

if TYPE_CHECKING:
    from kpg.cluster.cluster_database import ClusterDatabase


class ClusterLag:
    """The answers that ranks have reported as too far behind."""

    def __init__(self, db: ClusterDatabase) -> None:
        self._db = db
        self._limit = LagLimit(db.config)
        self._behind: dict[str, AnswerLag] = {}

    def note(self, report: RankReport) -> None:
        """Note the answers that a report names."""
        for name, lag in report.behind.items():
            if name in self._db.outputs and report.after >= self._db.outputs[name].installed_by:
                self._behind[name] = AnswerLag(*lag)

    def relieve(self) -> None:
        """Rebuild the noted answers, or stop those that cannot be rebuilt."""
        while self._behind:
            name, lag = self._behind.popitem()
            output = self._db.outputs.get(name)
            if output is not None and not output.ended and not output.rebuild():
                self._db.ask(FailOutputCommand(name, failure_of(self._limit.error(name, lag))))
