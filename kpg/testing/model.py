"""The property that every operator must satisfy. The check recomputes the output from scratch at every time.

    an operator is right  iff  accumulate(operator(updates), t) == denotation(accumulate(updates, t))  for all t

"All t" are the times of input and output closed under join. `kpg.testing.denotations` holds the denotations of the
operators; this module holds the property itself. Cost: quadratic and worse, for inputs of a few dozen updates.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from typing import Any, TypeAlias, TypeVar

from kpg.algebra.frontier import Frontier
from kpg.algebra.order import Time, join, less_equal

Data = TypeVar("Data", bound=Hashable)
Update: TypeAlias = tuple[Data, Time, int]
Collection: TypeAlias = dict[Data, int]


OVERFLOW = "does not fit 64 bits"  # in a denotation, stands for such a value: the engine has an error, and no row
MAX_COUNT = 2**63 - 1


def without_errors(rows: Collection[Any]) -> Collection[Any]:
    """Return the rows that the engine has where an operator's denotation is `rows`."""
    return {row: count for row, count in rows.items() if not (isinstance(row, tuple) and OVERFLOW in row)}


def is_readable(rows: Collection[Any]) -> bool:
    """Return whether a collection can be read as a table with counts: no row is an error, and each count fits."""
    return without_errors(rows) == rows and all(abs(count) <= MAX_COUNT for count in rows.values())


def accumulate(updates: Iterable[Update[Data]], at: Time) -> Collection[Data]:
    """Return the collection at time `at`: the sum of the diffs of all updates at or before it.

    >>> accumulate([("a", (0,), 1), ("b", (1,), 1), ("a", (2,), -1)], (1,))
    {'a': 1, 'b': 1}
    """
    total: Counter[Data] = Counter()
    for data, time, diff in updates:
        if less_equal(time, at):
            total[data] += diff
    return {data: diff for data, diff in total.items() if diff}


def times_to_check(*streams: Iterable[Update[Any]]) -> set[Time]:
    """Return all times that occur, closed under join: the only times at which an output can change.

    Joins of two times are enough for two coordinates; with more, joins of three or more can matter.
    """
    closed: set[Time] = set()
    for time in {time for updates in streams for _, time, _ in updates}:
        closed |= {join(time, other) for other in closed} | {time}  # still closed: joins of joins are among these
    return closed


def assert_agrees(
    output: Iterable[Update[Any]],
    denotation: Callable[..., Collection[Any]],
    *inputs: Iterable[Update[Any]],
    since: Frontier | None = None,
) -> None:
    """Assert that the output equals the denotation of the inputs at every time (beyond `since`, if given)."""
    output, streams = list(output), [list(updates) for updates in inputs]
    for at in sorted(times_to_check(output, *streams)):
        if since is None or since.beyond(at):
            want = without_errors(denotation(*(accumulate(updates, at) for updates in streams)))
            have = accumulate(output, at)
            assert have == want, f"at {at}: have {have}, want {want}"


def assert_adequate(
    operator: Callable[..., Iterable[Update[Any]]],
    denotation: Callable[..., Collection[Any]],
    *inputs: Iterable[Update[Any]],
) -> None:
    """Assert that the operator is right on these inputs: run it, then `assert_agrees`."""
    streams = [list(updates) for updates in inputs]
    assert_agrees(operator(*streams), denotation, *streams)


def consolidated(updates: Iterable[Update[Data]]) -> list[Update[Data]]:
    """Return the updates with each (data, time) once, none with diff zero, sorted by time then data."""
    total: Counter[tuple[Time, Data]] = Counter()
    for data, time, diff in updates:
        total[time, data] += diff
    return [(data, time, diff) for (time, data), diff in sorted(total.items()) if diff]
