"""Summaries: how a path through a dataflow changes a time.

    Summary(keep, add, suffix)(t)  =  (t[0] + add[0], ..., t[keep-1] + add[keep-1], *suffix)

Identity, entering a loop (append a zero), leaving it (drop the round) and going round it (add one) are of this form,
and the form is closed under composition. Summaries are partially ordered as the functions are, pointwise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from kpg.algebra.order import Time


class Summary(NamedTuple):
    """A map of times: the first `len(add)` coordinates are kept and increased, `suffix` is appended."""

    add: tuple[int, ...]
    suffix: tuple[int, ...] = ()
    keeps: bool = False  # whether it is an identity, said so that it need not be found out

    def apply(self, time: Time) -> Time:
        """The earliest time at the end of the path for something at `time` at its start."""
        if self.keeps:
            return time
        return tuple([x + y for x, y in zip(time, self.add, strict=False)]) + self.suffix

    def then(self, after: Summary) -> Summary:
        """The summary of this path followed by another."""
        if self.keeps:
            return after
        if after.keeps:
            return self
        keep, keep_after = len(self.add), len(after.add)
        if keep_after <= keep:
            return Summary(tuple(x + y for x, y in zip(self.add, after.add, strict=False)), after.suffix)
        add = tuple(x + y for x, y in zip(self.add, after.add, strict=False))
        kept = tuple(x + y for x, y in zip(self.suffix, after.add[keep:], strict=False))
        return Summary(add, kept + after.suffix)

    def less_equal(self, other: Summary) -> bool:
        """Whether this path is never later than the other, whatever the time it starts from."""
        mine, theirs = self.add + self.suffix, other.add + other.suffix
        for index, (x, y) in enumerate(zip(mine, theirs, strict=True)):
            # A kept coordinate can grow without bound, so it is never surely before a constant.
            if x > y or (index < len(self.add) and index >= len(other.add)):
                return False
        return True

    @property
    def advances(self) -> bool:
        """Whether every time strictly grows: what each cycle of a dataflow must do."""
        return not self.suffix and any(self.add)


def compiled(summary: Summary) -> Callable[[Time], Time]:
    """The same map as `summary.apply`, as quick as can be: progress asks for little else."""
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


def identity(depth: int) -> Summary:
    """The path that changes nothing."""
    return Summary((0,) * depth, (), True)


def enter(depth: int) -> Summary:
    """Into a loop: from `depth` coordinates to one more, in round 0."""
    return Summary((0,) * depth, (0,))


def leave(depth: int) -> Summary:
    """Out of a loop: from `depth` coordinates to one fewer."""
    return Summary((0,) * (depth - 1))


def step_round(depth: int, by: int = 1) -> Summary:
    """Once round the innermost loop of a place with `depth` coordinates."""
    return Summary((0,) * (depth - 1) + (by,))
