"""Enforce the limits of queries on one worker: a dataflow that uses too much is stopped.

The worker calls the guard after each step, and operators call it in the middle of long steps
(kpg/columns/memory_budget.py). It charges the CPU time since the last call to the dataflow that is running. If that
dataflow exceeds a limit, the guard raises OverLimit, and the worker drops this dataflow only, here and on its peers.
Cost: about a microsecond for each call, and every MEASURE_SECONDS of a dataflow's time a walk over the batches that it
keeps.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from time import monotonic, thread_time
from typing import TYPE_CHECKING, Final

from kpg.api.query_limits import QueryAdmission, QueryLimits, UsageGroup, over
from kpg.dataflow.usage import DataflowUsage

if TYPE_CHECKING:
    from kpg.api.embedded_database import EmbeddedDatabase
    from kpg.dataflow.graph import Dataflow
    from kpg.dataflow.operator import Operator

MEASURE_SECONDS: Final = 0.02  # of a dataflow's CPU time between two measurements of its state
MEASURE_ROWS: Final = 5_000  # that a dataflow processes between two measurements, if they take less time
SHARE_WINDOW_SECONDS: Final = 10.0  # over which the share of CPU time is measured


@dataclass(slots=True)
class LimitedUsage(DataflowUsage):
    """What a dataflow has used, and its limits. Several tenants share a dataflow, and add their limits."""

    limits: QueryLimits = field(default_factory=QueryLimits)
    tenants: int = 1
    measured_at: float = 0.0  # the CPU time at the last measurement of state
    unmeasured_rows: int = 0  # processed since then
    window_start: float = 0.0  # of the measurement of its share: wall time
    window_seconds: float = 0.0  # CPU time before that
    groups: tuple[UsageGroup, ...] = ()  # that its state counts for

    def measure(self, rows: int, nbytes: int) -> None:
        """Record the state of the dataflow, also in its groups."""
        for group in self.groups:
            group.change(rows - self.kept_rows, nbytes - self.kept_bytes)
        self.kept_rows, self.kept_bytes = rows, nbytes
        self.measured_at, self.unmeasured_rows = self.seconds, 0

    def leave_groups(self) -> None:
        """Count for no group any more."""
        for group in self.groups:
            group.change(-self.kept_rows, -self.kept_bytes)
        self.groups = ()


class UsageGuard(QueryAdmission):
    """Watches the dataflows of the queries of one service."""

    def __init__(self, db: EmbeddedDatabase, limits: QueryLimits) -> None:
        super().__init__(limits)
        self._worker = db.worker
        self._before = db.worker.guard
        self._charged = 0.0  # the CPU time of this thread that was charged to dataflows or to nobody
        db.worker.guard = self.check

    def admit(self, dataflow: Dataflow, limits: QueryLimits | None = None) -> None:
        """Let limits hold for a dataflow, by default those of the present request."""
        usage = LimitedUsage(limits=limits or self.current, window_start=monotonic(), groups=self._groups.get())
        dataflow.usage = usage
        dataflow.on_drop.append(usage.leave_groups)

    # While dataflows run

    def check(self, more: int = 0) -> None:
        """Charge the time since the last call to the dataflow that is running, and raise if it exceeds a limit."""
        now = thread_time()
        elapsed, self._charged = now - self._charged, now
        operator = self._worker.current
        if operator is not None and isinstance(operator.dataflow.usage, LimitedUsage):
            operator.dataflow.usage.seconds += elapsed
            check_usage(operator, operator.dataflow.usage)
        if self._before is not None:
            self._before(more)


def check_usage(operator: Operator, usage: LimitedUsage) -> None:
    """Raise OverLimit if the dataflow of an operator exceeds one of its limits."""
    limits, tenants, dataflow = usage.limits, usage.tenants, operator.dataflow
    if limits.step_rows is not None and usage.rows > limits.step_rows * tenants:
        what = f"{dataflow.name} produces more than {limits.step_rows * tenants:,} rows for one time"
        raise over(what, "step_rows", limits.step_rows, "Give arguments, or join by more columns")
    if not usage.answered:
        if limits.first_seconds is not None and usage.seconds > limits.first_seconds * tenants:
            what = f"{dataflow.name} takes more than {limits.first_seconds:g} seconds of CPU time to its first answer"
            raise over(what, "first_seconds", limits.first_seconds, "Ask for fewer rows")
    elif limits.cpu_percent is not None:
        check_share(dataflow, usage, limits.cpu_percent)
    if usage.seconds - usage.measured_at > MEASURE_SECONDS:
        check_state(dataflow, usage)
    if not operator.is_stepping and not dataflow.tracker.counts:  # everything that was fed is processed
        usage.unmeasured_rows += usage.rows
        usage.rows = 0
        if usage.unmeasured_rows > MEASURE_ROWS:
            check_state(dataflow, usage)
        if not usage.answered:
            usage.answered, usage.window_start, usage.window_seconds = True, monotonic(), usage.seconds


def check_share(dataflow: Dataflow, usage: LimitedUsage, percent: float) -> None:
    """Raise OverLimit if a dataflow has used more than its part of the last seconds."""
    now = monotonic()
    passed = now - usage.window_start
    if passed < SHARE_WINDOW_SECONDS:
        return
    used = usage.seconds - usage.window_seconds
    usage.window_start, usage.window_seconds = now, usage.seconds
    if used > percent / 100 * usage.tenants * passed:
        what = f"{dataflow.name} uses {used / passed:.0%} of the CPU time to keep its answer up to date"
        raise over(what, "cpu_percent", percent, "Ask for fewer rows, or read them less often with query")


def check_state(dataflow: Dataflow, usage: LimitedUsage) -> None:
    """Measure the state of a dataflow; raise OverLimit if it keeps too much."""
    rows = nbytes = 0
    for operator in dataflow.operators:
        for updates in operator.state():
            rows += len(updates)
            nbytes += updates.nbytes
    usage.measure(rows, nbytes)
    for group in usage.groups:
        group.check()
    limits, tenants = usage.limits, usage.tenants
    if limits.kept_rows is not None and rows > limits.kept_rows * tenants:
        raise over(f"{dataflow.name} keeps {rows:,} rows", "kept_rows", limits.kept_rows, "Ask for fewer rows")
    if limits.kept_bytes is not None and nbytes > limits.kept_bytes * tenants:
        raise over(f"{dataflow.name} keeps {nbytes:,} bytes", "kept_bytes", limits.kept_bytes, "Ask for fewer rows")
