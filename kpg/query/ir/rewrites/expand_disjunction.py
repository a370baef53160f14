"""Turn bodies into conjunctions of literals: push negations inward, and make one rule for each alternative.

    p(x) :- q(x), !(r(x); x > 3).            ->  p(x) :- q(x), !r(x), x <= 3.
    p(x) :- q(x), (r(x); s(x)).              ->  p(x) :- q(x), r(x).   p(x) :- q(x), s(x).

A body that is never true gives no rule. `lift_aggregates` expands the bodies of aggregates later. The number of rules
can grow exponentially with the number of disjunctions; more than MAX_ALTERNATIVES raise ResourceError.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import chain, product

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
    aggregates,
)
from kpg.query.ir.program import Program, Rule

MAX_ALTERNATIVES = 10_000  # of one rule; each becomes a rule with operators of its own
COUNTED_RULES = 1_000_000_000  # a number of rules that no limit allows


def expand_disjunction(program: Program) -> Program:
    """Return the program with a conjunction of literals as each body."""
    return program.with_rules(tuple(expanded for rule in program.rules for expanded in expand_rule(rule)))


def expand_rule(rule: Rule) -> list[Rule]:
    """Return one rule for each alternative of a body."""
    return [
        replace(rule, body=Conjunction(tuple(dict.fromkeys(body)), rule.body.at)) for body in alternatives(rule.body)
    ]


def alternatives(formula: Formula, positive: bool = True) -> list[tuple[Literal, ...]]:
    """Return the disjunctive normal form of a formula, or of its negation: a list of conjunctions of literals."""
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
        return check_size(list(chain.from_iterable(inner)), formula)
    size = 1
    for choices in inner:
        size *= len(choices)
    if size > MAX_ALTERNATIVES:
        raise too_many(formula)
    return [tuple(chain.from_iterable(choice)) for choice in product(*inner)]


def count_rules(program: Program) -> int:
    """Return about how many rules `compile` makes of a program, without making them; at most COUNTED_RULES."""
    total = 0
    for rule in program.rules:
        doubled = sum(1 for part in (*rule.heads, rule.body) for _ in aggregates(part))
        total += count_alternatives(rule.body) << min(doubled, COUNTED_RULES.bit_length())
    return min(total, COUNTED_RULES)


def count_alternatives(formula: Formula, positive: bool = True) -> int:
    """Return the number of alternatives of a formula, or of its negation; at most COUNTED_RULES."""
    if isinstance(formula, Negation):
        return count_alternatives(formula.formula, not positive)
    if not isinstance(formula, (Conjunction, Disjunction)):
        return 1
    inner = [count_alternatives(part, positive) for part in formula.parts]
    if isinstance(formula, Disjunction) == positive:
        return min(sum(inner), COUNTED_RULES)
    size = 1
    for choices in inner:
        size = min(size * choices, COUNTED_RULES)
    return size


def check_size(bodies: list[tuple[Literal, ...]], formula: Formula) -> list[tuple[Literal, ...]]:
    """Return the alternatives; raise ResourceError if there are more than MAX_ALTERNATIVES."""
    if len(bodies) > MAX_ALTERNATIVES:
        raise too_many(formula)
    return bodies


def too_many(formula: Formula) -> ResourceError:
    """Return the error for a body with too many alternatives."""
    what = f"{formula.at}: a body with more than {MAX_ALTERNATIVES:,} alternatives"
    return ResourceError(what, hint="Name parts of it with rules of their own.")
