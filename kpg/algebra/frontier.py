"""Frontiers: antichains of times that bound what may still come.

A time is *beyond* a frontier when some element is at or before it. As a bound of a stream a frontier says that
every later update is at a time beyond it; it only advances. The empty frontier says that nothing comes any more.

    representative(F, t)  =  the meet, over f in F, of the join of t and f        (rep_F of the papers, appendix A)

compares exactly as `t` does with every time beyond F, and is equal for any two times that compare alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import reduce

from kpg.algebra.order import Time, join, least, less_equal, meet


def minimal(times: Iterable[Time]) -> tuple[Time, ...]:
    """The times with none other before them, sorted, each once."""
    ordered = sorted(set(times))  # a time can only be preceded by one that sorts before it
    if len(ordered) < 2:
        return tuple(ordered)
    kept = ordered[:1]
    for time in ordered:
        for other in kept:
            if less_equal(other, time):
                break
        else:
            kept.append(time)
    return tuple(kept)


class Frontier:
    """An immutable antichain; equal frontiers have equal `elements`."""

    __slots__ = ("elements",)

    elements: tuple[Time, ...]

    def __init__(self, times: Iterable[Time] = ()) -> None:
        self.elements = minimal(times)

    @classmethod
    def at(cls, time: Time) -> Frontier:
        """The frontier of all that is at or after one time."""
        made = cls.__new__(cls)
        made.elements = (time,)
        return made

    @classmethod
    def start(cls, depth: int) -> Frontier:
        """The frontier before anything has happened."""
        return cls.at(least(depth))

    def beyond(self, time: Time) -> bool:
        """Whether `time` is at or after some element: it may still be seen."""
        for element in self.elements:
            if less_equal(element, time):
                return True
        return False

    def precedes(self, other: Frontier) -> bool:
        """Whether every element of `other` is beyond this frontier: `other` has advanced at least as far."""
        mine, theirs = self.elements, other.elements
        if len(mine) == 1 == len(theirs):
            return less_equal(mine[0], theirs[0])
        if mine == theirs:
            return True
        for time in theirs:
            for element in mine:
                if less_equal(element, time):
                    break
            else:
                return False
        return True

    def meet(self, other: Frontier) -> Frontier:
        """The lower bound of two frontiers: beyond it is what is beyond either."""
        mine, theirs = self.elements, other.elements
        if not theirs or mine == theirs:
            return self
        if not mine:
            return other
        if len(mine) == 1 == len(theirs):
            if less_equal(mine[0], theirs[0]):
                return self
            if less_equal(theirs[0], mine[0]):
                return other
        return Frontier(mine + theirs)

    def join(self, other: Frontier) -> Frontier:
        """The upper bound of two frontiers: beyond it is what is beyond both."""
        if self.elements == other.elements:
            return self
        return Frontier(join(a, b) for a in self.elements for b in other.elements)

    def truncate(self, depth: int) -> Frontier:
        """The frontier of the first `depth` coordinates: what a reader outside a loop may still be asked."""
        if not self.elements or len(self.elements[0]) == depth:
            return self
        return Frontier(time[:depth] for time in self.elements)

    def extend(self, depth: int) -> Frontier:
        """The frontier seen from inside a loop: missing coordinates are zero."""
        if not self.elements or len(self.elements[0]) == depth:
            return self
        return Frontier(time + (0,) * (depth - len(time)) for time in self.elements)

    def __bool__(self) -> bool:
        return bool(self.elements)

    def __iter__(self) -> Iterator[Time]:
        return iter(self.elements)

    def __len__(self) -> int:
        return len(self.elements)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Frontier) and self.elements == other.elements)

    def __hash__(self) -> int:
        return hash(self.elements)

    def __repr__(self) -> str:
        return "{" + ", ".join(map(str, self.elements)) + "}"


CLOSED = Frontier()


def representative(frontier: Frontier, time: Time) -> Time:
    """The earliest time that no reader beyond `frontier` can tell from `time`.

    >>> representative(Frontier([(2, 0)]), (1, 9)), representative(Frontier([(0, 3), (3, 0)]), (1, 1))
    ((2, 9), (1, 1))
    """
    if not frontier:
        raise ValueError("no reader is beyond the empty frontier, so every time is like every other")
    return reduce(meet, (join(time, element) for element in frontier))
