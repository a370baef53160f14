"""Resolve the kinds of constants and calls from their context, once the kinds of all variables are inferred.

An integer literal becomes a float where a float is needed. An integer that does not fit its type raises TypeMismatch.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from kpg.errors import TypeMismatch
from kpg.query.ir.constructors import Signatures, is_constructor
from kpg.query.ir.functors import TESTS, Functor
from kpg.query.ir.literals import Atom, Comparison, Conjunction, Disjunction, Formula, Negation, Test
from kpg.query.ir.program import Fact, Relation, RelationColumn
from kpg.query.ir.terms import KINDS, NUMBERS, AggregateTerm, CallTerm, ConstantTerm, Kind, Term, VariableTerm
from kpg.query.source_text import Position, failure

# Kinds of which constants are written as strings, decimals without their digits.
WRITTEN_AS_TEXT = ("date", "timestamp", "timestamp_ntz", "time", "interval", "decimal", "uuid", "jsonb")


@dataclass(frozen=True, slots=True)
class KindResolver:
    """Resolves the formulas of one rule, given the kinds of its variables."""

    kinds: dict[str, Kind]
    relations: dict[str, Relation]
    signatures: Signatures

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
                kind = self.kind_of(formula.left) or self.kind_of(formula.right) or self.undetermined(formula)
                return replace(formula, left=self.term(formula.left, kind), right=self.term(formula.right, kind))
            case Test():
                kinds = TESTS[formula.name]
                return replace(formula, arguments=tuple(map(self.term, formula.arguments, kinds)))
            case Negation():
                return replace(formula, formula=self.formula(formula.formula))
            case Conjunction() | Disjunction():
                return replace(formula, parts=tuple(map(self.formula, formula.parts)))
        return formula

    def undetermined(self, formula: Comparison) -> Kind:
        """Return the kind of two sides that nothing determines: numbers; raise TypeMismatch for records."""
        if is_constructor(formula.left) or is_constructor(formula.right):
            hint = "Name its type, as in as([1, 2], Pair)."
            raise failure(TypeMismatch, "the type of the record is not determined", formula.at, hint=hint)
        return "number"

    def kind_of(self, term: Term) -> Kind | None:
        """Return the kind of a term as far as the term itself determines it, or None."""
        match term:
            case VariableTerm():
                return self.kinds[term.name]
            case ConstantTerm():
                return term.kind
            case CallTerm():
                results = {result for _, result in self.signature(term).alternatives}
                if len(results) == 1:
                    return next(iter(results))
                if is_constructor(term):
                    return self.constructed_kind(term)
                return next((kind for argument in term.arguments if (kind := self.kind_of(argument))), None)
            case AggregateTerm():
                if term.op == "mean":
                    return "float"
                return None if term.op == "count" else self.kind_of(term.target)  # type: ignore[arg-type]
        return None

    def signature(self, call: CallTerm) -> Functor:
        """Return the signature of a call."""
        functor = self.signatures.of(call)
        assert functor is not None, "check_names has passed"
        return functor

    def constructed_kind(self, call: CallTerm) -> Kind | None:
        """Return the only type of which a constructor can have fields of these kinds, or None if there are several."""
        kinds = [self.kind_of(argument) for argument in call.arguments]
        fitting = [
            result
            for fields, result in self.signature(call).alternatives
            if all(kind is None or kind == field for kind, field in zip(kinds, fields, strict=True))
        ]
        return fitting[0] if len(fitting) == 1 else None

    def term(self, term: Term, kind: Kind) -> Term:
        """Return a term resolved to a kind."""
        match term:
            case ConstantTerm():
                return resolve_constant(term, kind)
            case CallTerm():
                functor = self.signature(term)
                options = [kinds for kinds, result in functor.alternatives if result == kind]
                if len(options) > 1:  # a conversion: its argument keeps its own kind
                    undetermined = kind if is_constructor(term.arguments[0]) else "number"
                    inner = self.kind_of(term.arguments[0]) or undetermined
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
    base = kind.removesuffix("?")
    value = float(term.value) if base == "float" else term.value
    if base in ("number", "unsigned"):
        low, high = (0, 2**64 - 1) if base == "unsigned" else (-(2**63), 2**63 - 1)
        if not isinstance(value, int) or not low <= value <= high:
            hint = f"The range is {low:,} to {high:,}."
            raise failure(TypeMismatch, f"{value} is out of the range of {kind}", term.at, hint=hint)
    return replace(term, value=value, kind=kind)


def resolve_fact(fact: Fact, relation: Relation) -> Fact:
    """Return a fact with values of the kinds of its columns."""
    if all(
        is_of_kind(value, column.kind) and not column.range
        for value, column in zip(fact.values, relation.columns, strict=True)
    ):
        return fact
    values = []
    for value, column in zip(fact.values, relation.columns, strict=True):
        constant = ConstantTerm(value, None if type(value) is int else kind_of_value(value), fact.at)
        kinds = constant_kinds(constant)
        common_kinds(kinds, frozenset({column.kind}), fact.at, repr(value), f"as {column.name} of {relation.name}")
        values.append(resolve_constant(constant, column.kind).value)
        check_range(values[-1], column, fact.at)
    return replace(fact, values=tuple(values))


def check_range(value: object, column: RelationColumn, at: Position) -> None:
    """Raise TypeMismatch if a value is out of the range of its column's small integer type."""
    if column.range is not None and isinstance(value, int) and not column.range[0] <= value <= column.range[1]:
        hint = f"The range is {column.range[0]:,} to {column.range[1]:,}."
        raise failure(TypeMismatch, f"{value} is out of the range of {column.type}", at, hint=hint)


def is_of_kind(value: object, kind: Kind) -> bool:
    """Return whether a value is of this kind without conversion; dates and the like are checked by their column."""
    if not isinstance(value, (int, float, str)):
        return True
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


def written_kinds(term: ConstantTerm, every: frozenset[Kind]) -> frozenset[Kind]:
    """Return the kinds beyond those of Datalog that a constant may stand for: nullable ones, and dates in text."""
    nullable = {f"{kind}?" for kind in constant_kinds(term)}
    textual = {kind for kind in every if kind.removesuffix("?").partition("(")[0] in WRITTEN_AS_TEXT}
    return frozenset((nullable | textual if isinstance(term.value, str) else nullable) & every)


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
    return " or ".join(in_preference(kinds))


def in_preference(kinds: Iterable[Kind]) -> list[Kind]:
    """Return kinds in the order in which a variable of several possible kinds takes them: numbers first."""
    given = set(kinds)
    return [kind for kind in KINDS if kind in given] + sorted(given - set(KINDS))
