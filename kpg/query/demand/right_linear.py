"""Right-linear recursion: the answers for the next demanded value are answers for the first one as well.

    tc(x, z) :- tc(x, y), e(y, z).     z bound: every x of tc(x, y) is an x of tc(x, z)

Plain magic sets would compute the rows of every value that demand reaches, each with all its answers: the complete
closure of the reachable part. Instead a relation keeps, for each argument, the values that its demand reaches:

    tc@z.way(z, z) :- tc@z.demand(z).
    tc@z.way(z', y) :- tc@z.way(z', z), e(y, z).
    tc@z(x, z') :- tc@z.way(z', z), e(x, z).          the rule that does not recur

So the cost of an argument is the number of values it reaches. This applies if each recursive rule has exactly one atom
of its own relation, and the free columns of that atom are those of the head, unchanged and used nowhere else.
"""

from __future__ import annotations

from kpg.query.demand.adorned_relation import AdornedRelation
from kpg.query.demand.sideways_passing import SidewaysPassing, sideways_order
from kpg.query.ir.body_variables import literals
from kpg.query.ir.literals import Atom, Literal, atoms, variables
from kpg.query.ir.program import Rule
from kpg.query.ir.terms import ConstantTerm, VariableTerm
from kpg.query.ir.terms import variables as variables_of_term


def recursive_atom(rule: Rule) -> Atom | None:
    """Return the atom of a rule's own relation if there is exactly one and it is not negated."""
    own = [(atom, positive) for atom, positive in atoms(rule.body) if atom.relation == rule.head.relation]
    return own[0][0] if len(own) == 1 and own[0][1] else None


def is_recursive_rule(rule: Rule) -> bool:
    """Return whether a rule reads its own relation."""
    return any(atom.relation == rule.head.relation for atom, _ in atoms(rule.body))


def is_right_linear(rules: list[Rule], bound: tuple[int, ...]) -> bool:
    """Return whether all recursive rules of a relation are right-linear for these bound columns."""
    recursive = [rule for rule in rules if is_recursive_rule(rule)]
    return bool(recursive) and all(is_right_linear_rule(rule, bound) for rule in recursive)


def is_right_linear_rule(rule: Rule, bound: tuple[int, ...]) -> bool:
    """Return whether a rule's recursive atom has the free columns of the head unchanged, and passable bound ones."""
    atom = recursive_atom(rule)
    if atom is None:
        return False
    free = [column for column in range(len(atom.arguments)) if column not in bound]
    answers = [atom.arguments[column] for column in free]
    names = {term.name for term in answers if isinstance(term, VariableTerm)}
    if len(names) < len(answers) or answers != [rule.head.arguments[column] for column in free]:
        return False
    if not all(isinstance(atom.arguments[column], (VariableTerm, ConstantTerm)) for column in bound):
        return False
    demanding = {variable.name for column in bound for variable in variables_of_term(atom.arguments[column])}
    elsewhere = {variable.name for literal in body_without(rule, atom) for variable in variables(literal)} | demanding
    elsewhere |= {variable.name for column in bound for variable in variables_of_term(rule.head.arguments[column])}
    return elsewhere.isdisjoint(names) and demanding <= passable_variables(rule, atom, bound)


def passable_variables(rule: Rule, atom: Atom, bound: tuple[int, ...]) -> set[str]:
    """Return the variables that can be passed to the recursive atom after all other literals."""
    start = Atom("", tuple(variable for column in bound for variable in variables_of_term(rule.head.arguments[column])))
    if any(not isinstance(rule.head.arguments[column], (VariableTerm, ConstantTerm)) for column in bound):
        return set()
    passing = SidewaysPassing(start)
    for literal in sideways_order(body_without(rule, atom), start):
        passing.visit(literal, literal)
    return passing.passable(inside=True)


def body_without(rule: Rule, atom: Atom) -> list[Literal]:
    """Return the body of a rule without one atom."""
    return [literal for literal in literals(rule) if literal is not atom]


def first_arguments(adorned: AdornedRelation) -> tuple[VariableTerm, ...]:
    """Return variables for the arguments that demand started from."""
    return tuple(VariableTerm(f"first#{column}", adorned.relation.at) for column in adorned.bound)
