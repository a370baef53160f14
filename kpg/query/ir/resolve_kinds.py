"""Resolve the kinds of constants and calls from their context, once the kinds of all variables are inferred.

An integer literal becomes a float where a float is needed. An integer that does not fit its type raises TypeMismatch.
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

PREFERRED: tuple[Kind, ...] = (
    "number",
    "unsigned",
    "float",
    "symbol",
    "bool",
)  # for a variable of several possible kinds


@dataclass(frozen=True, slots=True)
class KindResolver:
    """Resolves the formulas of one rule, given the kinds of its variables."""

    kinds: dict[str, Kind]
    relations: dict[str, Relation]

    def atom(self, atom: Atom) -> Atom:
        """Return an atom with arguments of the kinds of its columns."""
        columns = self.relations[atom.relation].columns
        return replace(atom, arguments=tuple(
            self.term(term, column.kind) for term, column in zip(atom.arguments, columns, strict=True)
        ))  # fmt: skip

    def formula(self, formula: Formula) -> Formula:
        """Return a formula with all kinds resolved."""
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
        """Return the kind of a term as far as the term itself determines it, or None."""
        match term:
            case VariableTerm():
                return self.kinds[term.name]
            case ConstantTerm():
                return term.kind
            case CallTerm():
                results = {result for _, result in FUNCTORS[term.functor].alternatives}
                if len(results) == 1:
                    return next(iter(results))
                return next((kind for argument in term.arguments if (kind := self.kind_of(argument))), None)
            case AggregateTerm():
                if term.op == "mean":
                    return "float"
                return None if term.op == "count" else self.kind_of(term.target)  # type: ignore[arg-type]
        return None

    def term(self, term: Term, kind: Kind) -> Term:
        """Return a term resolved to a kind."""
        match term:
            case ConstantTerm():
                return resolve_constant(term, kind)
            case CallTerm():
                functor = FUNCTORS[term.functor]
                options = [kinds for kinds, result in functor.alternatives if result == kind]
                if len(options) > 1:  # a conversion: its argument keeps its own kind
                    inner = self.kind_of(term.arguments[0]) or "number"
                    options = [kinds for kinds in options if kinds[0] == inner]
                arguments = (
                    self.term(argument, functor.argument_kind(position, options[0]))
                    for position, argument in enumerate(term.arguments)
                )
                return replace(term, arguments=tuple(arguments), kind=kind)
            case AggregateTerm():
                target = term.target
                if target is not None:
                    target = self.term(target, (self.kind_of(target) or "number") if term.op == "mean" else kind)
                return replace(term, target=target, body=self.formula(term.body))
        return term


def resolve_constant(term: ConstantTerm, kind: Kind) -> ConstantTerm:
    """Return a constant as a value of a kind; raise TypeMismatch if it does not fit."""
    value = float(term.value) if kind == "float" else term.value
    if kind in ("number", "unsigned"):
        low = 0 if kind == "unsigned" else -(2**63)
        if not isinstance(value, int) or not low <= value < 2**63:
            hint = f"The range is {low:,} to {2**63 - 1:,}."
            raise failure(TypeMismatch, f"{value} is out of the range of {kind}", term.at, hint=hint)
    return replace(term, value=value, kind=kind)


def resolve_fact(fact: Fact, relation: Relation) -> Fact:
    """Return a fact with values of the kinds of its columns."""
    if all(is_of_kind(value, column.kind) for value, column in zip(fact.values, relation.columns, strict=True)):
        return fact
    values = []
    for value, column in zip(fact.values, relation.columns, strict=True):
        constant = ConstantTerm(value, None if type(value) is int else kind_of_value(value), fact.at)
        kinds = constant_kinds(constant)
        common_kinds(kinds, frozenset({column.kind}), fact.at, repr(value), f"as {column.name} of {relation.name}")
        values.append(resolve_constant(constant, column.kind).value)
    return replace(fact, values=tuple(values))


def is_of_kind(value: object, kind: Kind) -> bool:
    """Return whether a value is a symbol or number of this kind without conversion."""
    if kind == "symbol":
        return type(value) is str
    return kind == "number" and type(value) is int and -(2**63) <= value < 2**63


def kind_of_value(value: object) -> Kind:
    """Return the kind of a value that is not an integer."""
    if isinstance(value, bool):
        return "bool"
    return "float" if isinstance(value, float) else "symbol"


def constant_kinds(term: ConstantTerm) -> frozenset[Kind]:
    """Return the kinds that a constant may have."""
    if term.kind is not None:
        return frozenset({term.kind})
    return NUMBERS - {"unsigned"} if isinstance(term.value, int) and term.value < 0 else NUMBERS


def common_kinds(
    kinds: frozenset[Kind], allowed: frozenset[Kind], at: Position, what: str, where: str
) -> frozenset[Kind]:
    """Return the kinds of `what` that are allowed at its position; raise TypeMismatch if there are none."""
    common = kinds & allowed
    if not common:
        message = f"{what} is {kinds_in_words(kinds)}, not {kinds_in_words(allowed)}"
        hint = "Convert with to_number, to_unsigned, to_float or to_string."
        raise failure(TypeMismatch, message, at, detail=f"It is used {where}.", hint=hint)
    return common


def kinds_in_words(kinds: Iterable[Kind]) -> str:
    """Return kinds as text: "number or float"."""
    return " or ".join(kind for kind in PREFERRED if kind in set(kinds))
