"""Which literals of a body use the value of an equation that fails: the analysis behind the oracle for errors.

A literal uses the value of `z = e` if it contains z, or a variable defined from z. So does a literal with a variable
that only such literals bind, and an atom that only they connect with the arguments of e. Nothing is evaluated here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, count

from kpg.query.ir.literals import Atom, Comparison, Formula, Negation, all_variables, variables
from kpg.query.ir.terms import AggregateTerm, CallTerm, ConstantTerm, Term, VariableTerm


def flattened(body: Sequence[Formula]) -> list[Formula]:
    """Return literals with equations for the computed arguments of atoms."""
    numbers = count()
    equations: list[Formula] = []

    def flat(term: Term) -> Term:
        if not isinstance(term, (CallTerm, AggregateTerm)):
            return term
        variable = VariableTerm(f"#{next(numbers)}")
        equations.append(Comparison("=", variable, term))
        return variable

    literals: list[Formula] = []
    for literal in body:
        if isinstance(literal, Atom):
            literal = Atom(literal.relation, tuple(map(flat, literal.arguments)))
        elif isinstance(literal, Negation) and isinstance(literal.formula, Atom):
            literal = Negation(Atom(literal.formula.relation, tuple(map(flat, literal.formula.arguments))))
        literals.append(literal)
    return literals + equations


def names_of(literal: Formula, outer: set[str]) -> set[str]:
    """Return the variables of a literal; of an aggregate those that also occur outside of it."""
    return {variable.name for variable in variables(literal)} | {
        variable.name for variable in all_variables(literal) if variable.name in outer
    }


def sides(literal: Formula) -> Iterator[tuple[str, Term]]:
    """Yield (variable, term) for the sides of an equation that may define a variable."""
    if isinstance(literal, Comparison) and literal.op == "=":
        for side, other in ((literal.left, literal.right), (literal.right, literal.left)):
            if isinstance(side, VariableTerm):
                yield side.name, other


def definition(literal: Formula, literals: list[Formula], bound: set[str], outer: set[str]) -> tuple[str, Term] | None:
    """Return the variable and the term if a literal defines a variable that the arguments of the term do not need."""
    for name, term in sides(literal):
        needed = names_of(Comparison("=", ConstantTerm(0, None), term), outer)
        tainted = defined_from(name, literals, outer)
        free = [other for other in literals if not names_of(other, outer) & tainted]
        if name not in bound and needed <= bindable(free, bound, outer) and not isinstance(term, VariableTerm):
            return name, term
    return None


def defined_from(name: str, literals: list[Formula], outer: set[str]) -> set[str]:
    """Return a variable, and those that only equations define, from it."""
    tainted = {name}
    in_atoms = {other for literal in literals if isinstance(literal, Atom) for other in names_of(literal, outer)}
    while True:
        more = {
            other
            for literal in literals
            for other, term in sides(literal)
            if names_of(Comparison("=", ConstantTerm(0, None), term), outer) & tainted and other not in in_atoms
        }
        if more <= tainted:
            return tainted
        tainted |= more


def bindable(literals: Iterable[Formula], bound: set[str], outer: set[str]) -> set[str]:
    """Return the variables that some literals bind."""
    literals = list(literals)
    names = bound | {name for literal in literals if isinstance(literal, Atom) for name in names_of(literal, outer)}
    while True:
        more = {
            name
            for literal in literals
            for name, term in sides(literal)
            if names_of(Comparison("=", ConstantTerm(0, None), term), outer) <= names
        }
        if more <= names:
            return names
        names |= more


def users_of(index: int, literals: list[Formula], bound: set[str], outer: set[str]) -> set[int]:
    """Return the literals that use the value of an equation: directly, or connected with it by such atoms alone."""
    variable_and_term = definition(literals[index], literals, bound, outer)
    assert variable_and_term is not None
    values, users = {variable_and_term[0]}, {index}
    while True:
        more = {i for i, literal in enumerate(literals) if names_of(literal, outer) & values} - users
        if not more:
            break
        users |= more
        for user in more:
            defined = definition(literals[user], literals, bound, outer)
            values |= {defined[0]} if defined else set()
    while True:
        more = unbound_without(users, literals, bound, outer) | unconnected(index, users, literals, bound, outer)
        if not more:
            return users
        users |= more


def needs(literal: Formula, literals: list[Formula], bound: set[str], outer: set[str]) -> set[str]:
    """Return the variables that the term of a defining equation needs."""
    variable_and_term = definition(literal, literals, bound, outer)
    assert variable_and_term is not None
    return names_of(Comparison("=", ConstantTerm(0, None), variable_and_term[1]), outer)


def unbound_without(users: set[int], literals: list[Formula], bound: set[str], outer: set[str]) -> set[int]:
    """Return the other literals with variables that only the users bind."""
    rest = [index for index in range(len(literals)) if index not in users]
    known = bindable([literals[index] for index in rest], bound, outer)
    return {index for index in rest if not names_of(literals[index], outer) <= known}


def unconnected(index: int, users: set[int], literals: list[Formula], bound: set[str], outer: set[str]) -> set[int]:
    """Return the other literals that only atoms among the users connect with the arguments of an equation."""
    arguments = names_of(literals[index], outer)
    joined = {n for user in users if isinstance(literals[user], Atom) for n in names_of(literals[user], outer)} - bound
    literals_apart: set[int] = set()
    for part in connected(literals, users, bound, outer):
        names = {name for i in part for name in names_of(literals[i], outer)} - bound
        if names & joined and not names & arguments:
            literals_apart |= part
    return literals_apart


def connected(literals: list[Formula], without: set[int], bound: set[str], outer: set[str]) -> list[set[int]]:
    """Return the other literals in parts that share no variables."""
    parts = [{index} for index in range(len(literals)) if index not in without]

    def names(part: set[int]) -> set[str]:
        return {name for index in part for name in names_of(literals[index], outer)} - bound

    while True:
        pair = next(((a, b) for a, b in combinations(parts, 2) if names(a) & names(b)), None)
        if pair is None:
            return parts
        parts = [part for part in parts if part not in pair] + [pair[0] | pair[1]]
