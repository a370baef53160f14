"""A variable that only the body of a min or max binds, and that the rule uses outside, is a witness.

    youngest(p, n) :- n = min x : { family(p, x) }.
        ->  youngest(p, n) :- n = min x' : { family(p', x') }, family(p, x), x = n.

The aggregate is taken over all of them, and the witnesses are those that attain it. Other aggregates have no witnesses:
there such a variable is not bound, and `lift_aggregates` says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count

from kpg.query.ir.body_variables import bound_by, is_ready, literals
from kpg.query.ir.literals import (
    Comparison,
    Conjunction,
    Formula,
    Literal,
    aggregates,
    all_variables,
    change_atom,
    change_terms,
    variables,
)
from kpg.query.ir.program import Program, Rule
from kpg.query.ir.rewrites.expand_disjunction import expanded
from kpg.query.ir.rewrites.lift_aggregates import result_kind
from kpg.query.ir.terms import AggregateTerm, ConstantTerm, Term, VariableTerm, change
from kpg.query.ir.terms import variables as variables_of_term

ATTAINED = ("min", "max")


def find_witnesses(program: Program) -> Program:
    """The program without aggregates that bind variables of their rule."""
    numbers = count(1)
    rules: list[Rule] = []
    waiting = list(program.rules)
    while waiting:
        rule = waiting.pop(0)
        found = next((each for each in aggregates_of(rule) if each.op in ATTAINED and witnesses(rule, each)), None)
        if found is None:
            rules.append(rule)
        else:
            waiting = [*expanded(with_witnesses(rule, found, numbers)), *waiting]
    return program.with_rules(tuple(rules))


def aggregates_of(rule: Rule) -> list[AggregateTerm]:
    """The aggregates of a rule, each once."""
    return list(dict.fromkeys(each for part in (rule.head, rule.body) for each in aggregates(part)))


def witnesses(rule: Rule, aggregate: AggregateTerm) -> set[str]:
    """The variables that an aggregate shares with its rule and that the rest of the rule does not bind."""
    outside = {each.name for part in (rule.head, rule.body) for each in variables(part)}
    return (inside(aggregate) & outside) - bound_outside(rule, outside)


def inside(aggregate: AggregateTerm) -> set[str]:
    """The variables of an aggregate."""
    target = [] if aggregate.target is None else [each.name for each in variables_of_term(aggregate.target)]
    return {each.name for each in all_variables(aggregate.body)} | set(target)


def bound_outside(rule: Rule, outside: set[str]) -> set[str]:
    """What a rule binds without looking into its aggregates; their results count once their own keys are bound."""
    body = literals(rule)
    bound = bound_by(literal for literal in body if not any(True for _ in aggregates(literal)))
    while True:
        found = {name for literal in body for name in results(literal, bound, outside)} - bound
        if not found:
            return bound
        bound = bound_by(body, bound | found)


def results(literal: Literal, bound: set[str], outside: set[str]) -> Iterator[str]:
    """The variable that an equation with aggregates defines, if all they need is bound."""
    if not isinstance(literal, Comparison) or literal.op != "=":
        return
    if not all((inside(each) & outside) <= bound for each in aggregates(literal)):
        return

    def known(term: Term) -> Term:
        return ConstantTerm(0, None) if isinstance(term, AggregateTerm) else term

    for this, that in ((literal.left, literal.right), (literal.right, literal.left)):
        if isinstance(this, VariableTerm) and is_ready(change(that, known), bound):
            yield this.name


def with_witnesses(rule: Rule, aggregate: AggregateTerm, numbers: Iterator[int]) -> Rule:
    """The rule with the body of an aggregate beside it, where its value is attained."""
    assert aggregate.target is not None
    mark = f"#w{next(numbers)}"
    outside = {each.name for part in (rule.head, rule.body) for each in variables(part)}
    bound = bound_outside(rule, outside)

    def rename(term: Term) -> Term:
        if isinstance(term, VariableTerm) and term.name not in bound:
            return replace(term, name=f"{term.name}{mark}")
        return term

    kinds = dict(rule.kinds)
    kinds |= {f"{name}{mark}": kinds[name] for name in inside(aggregate) - bound if name in kinds}
    apart = replace(
        aggregate,
        target=change(aggregate.target, rename),
        body=change_terms(aggregate.body, rename, inside=True),
    )
    result = VariableTerm(f"{aggregate.op}{mark}", aggregate.at)
    kinds[result.name] = result_kind(aggregate, kinds)

    def put(term: Term) -> Term:
        return result if term == aggregate else term

    body: tuple[Formula, ...] = tuple(change_terms(literal, put) for literal in literals(rule))
    body += (
        Comparison("=", result, apart, aggregate.at),
        aggregate.body,
        Comparison("=", aggregate.target, result, aggregate.at),
    )
    return replace(
        rule,
        heads=tuple(change_atom(head, put) for head in rule.heads),
        body=Conjunction(body, rule.body.at),
        kinds=tuple(sorted(kinds.items())),
    )
