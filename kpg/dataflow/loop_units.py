"""The loops of a dataflow: which operators belong together, and an order in which each loop is one unit.

    loops_of(operators)         the operators of each loop, from those that enter it to those that leave it
    in_order(operators, loops)  all operators; each after those it reads, and those of a loop without others in between

A loop with the loops inside it is one. Cost: linear in the operators and channels.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from kpg.dataflow.operator import Operator


def loops_of(operators: Sequence[Operator]) -> list[list[Operator]]:
    """Return the operators of each loop, in their order."""
    inner = {operator for operator in operators if operator.depth > 1}
    parent: dict[Operator, Operator] = {operator: operator for operator in inner}

    def root(operator: Operator) -> Operator:
        while parent[operator] is not operator:
            parent[operator] = operator = parent[parent[operator]]
        return operator

    for operator in inner:
        for channels in operator.channels:
            for channel in channels:
                parent.setdefault(channel.target, channel.target)  # it may leave the loop
                parent[root(channel.target)] = root(operator)
    loops: dict[Operator, list[Operator]] = {}
    for operator in operators:
        if operator in parent:
            loops.setdefault(root(operator), []).append(operator)
    return list(loops.values())


def in_order(operators: Sequence[Operator], loops: Sequence[Sequence[Operator]]) -> list[Operator]:
    """Return the operators in an order in which those of each loop are together."""
    units: dict[Operator, int] = {operator: operator.index for operator in operators}
    members: dict[int, Sequence[Operator]] = {operator.index: (operator,) for operator in operators}
    for loop in loops:
        for operator in loop:
            units[operator] = loop[0].index
            members.pop(operator.index)
        members[loop[0].index] = loop
    sources: dict[int, set[int]] = {unit: set() for unit in members}
    targets: dict[int, set[int]] = {unit: set() for unit in members}
    for operator in operators:
        for channels in operator.channels:
            for channel in channels:
                source, target = units[operator], units[channel.target]
                if source != target:
                    sources[target].add(source)
                    targets[source].add(target)
    ready = [unit for unit, before in sources.items() if not before]
    heapq.heapify(ready)
    ordered: list[Operator] = []
    while ready:
        unit = heapq.heappop(ready)
        ordered += members[unit]
        for target in targets[unit]:
            sources[target].discard(unit)
            if not sources[target]:
                heapq.heappush(ready, target)
    assert len(ordered) == len(operators), "operators outside of loops read each other in a circle"
    return ordered
