"""Relations in the order in which they can be computed: the strongly connected components of who reads whom.

Relations that depend on each other form one recursive stratum. Negation and aggregates need their whole input first,
so none may lead from a relation back to itself: such a program is refused, and the cycle shown. The seed of an
aggregate does not count: it says which groups are asked for, and not what is in them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from kpg.errors import NotStratified
from kpg.query.ir.literals import atoms
from kpg.query.ir.program import Program, Stratum
from kpg.query.source_text import Position, failure

SEED = ".seed"  # how the names of relations end that say which groups are asked for


@dataclass(frozen=True, slots=True)
class RelationReads:
    """That one relation is computed from another, where, and whether it must be complete before."""

    reader: str
    read: str
    how: str  # "" for a positive atom, else what needs the whole of it
    at: Position


def stratify(program: Program) -> Program:
    """The program with its strata, each after all it reads."""
    edges = dependencies(program)
    graph: dict[str, list[str]] = {relation.name: [] for relation in program.relations}
    for edge in edges:
        graph[edge.reader].append(edge.read)
    components = strongly_connected(graph)
    check_stratified(edges, graph, program)
    place = {name: number for number, component in enumerate(components) for name in component}
    looping = {edge.reader for edge in edges if place[edge.reader] == place[edge.read]}
    strata = tuple(Stratum(tuple(sorted(part)), not looping.isdisjoint(part)) for part in components)
    return replace(program, strata=strata)


def check_stratified(edges: list[RelationReads], graph: dict[str, list[str]], program: Program) -> None:
    """Refuse a negation or an aggregate of something that depends on it."""
    counted = {name: [] if name.endswith(SEED) else read for name, read in graph.items()}
    place = {name: number for number, part in enumerate(strongly_connected(counted)) for name in part}
    for edge in edges:
        if edge.how and place[edge.reader] == place[edge.read]:
            raise not_stratified(edge, counted, program)


def dependencies(program: Program) -> list[RelationReads]:
    """Who reads whom."""
    found = [
        RelationReads(each.relation, each.source, f"takes the {each.op} of", each.at) for each in program.reductions
    ]
    found += [
        RelationReads(rule.head.relation, atom.relation, "" if positive else "negates", atom.at)
        for rule in program.rules
        for atom, positive in atoms(rule.body)
    ]
    return found


def not_stratified(edge: RelationReads, graph: dict[str, list[str]], program: Program) -> NotStratified:
    """The error for a cycle through a negation or an aggregate."""
    made = {relation.name for relation in program.relations if relation.made}
    way = [name for name in path(graph, edge.read, edge.reader) if name not in made]
    cycle = [name for number, name in enumerate(way) if name not in way[:number]]
    shown = " -> ".join([*cycle, cycle[0]]) if cycle else edge.read
    return failure(
        NotStratified,
        f"{cycle[-1] if cycle else edge.reader} {edge.how} something that depends on it",
        edge.at,
        detail=f"The cycle is {shown}.",
        hint="Compute what is negated or aggregated by rules that do not need the result.",
    )


def path(graph: dict[str, list[str]], start: str, end: str) -> list[str]:
    """The relations from one to another, along who reads whom."""
    before: dict[str, str] = {}
    queue = [start]
    for name in queue:
        for other in graph[name]:
            if other not in before and other != start:
                before[other] = name
                queue.append(other)
    way = [end]
    while way[-1] != start:
        way.append(before[way[-1]])
    return way[::-1]


def strongly_connected(graph: dict[str, list[str]]) -> list[list[str]]:
    """The components of a graph, each after all that it leads to (Tarjan, without recursion)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    on_stack: set[str] = set()
    components: list[list[str]] = []
    for root in graph:
        if root in index:
            continue
        work = [(root, iter(graph[root]))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        while work:
            node, children = work[-1]
            child = next(children, None)
            if child is None:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    components.append(pop_component(stack, on_stack, node))
            elif child not in index:
                index[child] = low[child] = len(index)
                stack.append(child)
                on_stack.add(child)
                work.append((child, iter(graph[child])))
            elif child in on_stack:
                low[node] = min(low[node], index[child])
    return components


def pop_component(stack: list[str], on_stack: set[str], root: str) -> list[str]:
    """The component whose root was found, taken off the stack."""
    component = []
    while True:
        name = stack.pop()
        on_stack.discard(name)
        component.append(name)
        if name == root:
            return component
