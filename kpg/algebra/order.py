"""The partial order on times.

A time is a tuple of integers (epoch, round, ...) and is compared coordinate by coordinate. Two times may be
incomparable. `join` is the least time at or after both, `meet` the greatest time at or before both: times form a
lattice. Lexicographic order (Python's `<` on tuples) is a linear extension of this order, so sorting by it is sound.
"""

from typing import TypeAlias

Time: TypeAlias = tuple[int, ...]


def less_equal(a: Time, b: Time) -> bool:
    """Return whether every coordinate of `a` is at or before that of `b`.

    >>> less_equal((1, 2), (1, 3)), less_equal((1, 2), (2, 1))
    (True, False)
    """
    if a[0] > b[0]:
        return False
    depth = len(a)
    if depth == 1:  # most times are a single epoch, and most others are in one loop
        return True
    if depth == 2 == len(b):
        return a[1] <= b[1]
    for x, y in zip(a, b, strict=True):
        if x > y:
            return False
    return True


def join(a: Time, b: Time) -> Time:
    """Return the least time at or after both.

    >>> join((1, 2), (2, 1))
    (2, 2)
    """
    return tuple([x if x >= y else y for x, y in zip(a, b, strict=True)])


def meet(a: Time, b: Time) -> Time:
    """Return the greatest time at or before both.

    >>> meet((1, 2), (2, 1))
    (1, 1)
    """
    return tuple([x if x <= y else y for x, y in zip(a, b, strict=True)])


def least(depth: int) -> Time:
    """Return the first time with `depth` coordinates.

    >>> least(2)
    (0, 0)
    """
    return (0,) * depth
