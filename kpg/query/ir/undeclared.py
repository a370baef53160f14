"""What the columns of relations hold whose types nobody declared: those of rules, from what flows into them.

Attributes have declared kinds. A rule's column holds what the variable at its place holds in the body; this is followed
from rule to rule until nothing new is learnt. What is never learnt belongs to a rule that can never hold.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from kpg.query.ir.functors import FUNCTORS
from kpg.query.ir.literals import Comparison, atoms
from kpg.query.ir.program import AggregateReduction, Program, Relation, RelationColumn, Rule
from kpg.query.ir.rewrites.check_names import parts
from kpg.query.ir.terms import CallTerm, ConstantTerm, Kind, Term, VariableTerm

Known = dict[tuple[str, int], Kind]


def with_kinds(program: Program, declared: Mapping[str, tuple[Kind, ...]]) -> Program:
    """The program with the kinds of all columns of its relations."""
    known: Known = {(name, place): kind for name, kinds in declared.items() for place, kind in enumerate(kinds)}
    before = -1
    while len(known) != before:
        before = len(known)
        for rule in program.rules:
            learn(rule, known)
        for reduction in program.reductions:
            learn_reduction(reduction, known)
    return replace(program, relations=tuple(settled(relation, known) for relation in program.relations))


def settled(relation: Relation, known: Known) -> Relation:
    """A relation with the kinds that are known of it."""
    columns = []
    for place, column in enumerate(relation.columns):
        kind = known.get((relation.name, place), "number")
        columns.append(RelationColumn(column.name, kind, kind, column.at))
    return replace(relation, columns=tuple(columns))


def learn(rule: Rule, known: Known) -> None:
    """What the head of a rule holds, as far as its body tells."""
    kinds: dict[str, Kind] = {}
    for atom, _ in atoms(rule.body):
        for place, term in enumerate(atom.arguments):
            if isinstance(term, VariableTerm) and (atom.relation, place) in known:
                kinds.setdefault(term.name, known[atom.relation, place])
    for part in (*parts(rule.body), *parts(rule.body)):  # twice: an equation may stand before what it needs
        if isinstance(part, Comparison) and part.op == "=":
            learn_equation(part, kinds)
    for head in rule.heads:
        for place, term in enumerate(head.arguments):
            kind = kind_of(term, kinds)
            if kind is not None:
                known.setdefault((head.relation, place), kind)


def learn_equation(part: Comparison, kinds: dict[str, Kind]) -> None:
    """What a variable holds, from what it equals."""
    for this, that in ((part.left, part.right), (part.right, part.left)):
        kind = kind_of(that, kinds)
        if isinstance(this, VariableTerm) and kind is not None:
            kinds.setdefault(this.name, kind)


def kind_of(term: Term, kinds: dict[str, Kind]) -> Kind | None:
    """What a term holds, if it is known."""
    match term:
        case VariableTerm():
            return kinds.get(term.name)
        case ConstantTerm():
            return term.kind or "number"
        case CallTerm():
            results = {result for _, result in FUNCTORS[term.functor].alternatives}
            if len(results) == 1:
                return next(iter(results))
            inner = [kind_of(each, kinds) for each in term.arguments]
            firm = [
                kind for each, kind in zip(term.arguments, inner, strict=True) if not isinstance(each, ConstantTerm)
            ]
            return next((kind for kind in (*firm, *inner) if kind is not None), None)
    return None


def learn_reduction(reduction: AggregateReduction, known: Known) -> None:
    """What a reduction holds, from what it is taken of."""
    for place in range(reduction.keys):
        if (reduction.source, place) in known:
            known.setdefault((reduction.relation, place), known[reduction.source, place])
    kind: Kind | None = {"count": "number", "mean": "float"}.get(reduction.op)  # type: ignore[assignment]
    if kind is None and reduction.value is not None:
        kind = known.get((reduction.source, reduction.value))
    if kind is not None:
        known.setdefault((reduction.relation, reduction.keys), kind)
