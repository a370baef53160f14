"""Path summaries: how a path through a dataflow changes a time.

    Summary(add, suffix).apply(t)  =  (t[0] + add[0], ..., t[k-1] + add[k-1], *suffix)        where k = len(add)

The identity, entering a loop (append a zero), leaving it (drop the round) and its feedback (add one) have this form,
and the form is closed under composition. Summaries are ordered pointwise: s ≤ s' if s(t) ≤ s'(t) for every time t.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from kpg.algebra.order import Time


class Summary(NamedTuple):
    """A function of times: keep the first `len(add)` coordinates, add `add` to them, and append `suffix`."""

    add: tuple[int, ...]
    suffix: tuple[int, ...] = ()
    is_identity: bool = False  # stored, because progress tracking asks often

    def apply(self, time: Time) -> Time:
        """Return the earliest time at the end of the path for a message at `time` at its start."""
        if self.is_identity:
            return time
        return tuple([x + y for x, y in zip(time, self.add, strict=False)]) + self.suffix

    def then(self, after: Summary) -> Summary:
        """Return the summary of this path followed by another."""
        if self.is_identity:
            return after
        if after.is_identity:
            return self
        keep, keep_after = len(self.add), len(after.add)
        if keep_after <= keep:
            return Summary(tuple(x + y for x, y in zip(self.add, after.add, strict=False)), after.suffix)
        add = tuple(x + y for x, y in zip(self.add, after.add, strict=False))
        kept = tuple(x + y for x, y in zip(self.suffix, after.add[keep:], strict=False))
        return Summary(add, kept + after.suffix)

    def less_equal(self, other: Summary) -> bool:
        """Return whether this path is at or before the other for every time at its start."""
        mine, theirs = self.add + self.suffix, other.add + other.suffix
        for index, (x, y) in enumerate(zip(mine, theirs, strict=True)):
            # A kept coordinate has no upper bound, so it is not before a constant for every time.
            if x > y or (index < len(self.add) and index >= len(other.add)):
                return False
        return True

    @property
    def advances(self) -> bool:
        """Whether the path makes every time strictly later, as each cycle of a dataflow must."""
        return not self.suffix and any(self.add)


def as_function(summary: Summary) -> Callable[[Time], Time]:
    """Return `summary.apply` as a specialised function: progress tracking spends most of its time in it."""
    add, suffix = summary.add, summary.suffix
    match add:
        case ():
            return lambda time: suffix
        case (a,):
            return lambda time: (time[0] + a, *suffix)
        case (a, b):
            return lambda time: (time[0] + a, time[1] + b, *suffix)
        case (a, b, c):
            return lambda time: (time[0] + a, time[1] + b, time[2] + c, *suffix)
    return summary.apply


@lru_cache(maxsize=64)
def identity(depth: int) -> Summary:
    """Return the summary that changes nothing."""
    return Summary((0,) * depth, (), True)


def enter(depth: int) -> Summary:
    """Return the summary of entering a loop: append round 0 to `depth` coordinates."""
    return Summary((0,) * depth, (0,))


def leave(depth: int) -> Summary:
    """Return the summary of leaving a loop: drop the last of `depth` coordinates."""
    return Summary((0,) * (depth - 1))


def step_round(depth: int, by: int = 1) -> Summary:
    """Return the summary of the feedback of the innermost loop at `depth` coordinates: add to the round."""
    return Summary((0,) * (depth - 1) + (by,))
