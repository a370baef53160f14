"""Order the relations into strata: the strongly connected components of the dependency graph, dependencies first.

Relations that depend on each other form one recursive stratum. Negations and aggregates need their complete input, so
none may be part of a cycle: such a program raises NotStratified with the cycle. The seed of an aggregate does not count
as a dependency here: it selects groups and does not change their contents.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from kpg.errors import NotStratified
from kpg.query.ir.literals import atoms
from kpg.query.ir.program import Program, Stratum
from kpg.query.source_text import Position, failure

SEED = ".seed"  # suffix of the relations that hold the groups an aggregate is asked for: see lift_aggregates


@dataclass(frozen=True, slots=True)
class Dependency:
    """An edge of the dependency graph: `reader` is computed from `read`."""

    reader: str
    read: str
    blocking: str  # "" for a positive atom; else how the reader uses all rows of `read`: "negates", ...
    at: Position
    monotone: bool = False  # may be part of a cycle although it is blocking


def stratify(program: Program) -> Program:
    """Return the program with its strata, each after all that it reads."""
    edges = dependencies(program)
    graph: dict[str, list[str]] = {relation.name: [] for relation in program.relations}
    for edge in edges:
        graph[edge.reader].append(edge.read)
    components = strongly_connected(graph)
    check_stratified(edges, graph, program)
    numbers = {name: number for number, component in enumerate(components) for name in component}
    recursive = {edge.reader for edge in edges if numbers[edge.reader] == numbers[edge.read]}
    strata = tuple(Stratum(tuple(sorted(names)), not recursive.isdisjoint(names)) for names in components)
    return replace(program, strata=strata)


def check_stratified(edges: list[Dependency], graph: dict[str, list[str]], program: Program) -> None:
    """Raise NotStratified if a negation or an aggregate is part of a cycle."""
    without_seeds = {name: [] if name.endswith(SEED) else read for name, read in graph.items()}
    numbers = {name: number for number, names in enumerate(strongly_connected(without_seeds)) for name in names}
    for edge in edges:
        if edge.blocking and not edge.monotone and numbers[edge.reader] == numbers[edge.read]:
            raise not_stratified(edge, without_seeds, program)


def dependencies(program: Program) -> list[Dependency]:
    """Return the edges of the dependency graph."""
    edges = [
        Dependency(reduction.relation, reduction.source, blocking_words(reduction.op), reduction.at, reduction.monotone)
        for reduction in program.reductions
    ]
    subsumed = {relation.name for relation in program.relations if relation.kind == "subsumed"}
    parts = {relation.name for relation in program.relations if relation.generated} & subsumed
    edges += [
        Dependency(
            rule.head.relation, atom.relation, "" if positive else "negates", atom.at,
            monotone=rule.head.relation in subsumed and atom.relation in parts,
        )
        for rule in program.rules
        for atom, positive in atoms(rule.body)
    ]  # fmt: skip
    return edges


def blocking_words(op: str) -> str:
    """Return how a reduction uses all rows of its source."""
    return "numbers the rows of" if op == "number" else f"takes the {op} of"


def not_stratified(edge: Dependency, graph: dict[str, list[str]], program: Program) -> NotStratified:
    """Return the error for a cycle through a negation or an aggregate."""
    generated = {relation.name for relation in program.relations if relation.generated}
    names = [name for name in path(graph, edge.read, edge.reader) if name not in generated]
    cycle = [name for number, name in enumerate(names) if name not in names[:number]]
    shown = " -> ".join([*cycle, cycle[0]]) if cycle else edge.read
    return failure(
        NotStratified,
        f"{cycle[-1] if cycle else edge.reader} {edge.blocking} something that depends on it",
        edge.at,
        detail=f"The cycle is {shown}.",
        hint="Compute the negated or aggregated relation by rules that do not depend on the result.",
    )


def path(graph: dict[str, list[str]], start: str, end: str) -> list[str]:
    """Return the nodes of a shortest path from `start` to `end`."""
    previous: dict[str, str] = {}
    queue = [start]
    for name in queue:
        for other in graph[name]:
            if other not in previous and other != start:
                previous[other] = name
                queue.append(other)
    nodes = [end]
    while nodes[-1] != start:
        nodes.append(previous[nodes[-1]])
    return nodes[::-1]


def strongly_connected(graph: dict[str, list[str]]) -> list[list[str]]:
    """Return the strongly connected components of a graph, each after all that it leads to.

    Tarjan's algorithm without recursion: linear in nodes and edges.
    """
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
    """Pop the component with this root off the stack."""
    component = []
    while True:
        name = stack.pop()
        on_stack.discard(name)
        component.append(name)
        if name == root:
            return component
