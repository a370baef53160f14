"""The loops of a dataflow, found from its graph: hierarchical addresses become edges from what is inside to its scope.

An operator knows how deep it is, not in which loop. Operators that are at least so deep and connected through others
that are, are in one loop: the only ways in and out are `enter`, which is inside, and `leave`, which is outside. Cost:
the edges of the dataflow once for each level of loops.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from kpg.events import FIRST_CHANNEL, Connects, Operates

LOOP = FIRST_CHANNEL >> 1  # loops are numbered between operators and channels
ENTER = "enter "


class LoopScope(NamedTuple):
    """A loop: its number, what it is in, its name, and the operators directly or deeper inside."""

    entity: int
    parent: int
    name: str
    inside: tuple[int, ...]


def loops_of(dataflow: int, operators: list[Operates], channels: list[Connects], outside: int) -> list[LoopScope]:
    """The loops of a dataflow, outer before inner; times outside of loops have `outside` coordinates."""
    found: list[LoopScope] = []
    within = {each.entity: dataflow for each in operators}
    names = {each.entity: each.name for each in operators}
    deepest = max((each.depth for each in operators), default=outside)
    for depth in range(outside + 1, deepest + 1):
        members = [each.entity for each in operators if each.depth >= depth]
        for group in connected(members, channels):
            entity = dataflow + 1 + LOOP + len(found)
            entered = [names[each] for each in group if names[each].startswith(ENTER)]
            name = entered[0].removeprefix(ENTER) if entered else "loop"
            found.append(LoopScope(entity, within[group[0]], name, tuple(group)))
            within.update(dict.fromkeys(group, entity))
    return found


def connected(members: list[int], channels: list[Connects]) -> Iterator[list[int]]:
    """The operators among `members` that hang together, each group in order."""
    leader = {each: each for each in members}

    def find(each: int) -> int:
        while leader[each] != each:
            leader[each] = each = leader[leader[each]]
        return each

    for channel in channels:
        if channel.source in leader and channel.target in leader:
            first, second = sorted((find(channel.source), find(channel.target)))
            leader[second] = first
    groups: dict[int, list[int]] = {}
    for each in members:
        groups.setdefault(find(each), []).append(each)
    yield from groups.values()
