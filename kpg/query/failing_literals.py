"""Literals that can fail: when they are evaluated, and which of the other literals must hold for an error to count.

An expression that fails on a tuple counts only if every literal that does not use its value holds. Literals that use
it are ignored:

    r(z) :- a(x, y), z = x / y, b(z), y != 0.      no error for a(8, 0): y != 0 is false, and does not use z
    r(z) :- a(x, y), z = x / y, b(z).              an error for a(8, 0) for any rows of b: b(z) uses z

A literal uses a value if it contains the expression, or a variable that is computed from it. So does a literal with a
variable that only such literals bind, and an atom that only they connect with the arguments of the expression: it has
no row to be looked up by.

    r(x) :- a(x), b(x + 1, y), y > x.              an error if x + 1 overflows, for any rows of b: only b binds y

    late literal     no atom uses its value. It is evaluated after all atoms: see kpg/query/late_steps.py
    early literal    an atom uses its value, which must be computed before. If literals that do not use the value come
                     later, or some that use it come earlier, the rule itself is silent about the failure, and rules
                     for its errors are added: the literals that do not use the value, restricted to tuples that fail

The errors of several early literals depend on each other's atoms. There is one rule for each set of literals that fail
together; with more than MAX_EARLY_LITERALS only one for each literal, without the atoms that use the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, replace
from itertools import combinations

from kpg.query.ir.body_variables import bound_by, definitions, is_computable, literals, variable_names
from kpg.query.ir.fallible_terms import FAILS, literal_can_fail
from kpg.query.ir.literals import Atom, Comparison, Conjunction, Literal, Negation, Test
from kpg.query.ir.program import Rule
from kpg.query.ir.rewrites.order_joins import in_order
from kpg.query.ir.terms import Term, VariableTerm, WildcardTerm
from kpg.query.ir.terms import variables as variables_of_term

MAX_EARLY_LITERALS = 3  # each set of them gets a rule: 2^3 - 1


@dataclass(frozen=True, slots=True)
class FallibleBody:
    """A body in order of evaluation: literals up to the last atom, then late ones. Literals are named by position."""

    body: tuple[Literal, ...]
    early: tuple[int, ...]
    late: tuple[int, ...]
    users: dict[int, frozenset[int]]  # of each early literal: those that use its value, and itself

    @property
    def before_late(self) -> tuple[Literal, ...]:
        """The literals that are not late."""
        return self._at(position for position in range(len(self.body)) if position not in self.late)

    @property
    def late_literals(self) -> tuple[Literal, ...]:
        """The late literals, in order."""
        return self._at(iter(self.late))

    @property
    def early_literals(self) -> tuple[Literal, ...]:
        """The early literals, in order."""
        return self._at(iter(self.early))

    def is_exact(self) -> bool:
        """Return whether each early literal is evaluated after all literals that do not use its value, and only these.

        A user can come before: an atom that has no variable of the literal, and that only other users connect with it.
        """
        order = [position for position in range(len(self.body)) if position not in self.late] + list(self.late)
        return all(set(order[order.index(early) :]) == self.users[early] for early in self.early)

    def _at(self, positions: Iterator[int]) -> tuple[Literal, ...]:
        return tuple(self.body[position] for position in positions)


def fallible_body(rule: Rule) -> FallibleBody:
    """Return the body of a rule, which is in order of evaluation, with its early and late literals."""
    body = literals(rule)
    defined = definitions_of(body)
    early: list[int] = []
    late: set[int] = set()
    users: dict[int, frozenset[int]] = {}
    for position, literal in enumerate(body):
        if not literal_can_fail(literal):
            continue
        using = users_of(body, position, defined)
        if any(isinstance(body[user], (Atom, Negation)) for user in using):
            early.append(position)
            users[position] = with_dependent_literals(body, position, using)
        else:
            late |= using
    return FallibleBody(body, tuple(early), tuple(sorted(late)), users)


def definitions_of(body: Sequence[Literal]) -> dict[int, tuple[str, Term]]:
    """Return the variable and the term of each literal that defines a variable, in a body in order of evaluation."""
    bound: set[str] = set()
    defined: dict[int, tuple[str, Term]] = {}
    for position, literal in enumerate(body):
        for variable, term in definitions(literal):
            if variable.name not in bound and is_computable(term, bound):
                defined[position] = variable.name, term
                break
        bound = bound_by([literal], bound)
    return defined


def users_of(body: Sequence[Literal], position: int, defined: dict[int, tuple[str, Term]]) -> set[int]:
    """Return the literals that use the value of a literal, and itself."""
    users = {position}
    values = {defined[position][0]} if position in defined else set()
    while True:
        using = {other for other, literal in enumerate(body) if variable_names(literal) & values} - users
        using -= set() if values else using
        if not using:
            return users
        users |= using
        values |= {defined[user][0] for user in using if user in defined}


def with_dependent_literals(body: Sequence[Literal], position: int, users: set[int]) -> frozenset[int]:
    """Return the users of a value, and the literals that nothing else binds or connects with the value's arguments."""
    while True:
        dependent = unbound_literals(body, users) | unconnected_literals(body, position, users)
        if not dependent:
            return frozenset(users)
        users = users | dependent


def unbound_literals(body: Sequence[Literal], without: Set[int]) -> set[int]:
    """Return the literals, except some, with variables that only these bind."""
    rest = [position for position in range(len(body)) if position not in without]
    bound = bound_by(body[position] for position in rest)
    return {position for position in rest if not variable_names(body[position]) <= bound}


def unconnected_literals(body: Sequence[Literal], position: int, users: Set[int]) -> set[int]:
    """Return the literals that only the atoms among the users of a value connect with its arguments."""
    arguments = variable_names(body[position])
    bound_by_users = {name for user in users if isinstance(body[user], Atom) for name in variable_names(body[user])}
    unconnected: set[int] = set()
    for part in connected_parts(body, users):
        names = {name for other in part for name in variable_names(body[other])}
        if names & bound_by_users and not names & arguments:
            unconnected |= part
    return unconnected


def connected_parts(body: Sequence[Literal], without: Set[int]) -> list[set[int]]:
    """Return the literals, except some, in parts that share no variables."""
    parts: list[tuple[set[int], set[str]]] = []
    for position, literal in enumerate(body):
        if position in without:
            continue
        members, names = {position}, set(variable_names(literal))
        apart = []
        for part, part_names in parts:
            if part_names & names:
                members |= part
                names |= part_names
            else:
                apart.append((part, part_names))
        parts = [*apart, (members, names)]
    return [members for members, _ in parts]


def error_rules(rule: Rule, fallible: FallibleBody) -> list[Rule]:
    """Return the rules for the errors of early literals: one for each set of literals that fail together."""
    if len(fallible.early) > MAX_EARLY_LITERALS:
        return [error_rule(rule, fallible, (early,), others(fallible, early)) for early in fallible.early]
    sets = [
        failing
        for size in range(1, len(fallible.early) + 1)
        for failing in combinations(fallible.early, size)
        if are_independent(fallible, failing)
    ]
    return [error_rule(rule, fallible, failing, failing) for failing in sets]


def are_independent(fallible: FallibleBody, failing: Sequence[int]) -> bool:
    """Return whether each of some literals can be computed without those that use the values of the others."""
    if any(b in fallible.users[a] or a in fallible.users[b] for a, b in combinations(failing, 2)):
        return False
    bound = bound_by(fallible.body[position] for position in kept_literals(fallible, failing))
    return all(is_computable(defining_term(fallible.body[position]), bound) for position in failing)


def kept_literals(fallible: FallibleBody, ignored: Sequence[int]) -> list[int]:
    """Return the literals that can be evaluated if the values of some early literals are not known."""
    dropped = frozenset().union(*(fallible.users[position] for position in ignored))
    dropped |= unbound_literals(fallible.body, dropped)
    return [position for position in range(len(fallible.body)) if position not in dropped]


def others(fallible: FallibleBody, early: int) -> tuple[int, ...]:
    """Return an early literal, and those that neither use its value nor compute what it needs."""
    independent = tuple(other for other in fallible.early if other == early or early not in fallible.users[other])
    bound = bound_by(fallible.body[position] for position in kept_literals(fallible, independent))
    return independent if is_computable(defining_term(fallible.body[early]), bound) else (early,)


def error_rule(rule: Rule, fallible: FallibleBody, failing: Sequence[int], ignored: Sequence[int]) -> Rule:
    """Return the rule for tuples on which some literals fail, without the literals that use the values of `ignored`."""
    kept = [fallible.body[position] for position in kept_literals(fallible, ignored)]
    computed = [fallible.body[position] for position in failing]
    terms = tuple(defining_term(literal) for literal in computed)
    tests = [Test(FAILS, (term,), True, literal.at) for literal, term in zip(computed, terms, strict=True)]
    start = frozenset(variable.name for term in terms for variable in variables_of_term(term))
    body = (*in_order([*kept, *tests], start), *computed)
    wildcards = tuple(WildcardTerm(rule.at) for _ in rule.head.arguments)
    head = replace(rule.head, arguments=wildcards)
    return replace(rule, heads=(head,), body=Conjunction(body, rule.body.at), role="errors")


def defining_term(literal: Literal) -> Term:
    """Return the term that an equation sets a variable to."""
    assert isinstance(literal, Comparison)
    return literal.left if isinstance(literal.right, VariableTerm) else literal.right
