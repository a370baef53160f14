"""Check `.plan`: it gives the order of the atoms of a recursive rule, and has no other effect here.

    path(x, z) :- path(x, y), edge(y, z).
    .plan 0: (2, 1)           a version for each recursive atom, from 0; the atoms of the body, from 1

As in Soufflé, plans of rules that are not recursive are not checked.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kpg.errors import ProgramError
from kpg.query.ir.literals import Atom, Formula, aggregates, atoms
from kpg.query.ir.program import Rule
from kpg.query.ir.rewrites.expand_disjunction import alternatives
from kpg.query.ir.rewrites.stratify import strongly_connected
from kpg.query.source_text import Position, failure


@dataclass(frozen=True, slots=True)
class ExecutionPlan:
    """The plan behind a rule: (version, order of the atoms, position of the order)."""

    rule: Rule
    orders: tuple[tuple[int, tuple[int, ...], Position], ...]


def check_plans(plans: list[ExecutionPlan], rules: list[Rule]) -> None:
    """Raise ProgramError for an order that is no permutation of a body's atoms, and for a version too many."""
    if not plans:
        return
    graph: dict[str, set[str]] = {}
    for rule in rules:
        for head in rule.heads:
            graph.setdefault(head.relation, set()).update(read_relations(rule.body))
    for name in [name for names in graph.values() for name in names]:
        graph.setdefault(name, set())
    parts = strongly_connected({name: sorted(read) for name, read in graph.items()})
    components = {name: frozenset(part) for part in parts for name in part}
    for plan in (plan for plan in plans if not plan.rule.subsumes):
        recursive = frozenset().union(*(components.get(head.relation, frozenset()) for head in plan.rule.heads))
        check_plan(plan, recursive)


def read_relations(formula: Formula) -> Iterator[str]:
    """Yield the relations that a formula reads."""
    yield from (atom.relation for atom, _ in atoms(formula))
    for aggregate in aggregates(formula):
        yield from read_relations(aggregate.body)


def check_plan(plan: ExecutionPlan, component: frozenset[str]) -> None:
    """Check one plan; `component` are the relations that depend on the head and on which the head depends."""
    for body in alternatives(plan.rule.body):
        positive = [literal for literal in body if isinstance(literal, Atom)]
        versions = sum(atom.relation in component for atom in positive)
        if not versions:
            continue  # not recursive
        for version, order, at in plan.orders:
            if sorted(order) != list(range(1, len(positive) + 1)):
                what = "the order of a plan does not name each atom of the body once"
                hint = f"The atoms are numbered from 1 to {len(positive)}."
                raise failure(ProgramError, what, at, hint=hint)
            if version >= versions:
                what = f"there is no version {version} of this rule"
                hint = f"It has {versions} recursive atoms, so the versions are 0 to {versions - 1}."
                raise failure(ProgramError, what, at, hint=hint)
