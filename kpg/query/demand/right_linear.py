"""Recursion that hands its answers through: what is found for the next value is an answer for the first one, too.

    tc(x, z) :- tc(x, y), e(y, z).     asked by z: every x of tc(x, y) is an x of tc(x, z)

Demand alone would find the rows of every value on the way, each with all its own answers: the whole closure of what can
be reached. Instead the way is kept, from each argument to the values that its demand came to:

    tc@z.way(z, z) :- tc@z.demand(z).
    tc@z.way(z', y) :- tc@z.way(z', z), e(y, z).
    tc@z(x, z') :- tc@z.way(z', z), e(x, z).          the rule that does not recur

So an argument costs what it reaches. It applies where each rule that recurs has one atom of its own relation, whose
unasked columns are those of the head, unchanged and used nowhere else.
"""

from __future__ import annotations

from kpg.query.demand.names import DemandedRelation
from kpg.query.demand.passing import Passing, in_order
from kpg.query.ir.body_variables import literals
from kpg.query.ir.literals import Atom, Literal, atoms, variables
from kpg.query.ir.program import Rule
from kpg.query.ir.terms import ConstantTerm, VariableTerm
from kpg.query.ir.terms import variables as variables_of_term


def recursive_atom(rule: Rule) -> Atom | None:
    """The atom of a rule's own relation, if there is exactly one, not negated."""
    own = [(atom, positive) for atom, positive in atoms(rule.body) if atom.relation == rule.head.relation]
    return own[0][0] if len(own) == 1 and own[0][1] else None


def recurs(rule: Rule) -> bool:
    """Whether a rule reads its own relation."""
    return any(atom.relation == rule.head.relation for atom, _ in atoms(rule.body))


def hands_through(rules: list[Rule], places: tuple[int, ...]) -> bool:
    """Whether a relation's answers for what its rules demand next are those for what was demanded first."""
    recursive = [rule for rule in rules if recurs(rule)]
    return bool(recursive) and all(hands_on(rule, places) for rule in recursive)


def hands_on(rule: Rule, places: tuple[int, ...]) -> bool:
    """Whether one rule's recursive atom gives the head's unasked columns as they are, and its asked ones are known."""
    atom = recursive_atom(rule)
    if atom is None:
        return False
    free = [place for place in range(len(atom.arguments)) if place not in places]
    answers = [atom.arguments[place] for place in free]
    names = {term.name for term in answers if isinstance(term, VariableTerm)}
    if len(names) < len(answers) or answers != [rule.head.arguments[place] for place in free]:
        return False
    if not all(isinstance(atom.arguments[place], (VariableTerm, ConstantTerm)) for place in places):
        return False
    asking = {each.name for place in places for each in variables_of_term(atom.arguments[place])}
    elsewhere = {each.name for literal in others(rule, atom) for each in variables(literal)} | asking
    elsewhere |= {each.name for place in places for each in variables_of_term(rule.head.arguments[place])}
    return elsewhere.isdisjoint(names) and asking <= passed_on(rule, atom, places)


def passed_on(rule: Rule, atom: Atom, places: tuple[int, ...]) -> set[str]:
    """The variables that demand can pass to the recursive atom, when all else was asked before."""
    start = Atom("", tuple(each for place in places for each in variables_of_term(rule.head.arguments[place])))
    if any(not isinstance(rule.head.arguments[place], (VariableTerm, ConstantTerm)) for place in places):
        return set()
    passing = Passing(start)
    for literal in in_order(others(rule, atom), start):
        passing.ask(literal, literal)
    return passing.known(inside=True)


def others(rule: Rule, atom: Atom) -> list[Literal]:
    """The body of a rule without one atom."""
    return [literal for literal in literals(rule) if literal is not atom]


def beginnings(asked: DemandedRelation) -> tuple[VariableTerm, ...]:
    """Variables for the arguments that a way began with."""
    return tuple(VariableTerm(f"first#{place}", asked.relation.at) for place in asked.places)
