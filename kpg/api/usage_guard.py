"""Enforce the limits of queries on one worker: a dataflow that uses too much is stopped.

The worker calls the guard after each step, and operators call it in the middle of long steps
(kpg/columns/memory_budget.py). It charges the CPU time since the last call to the operator that is running and to its
dataflow. If that exceeds a limit, the guard raises OverLimit, and the worker drops this dataflow only, here and on its
peers.
Cost: about a microsecond for each call, and every MEASURE_SECONDS of a dataflow's time a walk over the batches that it
keeps.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from time import thread_time
from typing import TYPE_CHECKING, Final

from kpg.api.query_limits import QueryAdmission, QueryLimits, over
from kpg.api.usage_groups import ShareWindow, UsageGroup
from kpg.dataflow.usage import DataflowUsage
from kpg.errors import OverLimit

if TYPE_CHECKING:
    from kpg.api.embedded_database import EmbeddedDatabase
    from kpg.dataflow.graph import Dataflow
    from kpg.dataflow.operator import Operator

MEASURE_SECONDS: Final = 0.02  # of a dataflow's CPU time between two measurements of its state
MEASURE_SHARE: Final = 0.05  # of its CPU time that measurements may take
MEASURE_ROWS: Final = 5_000  # that a dataflow processes between two measurements, if they take less time


@dataclass(slots=True)
class LimitedUsage(DataflowUsage):
    """What a dataflow has used, and its limits.

    Tenants that share a dataflow add their limits of rows and bytes that are kept. For the work of one time, all add
    theirs if data have changed, but only those with new arguments if there are some: one tenant may not use what the
    others leave.
    """

    limits: QueryLimits = field(default_factory=QueryLimits)
    tenants: int = 1
    asking: int = 0  # of these tenants, those with new arguments at `asked_at`
    asked_at: int = -1  # the epoch of the newest arguments
    epoch: int = -1  # the first time that it had not completed when that was last determined; -1 before that
    epoch_seconds: float = 0.0  # CPU time before it began to work for that time
    measured_at: float = 0.0  # the CPU time at the last measurement of state
    measure_after: float = MEASURE_SECONDS  # the CPU time until the next one
    measured_in: float = 0.0  # the CPU time that the last one has taken
    rows_before: int | None = None  # kept at the first measurement for the first time that is not complete
    earlier_rows: int = 0  # since then, processed for times that are complete now
    window: ShareWindow = field(default_factory=ShareWindow)
    groups: tuple[UsageGroup, ...] = ()  # that its use counts for
    group_rows: int = 0  # of its rows and seconds, for a time that is not complete, what the groups count
    group_seconds: float = 0.0
    group_total: float = 0.0  # of all its seconds, what the groups count

    @property
    def sharers(self) -> int:
        """The tenants that add their limits for the first time that is not complete: those that ask, or else all."""
        return self.asking if self.asking and self.epoch <= self.asked_at else self.tenants

    def share(self, tenants: int, asking: int, asked_at: int) -> None:
        """Let several tenants add their limits, some of which have new arguments at an epoch."""
        self.tenants, self.asking, self.asked_at = max(1, tenants), asking, asked_at

    @property
    def working_seconds(self) -> float:
        """CPU time for the first time that is not complete."""
        return self.seconds - self.epoch_seconds

    @property
    def unmeasured_rows(self) -> int:
        """The rows processed since the last measurement of state."""
        return self.earlier_rows + self.rows

    @property
    def has_grown(self) -> bool:
        """Whether the state may have doubled since the last measurement: many small queries of a group add up."""
        is_cheap = self.seconds - self.measured_at >= self.measured_in / MEASURE_SHARE
        return is_cheap and self.unmeasured_rows > self.kept_rows

    def measure(self, rows: int, nbytes: int, seconds: float) -> None:
        """Record the state of the dataflow, also in its groups. To measure it took some CPU time."""
        self.measured_in, self.measure_after = seconds, max(MEASURE_SECONDS, seconds / MEASURE_SHARE)
        self.rows_before = rows if self.rows_before is None else min(rows, self.rows_before)
        for group in self.groups:
            group.keep(rows - self.kept_rows, nbytes - self.kept_bytes)
        self.kept_rows, self.kept_bytes = rows, nbytes
        self.measured_at, self.earlier_rows = self.seconds, -self.rows

    def charge(self, seconds: float) -> None:
        """Add CPU time, also to the groups, with the rows since the last call."""
        self.seconds += seconds
        for group in self.groups:
            working = self.working_seconds - self.group_seconds
            group.work(self.rows - self.group_rows, working, self.seconds - self.group_total)
        self.group_rows, self.group_seconds, self.group_total = self.rows, self.working_seconds, self.seconds

    def complete(self, epoch: int) -> None:
        """Count rows and seconds anew: everything before an epoch is complete."""
        for group in self.groups:
            group.work(-self.group_rows, -self.group_seconds, 0.0)
        self.group_rows, self.group_seconds = 0, 0.0
        self.earlier_rows += self.rows
        self.epoch, self.epoch_seconds, self.rows, self.rows_before = epoch, self.seconds, 0, None

    def replace_limits(self, limits: QueryLimits) -> None:
        """Let the limits of a dataflow that several tenants shared hold for this one, which replaces it."""
        self.leave_groups()
        self.limits = limits

    def leave_groups(self) -> None:
        """Count for no group any more."""
        self.stay_in_groups(())

    def stay_in_groups(self, numbers: Collection[int]) -> None:
        """Count only for those of its groups that have these numbers from now on."""
        for group in self.groups:
            if group.number not in numbers:
                group.keep(-self.kept_rows, -self.kept_bytes)
                group.work(-self.group_rows, -self.group_seconds, 0.0)
        self.groups = tuple(group for group in self.groups if group.number in numbers)


class UsageGuard(QueryAdmission):
    """Watches the dataflows of the queries of one service."""

    def __init__(self, db: EmbeddedDatabase, limits: QueryLimits) -> None:
        super().__init__(limits)
        self._worker = db.worker
        self._before = db.worker.guard
        self._charged = 0.0  # the CPU time of this thread that was charged to dataflows or to nobody
        db.worker.guard = self.check
        db.worker.when_idle = self.note_idle

    def check_groups(self) -> None:
        """Raise OverLimit if the session keeps too much already; of several workers each may say something else."""
        if self._worker.peers == 1:
            super().check_groups()

    def admit(self, dataflow: Dataflow) -> None:
        """Let the limits of the present request hold for a dataflow."""
        usage = LimitedUsage(limits=self.current, groups=self.groups)
        dataflow.usage = usage
        dataflow.on_drop.append(usage.leave_groups)
        self.add_owner(dataflow)

    def add_owner(self, dataflow: Dataflow) -> None:
        """Let a dataflow run in the share of the session or tenant of the present request, too."""
        group = self.sharing_group
        if group is not None:
            dataflow.add_owner(group.owner)

    def note_idle(self, dataflow: Dataflow) -> None:
        """Record that a dataflow has no work left; stop it if its session then keeps too much."""
        if isinstance(dataflow.usage, LimitedUsage):
            try:
                complete(dataflow, dataflow.usage)
            except OverLimit as error:
                self._worker.fail(dataflow, error)

    # While dataflows run

    def check(self, more: int = 0) -> None:
        """Charge the time since the last call to the dataflow that is running, and raise if it exceeds a limit."""
        now = thread_time()
        elapsed, self._charged = now - self._charged, now
        operator = self._worker.current
        if operator is not None:
            operator.cpu_seconds += elapsed
            if isinstance(operator.dataflow.usage, LimitedUsage):
                operator.dataflow.usage.charge(elapsed)
                check_usage(operator, operator.dataflow.usage)
        if self._before is not None:
            self._before(more)


def check_usage(operator: Operator, usage: LimitedUsage) -> None:
    """Raise OverLimit if the dataflow of an operator exceeds one of its limits."""
    limits, tenants, dataflow = usage.limits, usage.tenants, operator.dataflow
    if limits.step_rows is not None and usage.rows > limits.step_rows * usage.sharers:
        note_progress(dataflow, usage)
        if usage.rows > limits.step_rows * usage.sharers:
            raise too_many_rows(dataflow, usage)
    if limits.first_seconds is not None and usage.working_seconds > limits.first_seconds * usage.sharers:
        note_progress(dataflow, usage)
        if usage.working_seconds > limits.first_seconds * usage.sharers:
            which = "for one time" if usage.answered else "to its first answer"
            what = f"{dataflow.name} takes more than {limits.first_seconds:g} seconds of CPU time {which}"
            raise over(what, "first_seconds", limits.first_seconds, "Ask for fewer rows")
    if usage.answered and limits.cpu_percent is not None:
        share = usage.window.exceeded(usage.seconds, limits.cpu_percent * tenants)
        if share is not None:
            what = f"{dataflow.name} uses {100 * share:.2g}% of the CPU time to keep its answer up to date"
            raise over(
                what, "cpu_percent", limits.cpu_percent, "Ask for fewer rows, or read them less often with query"
            )
    has_worked = usage.seconds - usage.measured_at > usage.measure_after
    if has_worked or (usage.unmeasured_rows > MEASURE_ROWS and not operator.is_stepping):
        note_progress(dataflow, usage)
        check_state(dataflow, usage)
    if not operator.is_stepping and dataflow.tracker.is_idle:  # everything that was fed is processed
        complete(dataflow, usage)


def complete(dataflow: Dataflow, usage: LimitedUsage) -> None:
    """Record that a dataflow has no work left. Raise OverLimit if its groups keep too much, small queries included."""
    usage.complete(usage.epoch)
    if not usage.answered:
        usage.answered = True
        usage.window.begin(usage.seconds)
    if usage.groups and usage.has_grown:
        check_state(dataflow, usage)


def too_many_rows(dataflow: Dataflow, usage: LimitedUsage) -> OverLimit:
    """Return the error of a dataflow that produces too many rows for one time."""
    step_rows = usage.limits.step_rows or 0
    what = f"{dataflow.name} produces more than {step_rows * usage.sharers:,} rows for one time"
    return over(what, "step_rows", step_rows, "Give arguments, or join by more columns")


def note_progress(dataflow: Dataflow, usage: LimitedUsage) -> None:
    """Count anew if the dataflow has completed a time, so that one that always has work is not stopped for its sum."""
    in_flight = dataflow.tracker.least_in_flight()
    epoch = usage.epoch if in_flight is None else in_flight
    now = dataflow.worker.clock.now.elements
    if usage.epoch < 0:
        usage.epoch = epoch
    elif epoch > usage.epoch or (now and epoch >= now[0][0]):  # what is held for later times is no work
        usage.complete(epoch)


def check_state(dataflow: Dataflow, usage: LimitedUsage) -> None:
    """Measure the state of a dataflow; raise OverLimit if it keeps too much."""
    began = thread_time()
    sizes = [operator.state_size() for operator in dataflow.operators]
    rows, nbytes = sum(rows for rows, _ in sizes), sum(nbytes for _, nbytes in sizes)
    usage.measure(rows, nbytes, thread_time() - began)
    for group in usage.groups:
        group.check()
    limits, tenants = usage.limits, usage.tenants
    if limits.step_rows is not None and rows - (usage.rows_before or 0) > limits.step_rows * usage.sharers:
        raise too_many_rows(dataflow, usage)  # in an operator that is a recursion: no message has passed yet
    if limits.kept_rows is not None and rows > limits.kept_rows * tenants:
        raise over(f"{dataflow.name} keeps {rows:,} rows", "kept_rows", limits.kept_rows, "Ask for fewer rows")
    if limits.kept_bytes is not None and nbytes > limits.kept_bytes * tenants:
        raise over(f"{dataflow.name} keeps {nbytes:,} bytes", "kept_bytes", limits.kept_bytes, "Ask for fewer rows")
