"""Add witnesses to rules with min and max: bind variables that only the body of the aggregate binds.

    youngest(p, n) :- n = min x : { family(p, x) }.
        ->  youngest(p, n) :- n = min x' : { family(p', x') }, family(p, x), x = n.

Here `p` is a witness. The aggregate ranges over all solutions of its body, and the witnesses are the solutions that
attain its value. Other aggregates have no witnesses: there such a variable is unbound, and `lift_aggregates` raises
UnsafeRule.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count

from kpg.query.ir.body_variables import bound_by, is_computable, literals
from kpg.query.ir.literals import (
    Comparison,
    Conjunction,
    Formula,
    Literal,
    aggregates,
    all_variables,
    map_atom_terms,
    map_terms,
    variables,
)
from kpg.query.ir.program import Program, Rule
from kpg.query.ir.rewrites.expand_disjunction import alternatives, expand_rule
from kpg.query.ir.rewrites.lift_aggregates import result_kind
from kpg.query.ir.terms import AggregateTerm, ConstantTerm, Term, VariableTerm, map_term
from kpg.query.ir.terms import variables as variables_of_term

ATTAINED = ("min", "max")


def find_witnesses(program: Program) -> Program:
    """Return the program without aggregates that bind variables of their rule."""
    numbers = count(1)
    rules: list[Rule] = []
    waiting = list(program.rules)
    while waiting:
        rule = waiting.pop(0)
        binding = (term for term in aggregates_of(rule) if term.op in ATTAINED and witnesses(rule, term))
        aggregate = next(binding, None)
        if aggregate is None:
            rules.append(rule)
        else:
            waiting = [*expand_rule(with_witnesses(rule, aggregate, numbers)), *waiting]
    return program.with_rules(tuple(rules))


def aggregates_of(rule: Rule) -> list[AggregateTerm]:
    """Return the aggregates of a rule, each once."""
    return list(dict.fromkeys(aggregate for part in (rule.head, rule.body) for aggregate in aggregates(part)))


def witnesses(rule: Rule, aggregate: AggregateTerm) -> set[str]:
    """Return the variables that an aggregate shares with its rule and that only the body of the aggregate binds."""
    outside = variables_outside(rule)
    bound = bound_outside(rule, outside)
    inside = [bound_by(body, bound) for body in alternatives(aggregate.body)]
    shared = (variables_inside(aggregate) & outside) - bound
    return {name for name in shared if inside and all(name in names for names in inside)}


def variables_outside(rule: Rule) -> set[str]:
    """Return the variables of a rule that occur outside its aggregates."""
    return {variable.name for part in (rule.head, rule.body) for variable in variables(part)}


def variables_inside(aggregate: AggregateTerm) -> set[str]:
    """Return the variables of an aggregate."""
    target = [] if aggregate.target is None else [variable.name for variable in variables_of_term(aggregate.target)]
    return {variable.name for variable in all_variables(aggregate.body)} | set(target)


def bound_outside(rule: Rule, outside: set[str]) -> set[str]:
    """Return the variables that a rule binds outside its aggregates, results of aggregates with bound keys included."""
    body = literals(rule)
    bound = bound_by(literal for literal in body if not any(True for _ in aggregates(literal)))
    while True:
        defined = {name for literal in body for name in defined_by_aggregates(literal, bound, outside)} - bound
        if not defined:
            return bound
        bound = bound_by(body, bound | defined)


def defined_by_aggregates(literal: Literal, bound: set[str], outside: set[str]) -> Iterator[str]:
    """Yield the variable that an equation with aggregates defines, if all shared variables of these are bound."""
    if not isinstance(literal, Comparison) or literal.op != "=":
        return
    if not all((variables_inside(aggregate) & outside) <= bound for aggregate in aggregates(literal)):
        return

    def constant_for_aggregate(term: Term) -> Term:
        return ConstantTerm(0, None) if isinstance(term, AggregateTerm) else term

    for side, other in ((literal.left, literal.right), (literal.right, literal.left)):
        if isinstance(side, VariableTerm) and is_computable(map_term(other, constant_for_aggregate), bound):
            yield side.name


def with_witnesses(rule: Rule, aggregate: AggregateTerm, numbers: Iterator[int]) -> Rule:
    """Return the rule with the body of an aggregate beside it, restricted to solutions that attain the value."""
    assert aggregate.target is not None
    mark = f"#w{next(numbers)}"
    outside = variables_outside(rule)
    bound = bound_outside(rule, outside)

    def rename(term: Term) -> Term:
        if isinstance(term, VariableTerm) and term.name not in bound:
            return replace(term, name=f"{term.name}{mark}")
        return term

    kinds = dict(rule.kinds)
    kinds |= {f"{name}{mark}": kinds[name] for name in variables_inside(aggregate) - bound if name in kinds}
    renamed = replace(
        aggregate,
        target=map_term(aggregate.target, rename),
        body=map_terms(aggregate.body, rename, inside=True),
    )
    result = VariableTerm(f"{aggregate.op}{mark}", aggregate.at)
    kinds[result.name] = result_kind(aggregate, kinds)

    def replace_aggregate(term: Term) -> Term:
        return result if term == aggregate else term

    body: tuple[Formula, ...] = tuple(map_terms(literal, replace_aggregate) for literal in literals(rule))
    body += (
        Comparison("=", result, renamed, aggregate.at),
        aggregate.body,
        Comparison("=", aggregate.target, result, aggregate.at),
    )
    return replace(
        rule,
        heads=tuple(map_atom_terms(head, replace_aggregate) for head in rule.heads),
        body=Conjunction(body, rule.body.at),
        kinds=tuple(sorted(kinds.items())),
    )
