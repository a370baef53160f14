"""Rename the variables that are local to an aggregate, so that all variables of a rule share one scope.

    p(x, n) :- q(x), n = count : { e(x, y) }, m = sum y : { f(y) }, m > 0.
        ->  ... n = count : { e(x, y#1) }, m = sum y#2 : { f(y#2) } ...

A variable inside an aggregate is shared with the rule if it also occurs outside all aggregates of the rule, unless it
occurs in the aggregate's target and the aggregate's body binds it: then it is local. Wildcards in positive atoms get
names as well, because each solution counts.

A variable in an expression that a `min` or `max` aggregates is shared if the rule around it uses it and does not bind
it: it is a witness (see find_witnesses).

    cheapest(x, y, n) :- n = min x + y : { price(x, y) }.

For its sake a wildcard may stand for the result of an aggregate, `_ = min x + y : { ... }`, and gets a name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count

from kpg.query.ir.body_variables import bound_by, definitions, parts_of
from kpg.query.ir.literals import (
    Atom,
    Comparison,
    Conjunction,
    Disjunction,
    Formula,
    atoms,
    map_atom_terms,
    map_terms,
    subformulas,
    variables,
)
from kpg.query.ir.program import Program, Rule
from kpg.query.ir.terms import AggregateTerm, Term, VariableTerm, WildcardTerm, map_term, subterms
from kpg.query.ir.terms import variables as variables_of_term


def separate_scopes(program: Program) -> Program:
    """Return the program with unique names for the local variables of aggregates."""
    return program.with_rules(tuple(separate_rule(rule) for rule in program.rules))


def separate_rule(rule: Rule) -> Rule:
    """Return one rule in which a number marks the local variables of each aggregate."""
    numbers = count(1)
    outer = {variable.name for part in (*rule.heads, rule.body) for variable in variables(part)}
    mark_scope = scope_marker(outer, outer - bound_outside(rule.body), numbers)
    heads = tuple(map_atom_terms(head, mark_scope) for head in rule.heads)
    return replace(rule, heads=heads, body=name_results(map_terms(rule.body, mark_scope), numbers))


def bound_outside(body: Formula) -> set[str]:
    """Return the variables that a body binds, with those that equations may set to the result of an aggregate."""
    results = {
        variable.name
        for part in subformulas(body)
        for variable, term in definitions(part)
        if any(isinstance(subterm, AggregateTerm) for subterm in subterms(term))
    }
    return bound_by(parts_of(body), results)


def scope_marker(outer: set[str], unbound: set[str], numbers: Iterator[int]) -> Callable[[Term], Term]:
    """Return a function that marks the local variables of an aggregate, and leaves other terms unchanged.

    `outer` are the variables around the aggregate; `unbound` are those of them that nothing around it binds.
    """

    def mark_scope(term: Term) -> Term:
        return mark_aggregate(term, outer, unbound, numbers) if isinstance(term, AggregateTerm) else term

    return mark_scope


def mark_aggregate(
    aggregate: AggregateTerm, outer: set[str], unbound: set[str], numbers: Iterator[int]
) -> AggregateTerm:
    """Return an aggregate with its local variables marked, those of nested aggregates included."""
    number = next(numbers)
    target = [] if aggregate.target is None else [variable.name for variable in variables_of_term(aggregate.target)]
    own = {variable.name for variable in variables(aggregate.body)}
    local = (own | set(target)) - outer | (binding_variables(aggregate.body) & set(target))
    if aggregate.op in ("min", "max") and not isinstance(aggregate.target, VariableTerm):
        local -= unbound
    aggregate = replace(aggregate, body=name_wildcards(aggregate.body, number, count(1)))

    def mark(term: Term) -> Term:
        if isinstance(term, VariableTerm) and term.name in local:
            return replace(term, name=f"{term.name}#{number}")
        return term

    marked_target = None if aggregate.target is None else map_term(aggregate.target, mark)
    body = map_terms(aggregate.body, mark, inside=True)
    inside = outer | {f"{name}#{number}" for name in local}
    return replace(aggregate, target=marked_target, body=map_terms(body, scope_marker(inside, set(), numbers)))


def name_results(formula: Formula, numbers: Iterator[int]) -> Formula:
    """Return a formula with variables in place of the wildcards that stand for results of aggregates."""
    match formula:
        case Comparison(op="=", left=WildcardTerm() as wildcard, right=AggregateTerm()):
            return replace(formula, left=VariableTerm(f"_#{next(numbers)}", wildcard.at))
        case Comparison(op="=", left=AggregateTerm(), right=WildcardTerm() as wildcard):
            return replace(formula, right=VariableTerm(f"_#{next(numbers)}", wildcard.at))
        case Conjunction() | Disjunction():
            return replace(formula, parts=tuple(name_results(part, numbers) for part in formula.parts))
    return formula


def binding_variables(body: Formula) -> set[str]:
    """Return the variables of a body in positive atoms and equations: one that only a negation uses is not its own."""
    positive = {variable.name for atom, is_positive in atoms(body) if is_positive for variable in variables(atom)}
    equations = [part for part in subformulas(body) if isinstance(part, Comparison) and part.op == "="]
    return positive | {variable.name for equation in equations for variable in variables(equation)}


def name_wildcards(formula: Formula, number: int, numbers: Iterator[int]) -> Formula:
    """Return a formula with variables in place of the wildcards of its positive atoms."""
    match formula:
        case Atom():
            arguments = (
                VariableTerm(f"_#{number}.{next(numbers)}", term.at) if isinstance(term, WildcardTerm) else term
                for term in formula.arguments
            )
            return replace(formula, arguments=tuple(arguments))
        case Conjunction() | Disjunction():
            return replace(formula, parts=tuple(name_wildcards(part, number, numbers) for part in formula.parts))
    return formula
