"""Constants and calls given the kind of the place they stand in, once the kinds of all variables are known.

A whole number as written becomes a float where a float is wanted, and is refused where it does not fit.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from kpg.errors import TypeMismatch
from kpg.query.ir.functors import FUNCTORS, TESTS
from kpg.query.ir.literals import Atom, Comparison, Conjunction, Disjunction, Formula, Negation, Test
from kpg.query.ir.program import Fact, Relation
from kpg.query.ir.terms import NUMBERS, AggregateTerm, CallTerm, ConstantTerm, Kind, Term, VariableTerm
from kpg.query.source_text import Position, failure

PREFERRED: tuple[Kind, ...] = ("number", "unsigned", "float", "symbol", "bool")


@dataclass(frozen=True, slots=True)
class KindResolver:
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
            case VariableTerm():
                return self.kinds[term.name]
            case ConstantTerm():
                return term.kind
            case CallTerm():
                results = {result for _, result in FUNCTORS[term.functor].alternatives}
                if len(results) == 1:
                    return next(iter(results))
                return next((kind for each in term.arguments if (kind := self.kind_of(each))), None)
            case AggregateTerm():
                if term.op == "mean":
                    return "float"
                return None if term.op == "count" else self.kind_of(term.target)  # type: ignore[arg-type]
        return None

    def term(self, term: Term, kind: Kind) -> Term:
        """A term of a kind."""
        match term:
            case ConstantTerm():
                return settled_constant(term, kind)
            case CallTerm():
                functor = FUNCTORS[term.functor]
                options = [kinds for kinds, result in functor.alternatives if result == kind]
                if len(options) > 1:  # a conversion: what its argument is by itself
                    inner = self.kind_of(term.arguments[0]) or "number"
                    options = [kinds for kinds in options if kinds[0] == inner]
                arguments = (
                    self.term(each, functor.kinds_at(place, options[0])) for place, each in enumerate(term.arguments)
                )
                return replace(term, arguments=tuple(arguments), kind=kind)
            case AggregateTerm():
                target = term.target
                if target is not None:
                    target = self.term(target, (self.kind_of(target) or "number") if term.op == "mean" else kind)
                return replace(term, target=target, body=self.formula(term.body))
        return term


def settled_constant(term: ConstantTerm, kind: Kind) -> ConstantTerm:
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
    if all(is_plain(value, column.kind) for value, column in zip(fact.values, relation.columns, strict=True)):
        return fact
    values = []
    for value, column in zip(fact.values, relation.columns, strict=True):
        written = ConstantTerm(value, None if type(value) is int else kind_of_value(value), fact.at)
        kinds = constant_kinds(written)
        within(kinds, frozenset({column.kind}), fact.at, repr(value), f"as {column.name} of {relation.name}")
        values.append(settled_constant(written, column.kind).value)
    return replace(fact, values=tuple(values))


def is_plain(value: object, kind: Kind) -> bool:
    """Whether a value is of a kind as it is."""
    if kind == "symbol":
        return type(value) is str
    return kind == "number" and type(value) is int and -(2**63) <= value < 2**63


def kind_of_value(value: object) -> Kind:
    """The kind of a value that can have one only."""
    if isinstance(value, bool):
        return "bool"
    return "float" if isinstance(value, float) else "symbol"


def constant_kinds(term: ConstantTerm) -> frozenset[Kind]:
    """What a constant may be."""
    if term.kind is not None:
        return frozenset({term.kind})
    return NUMBERS - {"unsigned"} if isinstance(term.value, int) and term.value < 0 else NUMBERS


def within(kinds: frozenset[Kind], allowed: frozenset[Kind], at: Position, what: str, where: str) -> frozenset[Kind]:
    """What something may be and may be there; refuses if there is nothing."""
    left = kinds & allowed
    if not left:
        wrong = f"{what} is {one_of(kinds)}, not {one_of(allowed)}"
        raise failure(TypeMismatch, wrong, at, detail=f"It stands {where}.")
    return left


def one_of(kinds: Iterable[Kind]) -> str:
    """Kinds in words."""
    return " or ".join(kind for kind in PREFERRED if kind in set(kinds))
