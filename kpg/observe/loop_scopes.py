"""The loops of a dataflow, recovered from its graph.

An operator records its loop depth, but not its loop. Two operators are in the same loop of depth d if a path connects
them through operators of depth at least d: the only ways into and out of a loop are `enter`, which is inside, and
`leave`, which is outside.
Cost: one visit of the dataflow's channels per level of loops.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from kpg.events import FIRST_CHANNEL, Connects, Operates

FIRST_LOOP = FIRST_CHANNEL >> 1  # loops are numbered between operators and channels
ENTER_PREFIX = "enter "


class LoopScope(NamedTuple):
    """A loop: its entity, the entity that contains it, its name, and all operators inside, nested loops included."""

    entity: int
    parent: int
    name: str
    inside: tuple[int, ...]


def loops_of(dataflow: int, operators: list[Operates], channels: list[Connects], outside: int) -> list[LoopScope]:
    """Return the loops of a dataflow, outer before inner; times outside of loops have `outside` coordinates."""
    loops: list[LoopScope] = []
    scope = {operator.entity: dataflow for operator in operators}
    names = {operator.entity: operator.name for operator in operators}
    deepest = max((operator.depth for operator in operators), default=outside)
    for depth in range(outside + 1, deepest + 1):
        members = [operator.entity for operator in operators if operator.depth >= depth]
        for group in connected(members, channels):
            entity = dataflow + 1 + FIRST_LOOP + len(loops)
            entered = [names[member] for member in group if names[member].startswith(ENTER_PREFIX)]
            name = entered[0].removeprefix(ENTER_PREFIX) if entered else "loop"
            loops.append(LoopScope(entity, scope[group[0]], name, tuple(group)))
            scope.update(dict.fromkeys(group, entity))
    return loops


def connected(members: list[int], channels: list[Connects]) -> Iterator[list[int]]:
    """Yield the connected components of the graph restricted to `members`, each in the order of `members`."""
    leader = {member: member for member in members}

    def find(member: int) -> int:
        while leader[member] != member:
            leader[member] = member = leader[leader[member]]
        return member

    for channel in channels:
        if channel.source in leader and channel.target in leader:
            first, second = sorted((find(channel.source), find(channel.target)))
            leader[second] = first
    groups: dict[int, list[int]] = {}
    for member in members:
        groups.setdefault(find(member), []).append(member)
    yield from groups.values()
