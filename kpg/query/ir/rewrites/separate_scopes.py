"""Variables that live only inside an aggregate get names of their own, so that a rule is one scope.

    p(x, n) :- q(x), n = count : { e(x, y) }, m = sum y : { f(y) }, m > 0.
        ->  ... n = count : { e(x, y#1) }, m = sum y#2 : { f(y#2) } ...

A variable inside an aggregate is the one outside if it also occurs outside of all aggregates of its rule; but what is
aggregated is always the aggregate's own. Wildcards in positive atoms get names, too, because each solution counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count

from kpg.query.ir.literals import Atom, Conjunction, Disjunction, Formula, change_atom, change_terms, variables
from kpg.query.ir.program import Program, Rule
from kpg.query.ir.terms import AggregateTerm, Term, VariableTerm, WildcardTerm, change
from kpg.query.ir.terms import variables as variables_of_term


def separate_scopes(program: Program) -> Program:
    """The program with no two scopes using a name for different things."""
    return program.with_rules(tuple(separated(rule) for rule in program.rules))


def separated(rule: Rule) -> Rule:
    """One rule, each aggregate's own variables marked by its number."""
    numbers = count(1)
    outer = {each.name for part in (*rule.heads, rule.body) for each in variables(part)}
    heads = tuple(change_atom(head, entering(outer, numbers)) for head in rule.heads)
    return replace(rule, heads=heads, body=inner_scopes(rule.body, outer, numbers))


def inner_scopes(formula: Formula, outer: set[str], numbers: Iterator[int]) -> Formula:
    """A formula whose aggregates have scopes of their own inside `outer`."""
    return change_terms(formula, entering(outer, numbers))


def entering(outer: set[str], numbers: Iterator[int]) -> Callable[[Term], Term]:
    """What gives an aggregate a scope of its own inside `outer`."""

    def enter(term: Term) -> Term:
        return scoped(term, outer, next(numbers), numbers) if isinstance(term, AggregateTerm) else term

    return enter


def scoped(aggregate: AggregateTerm, outer: set[str], number: int, numbers: Iterator[int]) -> AggregateTerm:
    """An aggregate with its local variables marked."""
    target = [] if aggregate.target is None else [each.name for each in variables_of_term(aggregate.target)]
    own = {each.name for each in variables(aggregate.body)}
    local = (own | set(target)) - outer | (own & set(target))
    aggregate = replace(aggregate, body=named_wildcards(aggregate.body, number, count(1)))

    def mark(term: Term) -> Term:
        if isinstance(term, VariableTerm) and term.name in local:
            return replace(term, name=f"{term.name}#{number}")
        return term

    marked_target = None if aggregate.target is None else change(aggregate.target, mark)
    body = change_terms(aggregate.body, mark, inside=True)
    inside = outer | {f"{name}#{number}" for name in local}
    return replace(aggregate, target=marked_target, body=inner_scopes(body, inside, numbers))


def named_wildcards(formula: Formula, number: int, numbers: Iterator[int]) -> Formula:
    """A formula with variables in place of the wildcards of its positive atoms."""
    match formula:
        case Atom():
            arguments = (
                VariableTerm(f"_#{number}.{next(numbers)}", term.at) if isinstance(term, WildcardTerm) else term
                for term in formula.arguments
            )
            return replace(formula, arguments=tuple(arguments))
        case Conjunction() | Disjunction():
            return replace(formula, parts=tuple(named_wildcards(part, number, numbers) for part in formula.parts))
    return formula
