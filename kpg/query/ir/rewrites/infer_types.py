"""What every variable, constant and functor holds, from the declared types of the relations they meet in.

    .decl a(x: number)   .decl b(x: symbol)
    p(x) :- a(x), b(x).       refused: x cannot be both number and symbol

Each variable starts as any kind and is narrowed by every place it stands in, until nothing changes. A whole number as
written may be any kind of number; what stays open becomes a number. Declared subtypes are checked, too: a variable must
fit all of its places in the body at once, and have a type that may stand in for that of its place in the head.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from kpg.errors import TypeMismatch
from kpg.query.ir.functors import FUNCTORS, TESTS
from kpg.query.ir.literals import (
    Comparison,
    Formula,
    Test,
    aggregates,
    atoms,
)
from kpg.query.ir.program import NamedType, Program, Relation, Rule
from kpg.query.ir.resolve_kinds import PREFERRED, KindResolver, constant_kinds, one_of, typed_fact, within
from kpg.query.ir.rewrites.check_names import parts
from kpg.query.ir.subtypes import check_subtypes
from kpg.query.ir.terms import KINDS, NUMBERS, AggregateTerm, CallTerm, ConstantTerm, Kind, Term, VariableTerm
from kpg.query.source_text import failure

ANY: frozenset[Kind] = frozenset(KINDS)


def infer_types(program: Program) -> Program:
    """The program with the kinds of all variables, constants and calls."""
    relations, types = program.by_name(), {each.name: each for each in program.types}
    rules = tuple(typed(rule, relations, types) for rule in program.rules)
    facts = tuple(typed_fact(fact, relations[fact.relation]) for fact in program.facts)
    return replace(program, rules=rules, facts=facts)


@dataclass(slots=True)
class Inference:
    """What the variables of one rule may still be."""

    kinds: dict[str, frozenset[Kind]] = field(default_factory=dict)
    places: dict[str, tuple[frozenset[Kind], str]] = field(default_factory=dict)  # what first narrowed each, and where
    changed: bool = True

    def narrow(self, term: Term, allowed: frozenset[Kind], where: str) -> frozenset[Kind]:
        """What a term may be, given where it stands; refuses what it cannot be."""
        match term:
            case VariableTerm():
                now = self.kinds.get(term.name, ANY)
                left = now & allowed
                if not left:
                    raise self.conflict(term, now, allowed, where)
                if left != now or term.name not in self.kinds:
                    self.kinds[term.name], self.changed = left, True
                    if left != ANY:
                        self.places.setdefault(term.name, (left, where))
                return left
            case ConstantTerm():
                return within(constant_kinds(term), allowed, term.at, f"{term.value!r}", where)
            case CallTerm():
                return self.narrow_call(term, allowed, where)
            case AggregateTerm():
                return self.narrow_aggregate(term, allowed, where)
        return allowed

    def narrow_call(self, term: CallTerm, allowed: frozenset[Kind], where: str) -> frozenset[Kind]:
        """What a call may give, each argument narrowed to what fits."""
        functor = FUNCTORS[term.functor]
        options = functor.alternatives
        inside = f"as an argument of {term.functor}"
        for place, argument in enumerate(term.arguments):
            fits = frozenset(functor.kinds_at(place, kinds) for kinds, result in options if result in allowed)
            every = frozenset(functor.kinds_at(place, kinds) for kinds, _ in options)
            possible = self.narrow(argument, fits or every, inside)
            options = tuple(option for option in options if functor.kinds_at(place, option[0]) in possible)
        results = frozenset(result for _, result in options)
        left = within(results, allowed, term.at, f"what {term.functor} gives", where)
        options = tuple(option for option in options if option[1] in left)
        for place, argument in enumerate(term.arguments):
            self.narrow(argument, frozenset(functor.kinds_at(place, kinds) for kinds, _ in options), inside)
        return left

    def narrow_aggregate(self, term: AggregateTerm, allowed: frozenset[Kind], where: str) -> frozenset[Kind]:
        """What an aggregate may give, and what it is taken of."""
        self.visit(term.body)
        if term.op == "count":
            return within(frozenset({"number", "unsigned"}), allowed, term.at, "a count", where)
        assert term.target is not None
        of = f"as what the {term.op} is taken of"
        numeric = term.op in ("sum", "mean")
        possible = self.narrow(term.target, NUMBERS if numeric else ANY - {"bool"}, of)
        if term.op == "mean":
            return within(frozenset({"float"}), allowed, term.at, "a mean", where)
        left = within(possible, allowed, term.at, f"the {term.op}", where)
        return self.narrow(term.target, left, of)

    def visit(self, formula: Formula) -> None:
        """Narrow every term of a formula by its place."""
        for part in parts(formula):
            if isinstance(part, Comparison):
                both = self.narrow(part.left, ANY, f"beside {part.op}")
                both = self.narrow(part.right, both, f"beside {part.op}")
                self.narrow(part.left, both, f"beside {part.op}")
            elif isinstance(part, Test):
                for term, kind in zip(part.arguments, TESTS[part.name], strict=True):
                    self.narrow(term, frozenset({kind}), f"as an argument of {part.name}")

    def visit_atoms(self, formula: Formula, relations: dict[str, Relation]) -> None:
        """Narrow the arguments of atoms by the columns they stand for."""
        for atom, _ in atoms(formula):
            for term, column in zip(atom.arguments, relations[atom.relation].columns, strict=True):
                self.narrow(term, frozenset({column.kind}), f"as {column.name} of {atom.relation}")
        for aggregate in aggregates(formula):
            self.visit_atoms(aggregate.body, relations)

    def conflict(self, term: VariableTerm, now: frozenset[Kind], allowed: frozenset[Kind], where: str) -> TypeMismatch:
        """The error for a variable that would have to be two things."""
        first, place = self.places.get(term.name, (now, ""))
        return failure(
            TypeMismatch,
            f"{term.written} cannot be both {one_of(first)} and {one_of(allowed)}",
            term.at,
            detail=f"It is {one_of(first)} {place} and {one_of(allowed)} {where}.",
            hint="Convert with to_number, to_unsigned, to_float or to_string, or use another variable.",
        )


def typed(rule: Rule, relations: dict[str, Relation], types: dict[str, NamedType]) -> Rule:
    """A rule with its kinds."""
    inference = Inference()
    while True:
        while inference.changed:
            inference.changed = False
            for part in (*rule.heads, rule.body):
                inference.visit_atoms(part, relations)
                inference.visit(part)
        unsettled = [name for name, kinds in inference.kinds.items() if len(kinds) > 1]
        if not unsettled:
            break
        name = unsettled[0]
        inference.kinds[name] = frozenset([next(kind for kind in PREFERRED if kind in inference.kinds[name])])
        inference.changed = True
    kinds = {name: next(iter(found)) for name, found in inference.kinds.items()}
    check_subtypes(rule, relations, types)
    settle = KindResolver(kinds, relations)
    heads = tuple(settle.atom(head) for head in rule.heads)
    return replace(rule, heads=heads, body=settle.formula(rule.body), kinds=tuple(sorted(kinds.items())))
