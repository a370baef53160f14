"""Ways through linear rules: forward from what a body reads, and backward from a head to what it may follow from."""

from __future__ import annotations

from dataclasses import dataclass

from kpg.seminaive.insert_only import ROW
from kpg.seminaive.recursion_rules import Literal, RecursionAtom, RecursionRule, RuleSystem, course, single, variables


@dataclass(frozen=True, slots=True)
class RulePath:
    """A way through a rule: from the rows of one atom to all its solutions."""

    start: RecursionAtom
    steps: tuple[Literal, ...]
    head: RecursionAtom
    own: RecursionAtom  # the derived row of the body
    live: frozenset[str]


def tracks(system: RuleSystem, relation: int) -> list[RulePath]:
    """Every way through a rule from the rows of a relation in its body."""
    made = []
    for rule in system.rules:
        for place, literal in enumerate(rule.body):
            if isinstance(literal, RecursionAtom) and literal.relation == relation:
                found = course(rule, place)
                made.append(RulePath(found.start, found.steps, rule.head, own_atom(rule, system), live_in(rule)))
    return made


def backward(system: RuleSystem, relation: int) -> list[RulePath]:
    """Every way from the head of a rule to what it may follow from."""
    made = []
    for rule in system.rules:
        if rule.head.relation == relation:
            own = own_atom(rule, system)
            start, *equal = single(rule.head, "#head")
            rest = tuple(each for each in rule.body if each is not own)
            assert isinstance(start, RecursionAtom)
            found = course(RecursionRule(rule.head, (start, *equal, *rest)), 0)
            made.append(RulePath(start, found.steps, rule.head, own, live_in(rule) | variables(start)))
    return made


def own_atom(rule: RecursionRule, system: RuleSystem) -> RecursionAtom:
    """The one atom of a derived relation in a body."""
    (own,) = [each for each in rule.body if isinstance(each, RecursionAtom) and each.relation < system.derived]
    return own


def live_in(rule: RecursionRule) -> frozenset[str]:
    """All variables of a rule, and the row it began with."""
    return frozenset({ROW}).union(variables(rule.head), *(variables(literal) for literal in rule.body))


def can_be_kept(system: RuleSystem) -> bool:
    """Whether all rules are linear, and say what they follow from once their head and what they read is known."""
    for rule in system.rules:
        own = [each for each in rule.body if isinstance(each, RecursionAtom) and each.relation < system.derived]
        if len(own) != 1 or None in own[0].terms:
            return False
        others = [each for each in rule.body if isinstance(each, RecursionAtom) and each is not own[0]]
        if not variables(own[0]) <= variables(rule.head).union(*map(variables, others)):
            return False
    return True
