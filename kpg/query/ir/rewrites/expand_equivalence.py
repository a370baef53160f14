"""Equivalence relations (eqrel): keep the class of each element instead of all pairs of elements.

    eq(x, y) :- link(x, y).     r(x, y) :- a(x), eq(x, y).     s(x) :- a(x), b(y), !eq(x, y).
becomes
    @eq.pairs(x, y) :- link(x, y).                      the pairs that the rules derive
    @eq.class(x, c) = class of @eq.pairs                c is the least element that pairs connect x to
    r(x, y) :- a(x), @eq.class(x, c), @eq.class(y, c).
    s(x) :- a(x), b(y), (@eq.class(x, c), @eq.class(y, d), c != d; !@eq.class(x, _); !@eq.class(y, _)).
    eq(x, y) :- @eq.class(x, c), @eq.class(y, c).       all pairs: computed only if eq itself is an output

So n elements take n rows, however large their classes are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import count

from kpg.errors import ProgramError, TypeMismatch
from kpg.query.ir.literals import (
    Atom,
    Comparison,
    Conjunction,
    Disjunction,
    Formula,
    Negation,
    map_atom_terms,
    map_terms,
)
from kpg.query.ir.program import AggregateReduction, Program, Relation, RelationColumn, Rule, part_of
from kpg.query.ir.terms import AggregateTerm, Term, VariableTerm, WildcardTerm
from kpg.query.source_text import failure


def expand_equivalence(program: Program) -> Program:
    """Return the program with classes in place of equivalence relations."""
    special = [relation for relation in program.relations if relation.kind == "equivalence"]
    if not special:
        return program
    for relation in special:
        check_columns(relation)
    expansion = EquivalenceExpansion(frozenset(relation.name for relation in special))
    rules = [expansion.rule(rule) for rule in program.rules]
    generated = [part for relation in special for part in parts_of(relation)]
    reductions = [
        AggregateReduction(
            part_of(relation.name, "class"), part_of(relation.name, "pairs"), 1, "class", 1, relation.at, monotone=True
        )
        for relation in special
    ]
    return replace(
        program,
        relations=(*program.relations, *generated),
        rules=(*rules, *map(all_pairs, special)),
        reductions=(*program.reductions, *reductions),
    )


def check_columns(relation: Relation) -> None:
    """Raise if a relation cannot be an equivalence relation: it has two columns of the same type."""
    if relation.arity != 2:
        what = f"equivalence relation {relation.name} has {relation.arity} columns"
        raise failure(ProgramError, what, relation.at, hint="An equivalence relation has two columns of one type.")
    first, second = relation.columns
    if first.type != second.type:
        what = f"the columns of equivalence relation {relation.name} have different types"
        detail = f"{first.name} is {first.type}, and {second.name} is {second.type}."
        raise failure(TypeMismatch, what, second.at, detail=detail, hint="Declare both with one type.")


def parts_of(relation: Relation) -> tuple[Relation, Relation]:
    """Return the relation of the derived pairs, and that of the classes."""
    pairs = replace(relation, name=part_of(relation.name, "pairs"), generated=True, input_of=relation.name)
    element = relation.columns[0]
    columns = (element, RelationColumn(f"class of {element.name}", element.type, element.kind, element.at))
    classes = Relation(part_of(relation.name, "class"), columns, relation.at, generated=True, kind="equivalence")
    return pairs, classes


def all_pairs(relation: Relation) -> Rule:
    """Return the rule for all pairs of an equivalence relation."""
    at = relation.at
    first, second, of_both = VariableTerm("first#e", at), VariableTerm("second#e", at), VariableTerm("class#e", at)
    classes = part_of(relation.name, "class")
    body = Conjunction((Atom(classes, (first, of_both), at), Atom(classes, (second, of_both), at)), at)
    return Rule((Atom(relation.name, (first, second), at),), body, at)


@dataclass(slots=True)
class EquivalenceExpansion:
    """Replaces the atoms of equivalence relations; each gets a variable for its class."""

    names: frozenset[str]
    numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def rule(self, rule: Rule) -> Rule:
        """Return a rule that reads classes and derives pairs."""
        heads = tuple(map_atom_terms(head, self.term) for head in rule.heads)
        heads = tuple(
            replace(head, relation=part_of(head.relation, "pairs")) if head.relation in self.names else head
            for head in heads
        )
        return replace(rule, heads=heads, body=self.formula(rule.body))

    def term(self, term: Term) -> Term:
        """Return a term; in the body of an aggregate, atoms are replaced."""
        return replace(term, body=self.formula(term.body)) if isinstance(term, AggregateTerm) else term

    def formula(self, formula: Formula, positive: bool = True) -> Formula:
        """Return a formula with classes in place of equivalence relations."""
        match formula:
            case Atom() if formula.relation in self.names:
                arguments = map_atom_terms(formula, self.term).arguments
                return self.pair(replace(formula, arguments=arguments), positive)
            case Negation():
                return replace(formula, formula=self.formula(formula.formula, not positive))
            case Conjunction() | Disjunction():
                return replace(formula, parts=tuple(self.formula(part, positive) for part in formula.parts))
        return map_terms(formula, self.term)

    def pair(self, atom: Atom, positive: bool) -> Formula:
        """Return the formula for an atom. Under a negation it is the negation of a formula that is safe."""
        classes, at = part_of(atom.relation, "class"), atom.at
        first, second = atom.arguments
        if isinstance(first, WildcardTerm):
            first, second = second, first
        if isinstance(second, WildcardTerm) or first == second:  # every element is equivalent to itself
            return Atom(classes, (first, WildcardTerm(at)), at)
        number = next(self.numbers)
        ours = VariableTerm(f"class#e{number}", at)
        if positive:
            return Conjunction((Atom(classes, (first, ours), at), Atom(classes, (second, ours), at)), at)
        theirs = replace(ours, name=f"other {ours.name}")
        apart = Conjunction(
            (
                Atom(classes, (first, ours), at),
                Atom(classes, (second, theirs), at),
                Comparison("!=", ours, theirs, at),
            ),
            at,
        )
        missing = [Negation(Atom(classes, (term, WildcardTerm(at)), at), at) for term in (first, second)]
        return Negation(Disjunction((apart, *missing), at), at)
