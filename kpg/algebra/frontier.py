"""Frontiers: antichains of times that bound the times of future updates.

A time is *beyond* a frontier if some element of the frontier is at or before it. If a stream has frontier F, all its
future updates are at times beyond F. Frontiers of streams only advance; the empty frontier says that the stream has
ended.

    representative(F, t)  =  the meet, over f in F, of the join of t and f        (rep_F of the papers, appendix A)

The representative compares with every time beyond F exactly as `t` does, and two times that compare alike have the same
representative. For readers of Rust: `beyond` is `Antichain::less_equal(&time)`, `precedes` is
`PartialOrder::less_equal`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache, reduce

from kpg.algebra.order import Time, join, least, less_equal, meet


def minimal(times: Iterable[Time]) -> tuple[Time, ...]:
    """Return the minimal times, sorted and distinct."""
    ordered = sorted(set(times))  # a smaller time sorts before a larger one
    if len(ordered) < 2:
        return tuple(ordered)
    antichain = ordered[:1]
    for time in ordered:
        for element in antichain:
            if less_equal(element, time):
                break
        else:
            antichain.append(time)
    return tuple(antichain)


class Frontier:
    """An immutable antichain of times. Equal frontiers have equal `elements`."""

    __slots__ = ("elements",)

    elements: tuple[Time, ...]

    def __init__(self, times: Iterable[Time] = ()) -> None:
        self.elements = minimal(times)

    @classmethod
    def at(cls, time: Time) -> Frontier:
        """Return the frontier with one element."""
        frontier = cls.__new__(cls)
        frontier.elements = (time,)
        return frontier

    @staticmethod
    @lru_cache(maxsize=64)
    def start(depth: int) -> Frontier:
        """Return the frontier that every time of `depth` coordinates is beyond."""
        return Frontier.at(least(depth))

    def beyond(self, time: Time) -> bool:
        """Return whether `time` is beyond this frontier: at or after some element."""
        elements = self.elements
        if len(elements) == 1 and len(time) == 1 == len(elements[0]):  # outside of loops, of one clock
            return elements[0][0] <= time[0]
        for element in elements:
            if less_equal(element, time):
                return True
        return False

    def precedes(self, other: Frontier) -> bool:
        """Return whether every element of `other` is beyond this frontier: `other` has advanced at least as far."""
        mine, theirs = self.elements, other.elements
        if len(mine) == 1 == len(theirs):
            first, second = mine[0], theirs[0]
            return first[0] <= second[0] if len(first) == 1 else less_equal(first, second)
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
        """Return the greatest lower bound of two frontiers: a time is beyond it iff it is beyond one of them."""
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
        """Return the least upper bound of two frontiers: a time is beyond it iff it is beyond both."""
        if self.elements == other.elements:
            return self
        return Frontier(join(a, b) for a in self.elements for b in other.elements)

    def truncate(self, depth: int) -> Frontier:
        """Return the frontier of the first `depth` coordinates: its view from outside a loop."""
        if not self.elements or len(self.elements[0]) == depth:
            return self
        return Frontier(time[:depth] for time in self.elements)

    def extend(self, depth: int) -> Frontier:
        """Return the frontier with `depth` coordinates, the new ones zero: its view from inside a loop."""
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


CLOSED = Frontier()  # the frontier of a stream that has ended


def representative(frontier: Frontier, time: Time) -> Time:
    """Return the time that stands for `time` when readers distinguish only times beyond `frontier`.

    >>> representative(Frontier([(2, 0)]), (1, 9)), representative(Frontier([(0, 3), (3, 0)]), (1, 1))
    ((2, 9), (1, 1))
    """
    if not frontier:
        raise ValueError("the empty frontier has no representatives: no reader can distinguish any two times")
    return reduce(meet, (join(time, element) for element in frontier))
