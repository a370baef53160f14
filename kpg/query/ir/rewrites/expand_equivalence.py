"""Equivalence relations (eqrel): keep the class of each element instead of all pairs of elements.

    eq(x, y) :- link(x, y).     r(x, y) :- a(x), eq(x, y).     s(x) :- a(x), b(y), !eq(x, y).
becomes
    @eq.pairs(x, y) :- link(x, y).                      the pairs that the rules derive
    @eq.class(x, c) = class of @eq.pairs                c is one of the elements that pairs connect x to
    r(x, y) :- a(x), @eq.class(x, c), @eq.class(y, c).
    s(x) :- a(x), b(y), (@eq.class(x, c), @eq.class(y, d), c != d; !@eq.class(x, _); !@eq.class(y, _)).
    eq(x, y) :- @eq.class(x, c), @eq.class(y, c).       all pairs: computed only if eq itself is an output

So n elements take n rows, however large their classes are. An aggregate over the class of an element becomes one over
the class itself, which all its elements share:

    s(x, n) :- a(x), n = count : { eq(x, y) }.
        ->  s(x, n) :- a(x), (@eq.class(x, c), n = count : { @eq.class(y, c) }; !@eq.class(x, _), n = 0).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import count

from kpg.errors import ProgramError, TypeMismatch
from kpg.query.ir.body_variables import bound_by
from kpg.query.ir.literals import (
    Atom,
    Comparison,
    Conjunction,
    Disjunction,
    Formula,
    Negation,
    aggregates,
    all_variables,
    atoms,
    map_atom_terms,
    map_terms,
)
from kpg.query.ir.program import AggregateReduction, Program, Relation, RelationColumn, Rule, part_of
from kpg.query.ir.terms import AggregateTerm, ConstantTerm, Term, VariableTerm, WildcardTerm
from kpg.query.ir.terms import variables as variables_of_term
from kpg.query.source_text import failure

ZERO_OF_NOTHING = ("count", "sum")


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
    first, second = (VariableTerm(column.name, at) for column in relation.columns)
    of_both = VariableTerm("class#", at)
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
        rule = replace(rule, body=self.aggregates_of_classes(rule))
        heads = tuple(map_atom_terms(head, self.term) for head in rule.heads)
        heads = tuple(
            replace(head, relation=part_of(head.relation, "pairs")) if head.relation in self.names else head
            for head in heads
        )
        return replace(rule, heads=heads, body=self.formula(rule.body))

    def aggregates_of_classes(self, rule: Rule) -> Formula:
        """Return the body of a rule, its aggregates over the class of a bound element by class."""
        if not isinstance(rule.body, Conjunction):
            return rule.body
        plain = [part for part in rule.body.parts if not any(True for _ in aggregates(part))]
        bound = bound_by(plain)
        return replace(rule.body, parts=tuple(self.by_class(part, bound) for part in rule.body.parts))

    def by_class(self, part: Formula, bound: set[str]) -> Formula:
        """Return a comparison with its first aggregate over the class of a bound element by class."""
        for aggregate in aggregates(part) if isinstance(part, Comparison) else ():
            for atom, positive in atoms(aggregate.body):
                element = class_element(atom, aggregate, bound) if atom.relation in self.names and positive else None
                if element is not None:
                    return self.in_both_cases(part, aggregate, atom, element)
        return part

    def in_both_cases(self, part: Formula, aggregate: AggregateTerm, atom: Atom, element: VariableTerm) -> Formula:
        """Return a comparison with an aggregate over a class, for an element that has a class and one that has none."""
        classes, at = part_of(atom.relation, "class"), atom.at
        of_class = VariableTerm(f"class#e{next(self.numbers)}", at)
        (member,) = (term for term in atom.arguments if term != element)
        inside = replace_part(aggregate.body, atom, Atom(classes, (member, of_class), at))
        by_class = map_terms(part, lambda term: replace(aggregate, body=inside) if term == aggregate else term)
        some: Formula = Conjunction((Atom(classes, (element, of_class), at), by_class), at)
        if aggregate.op not in ZERO_OF_NOTHING:
            return some
        zero = map_terms(part, lambda term: ConstantTerm(0, None, at) if term == aggregate else term)
        none = Conjunction((Negation(Atom(classes, (element, WildcardTerm(at)), at), at), zero), at)
        return Disjunction((some, none), at)

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


def class_element(atom: Atom, aggregate: AggregateTerm, bound: set[str]) -> VariableTerm | None:
    """Return the element from outside an aggregate if the aggregate ranges over the members of its class, else None.

    The element must occur nowhere else in the aggregate, and the atom must be one of the literals of its body.
    """
    parts = aggregate.body.parts if isinstance(aggregate.body, Conjunction) else (aggregate.body,)
    inside = [variable.name for variable in all_variables(aggregate.body)]
    inside += [variable.name for variable in variables_of_term(aggregate.target)] if aggregate.target else []
    from_outside = [term for term in atom.arguments if isinstance(term, VariableTerm) and term.name in bound]
    if atom not in parts or len(from_outside) != 1 or inside.count(from_outside[0].name) != 1:
        return None
    return from_outside[0]


def replace_part(body: Formula, part: Formula, by: Formula) -> Formula:
    """Return a body with another formula in place of one of its literals."""
    if isinstance(body, Conjunction):
        return replace(body, parts=tuple(by if other == part else other for other in body.parts))
    return by
