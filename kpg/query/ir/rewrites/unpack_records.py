"""Replace patterns of records by tests of their tags and equations for their fields.

    p(x) :- list([x, [y, _]]).
        ->  p(x) :- list(r), r is [_, _], x = r.head, s = r.tail, s is [_, _], y = s.head.

A pattern is taken apart if it has wildcards or variables that nothing else binds. Otherwise it stays a computed value,
which joins by equality. Patterns of negated atoms are always computed. Bodies of aggregates are rewritten alike.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import count

from kpg.query.ir.body_variables import bound_by
from kpg.query.ir.constructors import Constructor, Signatures, field_of, is_constructor, tag_test
from kpg.query.ir.literals import (
    Atom,
    Comparison,
    Conjunction,
    Disjunction,
    Formula,
    Test,
    Truth,
    map_atom_terms,
    map_terms,
)
from kpg.query.ir.program import Program, Rule
from kpg.query.ir.rewrites.expand_disjunction import expand_rule
from kpg.query.ir.terms import AggregateTerm, CallTerm, ConstantTerm, Kind, Term, VariableTerm, WildcardTerm, subterms


def unpack_records(program: Program) -> Program:
    """Return the program without patterns of records in positive literals."""
    signatures = program.signatures()
    if not signatures.records:
        return program
    return program.with_rules(tuple(one for rule in program.rules for one in unpack_rule(rule, signatures)))


def unpack_rule(rule: Rule, signatures: Signatures) -> list[Rule]:
    """Return one rule without patterns, or no rule if a pattern can never match."""
    unpacking = Unpacking(signatures)
    body = unpacking.formula(rule.body)
    heads = tuple(map_atom_terms(head, unpacking.aggregate) for head in rule.heads)
    kinds = tuple(sorted((*rule.kinds, *unpacking.kinds.items())))
    return expand_rule(replace(rule, heads=heads, body=body, kinds=kinds))


@dataclass(slots=True)
class Unpacking:
    """Unpacks the patterns of one rule; `kinds` are the kinds of the variables that it adds."""

    signatures: Signatures
    kinds: dict[str, Kind] = field(default_factory=dict)
    numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def formula(self, formula: Formula) -> Formula:
        """Return a formula without patterns in its positive literals."""
        if isinstance(formula, Disjunction):
            return replace(formula, parts=tuple(map(self.formula, formula.parts)))
        parts = [self.inside(part) for part in flattened(formula)]
        done: set[int] = set()  # identities of literals that need no more unpacking
        while True:
            index = next((index for index, part in enumerate(parts) if id(part) not in done), None)
            if index is None:
                return Conjunction(tuple(parts), formula.at)
            others = parts[:index] + parts[index + 1 :]
            by_one = self.literal(parts[index], others)
            if by_one == [parts[index]]:
                done.add(id(parts[index]))
            else:
                parts[index : index + 1] = by_one
                done = {id(part) for part in parts if isinstance(part, Truth)}  # what was unbound may be bound now

    def inside(self, part: Formula) -> Formula:
        """Return a part of a conjunction with unpacked disjunctions and aggregates."""
        return self.formula(part) if isinstance(part, Disjunction) else map_terms(part, self.aggregate)

    def aggregate(self, term: Term) -> Term:
        """Return an aggregate with an unpacked body; any other term unchanged."""
        return replace(term, body=self.formula(term.body)) if isinstance(term, AggregateTerm) else term

    def literal(self, literal: Formula, others: list[Formula]) -> list[Formula]:
        """Return the literals that replace one beside others: itself if it has no pattern to take apart."""
        if isinstance(literal, Atom):
            bound = bound_by(others)
            for position, term in enumerate(literal.arguments):
                if is_pattern(term, bound):
                    record = self.variable(term)
                    arguments = (*literal.arguments[:position], record, *literal.arguments[position + 1 :])
                    return [replace(literal, arguments=arguments), *self.match(record, term)]
        elif isinstance(literal, Comparison) and literal.op == "=":
            return self.equation(literal, others)
        return [literal]

    def equation(self, equation: Comparison, others: list[Formula]) -> list[Formula]:
        """Return the literals that replace an equation."""
        if is_constructor(equation.left) and is_constructor(equation.right):
            return self.match_constructed(equation.left, equation.right, equation)
        bound = bound_by(others)
        for side, pattern in ((equation.left, equation.right), (equation.right, equation.left)):
            if not is_pattern(pattern, bound):
                continue
            if isinstance(side, ConstantTerm) or (isinstance(side, VariableTerm) and side.name in bound):
                return self.match(side, pattern)
            if isinstance(side, CallTerm):
                record = self.variable(side)
                return [Comparison("=", record, side, side.at), *self.match(record, pattern)]
        return [equation]

    def match(self, record: Term, pattern: Term) -> list[Formula]:
        """Return the literals that hold if a bound record matches a pattern."""
        constructor = self.constructor(pattern)
        assert isinstance(pattern, CallTerm)
        literals: list[Formula] = [Test(tag_test(constructor), (record,), True, pattern.at)]
        for position, argument in enumerate(pattern.arguments):
            value = field_of(record, constructor, position)
            if is_constructor(argument):
                inner = self.variable(argument)
                literals += [Comparison("=", inner, value, argument.at), Comparison("=", inner, argument, argument.at)]
            elif not isinstance(argument, WildcardTerm):
                literals.append(Comparison("=", argument, value, argument.at))
        return literals

    def match_constructed(self, left: Term, right: Term, equation: Comparison) -> list[Formula]:
        """Return the equations between the fields of two constructed values."""
        assert isinstance(left, CallTerm) and isinstance(right, CallTerm)
        if left.functor != right.functor:
            return [Truth(False, equation.at)]
        pairs = zip(left.arguments, right.arguments, strict=True)
        return [
            Comparison("=", ours, theirs, equation.at)
            for ours, theirs in pairs
            if not isinstance(ours, WildcardTerm) and not isinstance(theirs, WildcardTerm)
        ]

    def constructor(self, term: Term) -> Constructor:
        """Return the constructor of a constructed value other than nil."""
        assert isinstance(term, CallTerm)
        constructor = self.signatures.constructor(term)
        assert constructor is not None, term
        return constructor

    def variable(self, term: Term) -> VariableTerm:
        """Return a new variable for the value of a term."""
        assert isinstance(term, CallTerm) and term.kind is not None
        variable = VariableTerm(f"record#r{next(self.numbers)}", term.at)
        self.kinds[variable.name] = term.kind
        return variable


def flattened(formula: Formula) -> list[Formula]:
    """Return the parts of nested conjunctions."""
    if isinstance(formula, Conjunction):
        return [inner for part in formula.parts for inner in flattened(part)]
    return [formula]


def is_pattern(term: Term, bound: set[str]) -> bool:
    """Return whether a constructed value has wildcards, or variables that are not bound."""
    if not is_constructor(term):
        return False
    parts = list(subterms(term))
    return any(
        isinstance(part, WildcardTerm) or (isinstance(part, VariableTerm) and part.name not in bound) for part in parts
    )
