"""The strata of a program, for the oracle of Datalog: which relations must be complete before a relation is computed.

It works on programs as parsed and shares no code with kpg/query/ir.
"""

from __future__ import annotations

from collections.abc import Iterator

from kpg.query.ir.literals import Atom, Conjunction, Disjunction, Formula, Negation, aggregates
from kpg.query.ir.program import Program, Rule
from kpg.testing.special_relations import aggregates_of


def reads_of(rule: Rule) -> list[tuple[str, bool]]:
    """Return the relations that a rule reads, and whether each must be complete before."""
    columns = aggregates_of(rule)
    strict = int(any(op not in ("min", "max") for op in columns.values()))
    inside = relations_read_by_aggregates(rule.head)
    return [(name, bool(blocking)) for name, blocking in (*relations_read(rule.body, strict), *inside)]


def strata_of(program: Program) -> list[set[str]]:
    """Return the sets of relations that depend on each other, each after what it reads."""
    reach = {relation.name: {relation.name} for relation in program.relations}
    while True:
        before = sum(map(len, reach.values()))
        for rule in program.rules:
            for name, _ in reads_of(rule):
                reach[rule.head.relation] |= reach[name]
        if sum(map(len, reach.values())) == before:
            break
    for rule in program.rules:
        for name, blocking in reads_of(rule):
            if blocking and rule.head.relation in reach[name]:
                raise ValueError("not stratified")
    strata = {frozenset(other for other in names if name in reach[other]) for name, names in reach.items()}
    return [set(names) for names in sorted(strata, key=lambda names: len(reach[next(iter(names))]))]


def relations_read(formula: Formula, strict: int) -> Iterator[tuple[str, int]]:
    """Yield the relations that a formula reads, and whether each must be complete before."""
    match formula:
        case Atom():
            yield formula.relation, strict
        case Negation():
            yield from relations_read(formula.formula, 1)
        case Conjunction() | Disjunction():
            for part in formula.parts:
                yield from relations_read(part, strict)
    if not isinstance(formula, (Conjunction, Disjunction, Negation)):
        yield from relations_read_by_aggregates(formula)


def relations_read_by_aggregates(formula: Formula) -> Iterator[tuple[str, int]]:
    """Yield the relations that the aggregates of a formula read."""
    for aggregate in aggregates(formula):
        yield from relations_read(aggregate.body, 1)
