"""Rename the variables that are local to an aggregate, so that all variables of a rule share one scope.

    p(x, n) :- q(x), n = count : { e(x, y) }, m = sum y : { f(y) }, m > 0.
        ->  ... n = count : { e(x, y#1) }, m = sum y#2 : { f(y#2) } ...

A variable inside an aggregate is shared with the rule if it also occurs outside all aggregates of the rule, unless it
occurs in the aggregate's target and the aggregate's body binds it: then it is local. Wildcards in positive atoms get
names as well, because each solution counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count

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
from kpg.query.ir.terms import AggregateTerm, Term, VariableTerm, WildcardTerm, map_term
from kpg.query.ir.terms import variables as variables_of_term


def separate_scopes(program: Program) -> Program:
    """Return the program with unique names for the local variables of aggregates."""
    return program.with_rules(tuple(separate_rule(rule) for rule in program.rules))


def separate_rule(rule: Rule) -> Rule:
    """Return one rule in which a number marks the local variables of each aggregate."""
    numbers = count(1)
    outer = {variable.name for part in (*rule.heads, rule.body) for variable in variables(part)}
    heads = tuple(map_atom_terms(head, scope_marker(outer, numbers)) for head in rule.heads)
    return replace(rule, heads=heads, body=mark_scopes(rule.body, outer, numbers))


def mark_scopes(formula: Formula, outer: set[str], numbers: Iterator[int]) -> Formula:
    """Return a formula with marked local variables in its aggregates; `outer` are the variables outside of them."""
    return map_terms(formula, scope_marker(outer, numbers))


def scope_marker(outer: set[str], numbers: Iterator[int]) -> Callable[[Term], Term]:
    """Return a function that marks the local variables of an aggregate, and leaves other terms unchanged."""

    def mark_scope(term: Term) -> Term:
        return mark_aggregate(term, outer, next(numbers), numbers) if isinstance(term, AggregateTerm) else term

    return mark_scope


def mark_aggregate(aggregate: AggregateTerm, outer: set[str], number: int, numbers: Iterator[int]) -> AggregateTerm:
    """Return an aggregate with its local variables marked, those of nested aggregates included."""
    target = [] if aggregate.target is None else [variable.name for variable in variables_of_term(aggregate.target)]
    own = {variable.name for variable in variables(aggregate.body)}
    local = (own | set(target)) - outer | (binding_variables(aggregate.body) & set(target))
    aggregate = replace(aggregate, body=name_wildcards(aggregate.body, number, count(1)))

    def mark(term: Term) -> Term:
        if isinstance(term, VariableTerm) and term.name in local:
            return replace(term, name=f"{term.name}#{number}")
        return term

    marked_target = None if aggregate.target is None else map_term(aggregate.target, mark)
    body = map_terms(aggregate.body, mark, inside=True)
    inside = outer | {f"{name}#{number}" for name in local}
    return replace(aggregate, target=marked_target, body=mark_scopes(body, inside, numbers))


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
