"""What every variable, constant and functor holds, from the declared types of the relations they meet in.

    .decl a(x: number)   .decl b(x: symbol)
    p(x) :- a(x), b(x).       refused: x cannot be both number and symbol

Each variable starts as any kind and is narrowed by every place it stands in, until nothing changes. A whole number as
written may be any kind of number; what stays open becomes a number. Declared subtypes are checked, too: a variable must
fit all of its places in the body at once, and have a type that may stand in for that of its place in the head.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from kpg.errors import TypeMismatch
from kpg.query.ir.functors import FUNCTORS, TESTS
from kpg.query.ir.literals import (
    Atom,
    Comparison,
    Conjunction,
    Disjunction,
    Formula,
    Negation,
    Test,
    aggregates,
    atoms,
)
from kpg.query.ir.program import Fact, NamedType, Program, Relation, Rule
from kpg.query.ir.rewrites.check_names import parts
from kpg.query.ir.terms import KINDS, NUMBERS, Aggregate, Call, Constant, Kind, Term, Variable
from kpg.query.source import Position, failure

ANY: frozenset[Kind] = frozenset(KINDS)
PREFERRED: tuple[Kind, ...] = ("number", "unsigned", "float", "symbol", "bool")


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
            case Variable():
                now = self.kinds.get(term.name, ANY)
                left = now & allowed
                if not left:
                    raise self.conflict(term, now, allowed, where)
                if left != now or term.name not in self.kinds:
                    self.kinds[term.name], self.changed = left, True
                    if left != ANY:
                        self.places.setdefault(term.name, (left, where))
                return left
            case Constant():
                return within(constant_kinds(term), allowed, term.at, f"{term.value!r}", where)
            case Call():
                return self.narrow_call(term, allowed, where)
            case Aggregate():
                return self.narrow_aggregate(term, allowed, where)
        return allowed

    def narrow_call(self, term: Call, allowed: frozenset[Kind], where: str) -> frozenset[Kind]:
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

    def narrow_aggregate(self, term: Aggregate, allowed: frozenset[Kind], where: str) -> frozenset[Kind]:
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

    def conflict(self, term: Variable, now: frozenset[Kind], allowed: frozenset[Kind], where: str) -> TypeMismatch:
        """The error for a variable that would have to be two things."""
        first, place = self.places.get(term.name, (now, ""))
        return failure(
            TypeMismatch,
            f"{term.written} cannot be both {one_of(first)} and {one_of(allowed)}",
            term.at,
            detail=f"It is {one_of(first)} {place} and {one_of(allowed)} {where}.",
            hint="Convert with to_number, to_unsigned, to_float or to_string, or use another variable.",
        )


def constant_kinds(term: Constant) -> frozenset[Kind]:
    """What a constant may be."""
    if term.kind is not None:
        return frozenset({term.kind})
    return NUMBERS - {"unsigned"} if isinstance(term.value, int) and term.value < 0 else NUMBERS


def within(
    kinds: frozenset[Kind], allowed: frozenset[Kind], at: Position, what: str, where: str
) -> frozenset[Kind]:
    """What something may be and may be there; refuses if there is nothing."""
    left = kinds & allowed
    if not left:
        wrong = f"{what} is {one_of(kinds)}, not {one_of(allowed)}"
        raise failure(TypeMismatch, wrong, at, detail=f"It stands {where}.")
    return left


def one_of(kinds: Iterable[Kind]) -> str:
    """Kinds in words."""
    return " or ".join(kind for kind in PREFERRED if kind in set(kinds))


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
    settle = Settling(kinds, relations)
    heads = tuple(settle.atom(head) for head in rule.heads)
    return replace(rule, heads=heads, body=settle.formula(rule.body), kinds=tuple(sorted(kinds.items())))


@dataclass(frozen=True, slots=True)
class Settling:
    """Constants and calls given the kind of the place they stand in."""

    kinds: dict[str, Kind]
    relations: dict[str, Relation]

    def atom(self, atom: Atom) -> Atom:
        """An atom, its arguments of the kinds of its columns."""
        columns = self.relations[atom.relation].columns
        return replace(atom, arguments=tuple(
            self.term(term, column.kind) for term, column in zip(atom.arguments, columns, strict=True)
        ))  # fmt: skip

    def formula(self, formula: Formula) -> Formula:
        """A formula with all kinds settled."""
        match formula:
            case Atom():
                return self.atom(formula)
            case Comparison():
                kind = self.kind_of(formula.left) or self.kind_of(formula.right) or "number"
                return replace(formula, left=self.term(formula.left, kind), right=self.term(formula.right, kind))
            case Test():
                kinds = TESTS[formula.name]
                return replace(formula, arguments=tuple(map(self.term, formula.arguments, kinds)))
            case Negation():
                return replace(formula, formula=self.formula(formula.formula))
            case Conjunction() | Disjunction():
                return replace(formula, parts=tuple(map(self.formula, formula.parts)))
        return formula

    def kind_of(self, term: Term) -> Kind | None:
        """What a term holds, as far as it says so itself."""
        match term:
            case Variable():
                return self.kinds[term.name]
            case Constant():
                return term.kind
            case Call():
                results = {result for _, result in FUNCTORS[term.functor].alternatives}
                if len(results) == 1:
                    return next(iter(results))
                return next((kind for each in term.arguments if (kind := self.kind_of(each))), None)
            case Aggregate():
                if term.op == "mean":
                    return "float"
                return None if term.op == "count" else self.kind_of(term.target)  # type: ignore[arg-type]
        return None

    def term(self, term: Term, kind: Kind) -> Term:
        """A term of a kind."""
        match term:
            case Constant():
                return settled_constant(term, kind)
            case Call():
                functor = FUNCTORS[term.functor]
                options = [kinds for kinds, result in functor.alternatives if result == kind]
                if len(options) > 1:  # a conversion: what its argument is by itself
                    inner = self.kind_of(term.arguments[0]) or "number"
                    options = [kinds for kinds in options if kinds[0] == inner]
                arguments = (
                    self.term(each, functor.kinds_at(place, options[0])) for place, each in enumerate(term.arguments)
                )
                return replace(term, arguments=tuple(arguments), kind=kind)
            case Aggregate():
                target = term.target
                if target is not None:
                    target = self.term(target, (self.kind_of(target) or "number") if term.op == "mean" else kind)
                return replace(term, target=target, body=self.formula(term.body))
        return term


def settled_constant(term: Constant, kind: Kind) -> Constant:
    """A constant as a value of its kind; refuses what does not fit."""
    value = float(term.value) if kind == "float" else term.value
    if kind in ("number", "unsigned"):
        low = 0 if kind == "unsigned" else -(2**63)
        if not isinstance(value, int) or not low <= value < 2**63:
            hint = "Whole numbers have 63 bits here, and a sign if they are of type number."
            raise failure(TypeMismatch, f"{value} is out of the range of {kind}", term.at, hint=hint)
    return replace(term, value=value, kind=kind)


def typed_fact(fact: Fact, relation: Relation) -> Fact:
    """A fact with values of the kinds of its columns."""
    values = []
    for value, column in zip(fact.values, relation.columns, strict=True):
        written = Constant(value, None if type(value) is int else kind_of_value(value), fact.at)
        kinds = constant_kinds(written)
        within(kinds, frozenset({column.kind}), fact.at, repr(value), f"as {column.name} of {relation.name}")
        values.append(settled_constant(written, column.kind).value)
    return replace(fact, values=tuple(values))


def kind_of_value(value: object) -> Kind:
    """The kind of a value that can have one only."""
    if isinstance(value, bool):
        return "bool"
    return "float" if isinstance(value, float) else "symbol"


# --- declared types ---------------------------------------------------------------------------------------------------


def check_subtypes(rule: Rule, relations: dict[str, Relation], types: dict[str, NamedType]) -> None:
    """Refuse variables whose places have types that no value is of, and heads that could hold a wrong one."""
    found: dict[str, list[str]] = {}
    for atom, positive in atoms(rule.body):
        for term, column in zip(atom.arguments, relations[atom.relation].columns, strict=True):
            if isinstance(term, Variable) and positive:
                found.setdefault(term.name, []).append(column.type)
                if not meet(found[term.name], types):
                    types_of = " and ".join(dict.fromkeys(found[term.name]))
                    raise failure(
                        TypeMismatch,
                        f"{term.written} cannot be of the types {types_of} at once",
                        term.at,
                        hint="Neither is a subtype of the other.",
                    )
    for head in rule.heads:
        for term, column in zip(head.arguments, relations[head.relation].columns, strict=True):
            if isinstance(term, Variable) and term.name in found:
                given = meet(found[term.name], types)
                if not any(column.type in above(name, types) for name in given):
                    raise failure(
                        TypeMismatch,
                        f"{term.written} is of type {' or '.join(sorted(given))}, not {column.type}",
                        term.at,
                        detail=f"It stands as {column.name} of {head.relation}.",
                        hint=f"Declare the column as {sorted(given)[0]}, or a type above it.",
                    )


def above(name: str, types: dict[str, NamedType]) -> frozenset[str]:
    """The types that values of a type are also of."""
    return types[name].above if name in types else frozenset({name})


def meet(names: list[str], types: dict[str, NamedType]) -> set[str]:
    """The types among some, or below, that are at once of all of them."""
    candidates = set(names) | {name for name, each in types.items() if set(names) <= each.above}
    common = {name for name in candidates if all(other in above(name, types) for other in names)}
    wider = {name: above(name, types) for name in common}
    return {name for name in common if all(name in wider[other] for other in common if other in wider[name])}


