"""Bodies become conjunctions of literals: negation moves inward, and each alternative becomes a rule of its own.

    p(x) :- q(x), !(r(x); x > 3).            ->  p(x) :- q(x), !r(x), x <= 3.
    p(x) :- q(x), (r(x); s(x)).              ->  p(x) :- q(x), r(x).   p(x) :- q(x), s(x).

A body that is never true has no rule. Bodies inside aggregates are left for when they are lifted.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product

from kpg.errors import ResourceError
from kpg.query.ir.literals import (
    OPPOSITE,
    Atom,
    Comparison,
    Conjunction,
    Disjunction,
    Formula,
    Literal,
    Negation,
    Test,
    Truth,
)
from kpg.query.ir.program import Program, Rule

LIMIT = 10_000  # alternatives of one rule


def expand_disjunction(program: Program) -> Program:
    """The program with a conjunction of literals as each body."""
    return program.with_rules(tuple(each for rule in program.rules for each in expanded(rule)))


def expanded(rule: Rule) -> list[Rule]:
    """One rule for each alternative of a body."""
    made = []
    for body in alternatives(rule.body):
        made.append(replace(rule, body=Conjunction(tuple(dict.fromkeys(body)), rule.body.at)))
    return made


def alternatives(formula: Formula, positive: bool = True) -> list[tuple[Literal, ...]]:
    """The conjunctions of literals, one of which holds if and only if the formula does (or, negated, does not)."""
    match formula:
        case Truth():
            return [()] if formula.holds == positive else []
        case Atom():
            return [(formula if positive else Negation(formula, formula.at),)]
        case Comparison():
            return [(formula if positive else replace(formula, op=OPPOSITE[formula.op]),)]
        case Test():
            return [(formula if positive else replace(formula, positive=not formula.positive),)]
        case Negation():
            return alternatives(formula.formula, not positive)
    inner = [alternatives(part, positive) for part in formula.parts]
    if isinstance(formula, Disjunction) == positive:
        return limited(sum(inner, []), formula)
    size = 1
    for choices in inner:
        size *= len(choices)
    if size > LIMIT:
        limited([()] * (LIMIT + 1), formula)
    return [sum(choice, ()) for choice in product(*inner)]


def limited(found: list[tuple[Literal, ...]], formula: Formula) -> list[tuple[Literal, ...]]:
    """What was found, if it is not absurdly much."""
    if len(found) > LIMIT:
        raise ResourceError(
            f"{formula.at}: a body with more than {LIMIT:,} alternatives", hint="Name parts of it with rules."
        )
    return found
