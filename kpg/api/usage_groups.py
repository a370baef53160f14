"""What the queries of one session, or of one tenant, use together, and the limits on it.

    group.keep(rows, bytes)              their state has changed
    group.work(rows, seconds, charged)   they have worked
    group.check()                        raise OverLimit if they use too much together

Rows and seconds count while a query works for a time that it has not completed. The share of CPU time counts always,
over windows of SHARE_WINDOW_SECONDS. The queries divide one share of a worker's time (kpg.dataflow.fair_shares).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count
from time import monotonic
from typing import Final

from kpg.api.limit_values import bound_limits
from kpg.dataflow.fair_shares import ShareOwner
from kpg.errors import OverLimit

NUMBERS: Final = count()  # of groups
SHARE_WINDOW_SECONDS: Final = 10.0  # over which the share of CPU time is measured


@dataclass(frozen=True, slots=True)
class GroupLimits:
    """The limits of all queries together that one session, or one tenant, has built."""

    kept_rows: int | None = None  # in the state of their operators
    kept_bytes: int | None = None  # the same
    step_rows: int | None = None  # passed between operators for times that are not complete
    first_seconds: float | None = None  # CPU time for times that are not complete
    cpu_percent: float | None = None  # of one processor, at all times

    def __post_init__(self) -> None:
        bound_limits(self)


@dataclass(slots=True)
class ShareWindow:
    """The present window in which a share of CPU time is measured."""

    start: float = field(default_factory=monotonic)
    seconds: float = 0.0  # of CPU time, before the window

    def begin(self, seconds: float) -> None:
        """Begin a window."""
        self.start, self.seconds = monotonic(), seconds

    def exceeded(self, seconds: float, percent: float) -> float | None:
        """Return the share of the window that has just ended if it is too large; None otherwise."""
        passed = monotonic() - self.start
        if passed < SHARE_WINDOW_SECONDS:
            return None
        used = seconds - self.seconds
        self.begin(seconds)
        return used / passed if used > percent / 100 * passed else None


@dataclass(slots=True)
class UsageGroup:
    """What the queries of one session or tenant use together."""

    kind: str  # "session" or "tenant"
    limits: GroupLimits
    kept_rows: int = 0
    kept_bytes: int = 0
    step_rows: int = 0
    first_seconds: float = 0.0
    seconds: float = 0.0  # CPU time of all its queries so far
    window: ShareWindow = field(default_factory=ShareWindow)
    number: int = field(default_factory=NUMBERS.__next__)  # by which other processes know the group
    owner: ShareOwner = field(default_factory=ShareOwner)  # in whose share of the time the queries run

    def keep(self, rows: int, nbytes: int) -> None:
        """Add to the state that the queries keep."""
        self.kept_rows += rows
        self.kept_bytes += nbytes

    def work(self, rows: int, seconds: float, charged: float) -> None:
        """Add to the rows and seconds of times that are not complete, and to the CPU time so far."""
        self.step_rows += rows
        self.first_seconds += seconds
        self.seconds += charged

    def check(self) -> None:
        """Raise OverLimit if the queries keep or work too much together."""
        limits = self.limits
        for name, used, limit, what in (
            ("kept_rows", self.kept_rows, limits.kept_rows, "keep {:,} rows"),
            ("kept_bytes", self.kept_bytes, limits.kept_bytes, "keep {:,} bytes"),
            ("step_rows", self.step_rows, limits.step_rows, "produce {:,} rows for one time"),
            ("first_seconds", self.first_seconds, limits.first_seconds, "take {:.1f} seconds of CPU time for one time"),
        ):
            if limit is not None and used > limit:
                raise self._over(name, limit, what.format(used))
        if limits.cpu_percent is not None:
            share = self.window.exceeded(self.seconds, limits.cpu_percent)
            if share is not None:
                raise self._over("cpu_percent", limits.cpu_percent, f"use {share:.0%} of the CPU time")

    def _over(self, name: str, limit: float, what: str) -> OverLimit:
        return OverLimit(
            f"the queries of this {self.kind} {what}",
            detail=f"The limit {self.kind}_{name} is {limit:,}.",
            hint=f"End interests that are no longer read, or raise the limit: "
            f"kpg serve --max-{self.kind}-{name.replace('_', '-')} N.",
        )
