"""The rules of a recursion over lane values, and the order in which a change evaluates the body of each rule.

Relations are numbered: first those that the rules derive, then those that they read. A term is a variable's name or a
lane value. An `EvaluationOrder` starts with the atom that has new rows. A comparison follows when its variables are
bound; otherwise the atom with the most bound terms follows. No atom holds a variable twice: `rule` builds a
`RecursionRule` and replaces a repeated variable by a comparison.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from kpg.columns.symbols import SymbolHold

Term: TypeAlias = str | int


@dataclass(frozen=True, slots=True)
class RecursionAtom:
    """Rows of a relation that match some terms. None matches any value."""

    relation: int
    terms: tuple[Term | None, ...]


@dataclass(frozen=True, slots=True)
class RecursionComparison:
    """A comparison of two terms; `op` is one of = != < <= > >=."""

    op: str
    left: Term
    right: Term


@dataclass(frozen=True, slots=True)
class RecursionNegation:
    """Holds if the relation has no row that matches the atom. The rules must not derive the relation."""

    atom: RecursionAtom


Literal: TypeAlias = RecursionAtom | RecursionComparison | RecursionNegation


@dataclass(frozen=True, slots=True)
class RecursionRule:
    """A rule: the head holds wherever all literals of the body hold."""

    head: RecursionAtom
    body: tuple[Literal, ...]


@dataclass(frozen=True, slots=True)
class RuleSystem:
    """Mutually recursive rules. The first `derived` relations are derived; `arities` has every relation's arity.

    The last relations may be `copies`: each holds the rows that were inserted from outside into a derived relation.
    Of these it may leave out the rows whose `ends` are equal, in each of some pairs of columns.
    """

    name: str
    arities: tuple[int, ...]
    derived: int
    rules: tuple[RecursionRule, ...]
    max_rounds: int
    insert_only: bool = True
    held: SymbolHold | None = field(default=None, compare=False)  # keeps the symbols that occur in rules alive
    copies: tuple[int, ...] = ()
    ends: tuple[tuple[tuple[int, int], ...], ...] = ()  # of each copy

    @property
    def has_symbols(self) -> bool:
        """Whether a rule contains a symbol of the db as a constant."""
        return self.held is not None and len(self.held.ids) > 0


@dataclass(frozen=True, slots=True)
class EvaluationOrder:
    """The order in which a rule is evaluated from the new rows of one of its atoms, `start`.

    Derived atoms before `start` in the body need only the rows of earlier rounds (`earlier`): the order that starts
    with them joins their new rows with all rows.
    """

    head: RecursionAtom
    start: RecursionAtom
    steps: tuple[Literal, ...]
    earlier: frozenset[RecursionAtom]


def rule(head: RecursionAtom, body: tuple[Literal, ...]) -> RecursionRule:
    """Build a rule in which no atom holds a variable twice, except negated ones."""
    literals: list[Literal] = []
    for number, literal in enumerate(body):
        literals += split_repeated(literal, f"#{number}") if isinstance(literal, RecursionAtom) else [literal]
    return RecursionRule(head, tuple(literals))


def split_repeated(atom: RecursionAtom, suffix: str) -> list[Literal]:
    """Replace each repeated variable of an atom by a fresh one, and add the equation between the two."""
    terms: list[Term | None] = []
    equations: list[Literal] = []
    for column, term in enumerate(atom.terms):
        if isinstance(term, str) and term in terms:
            equations.append(RecursionComparison("=", f"{term}{suffix}.{column}", term))
            term = f"{term}{suffix}.{column}"
        terms.append(term)
    return [RecursionAtom(atom.relation, tuple(terms)), *equations]


def variables(literal: Literal) -> set[str]:
    """Return the variables of a literal."""
    if isinstance(literal, RecursionNegation):
        return variables(literal.atom)
    terms = literal.terms if isinstance(literal, RecursionAtom) else (literal.left, literal.right)
    return {term for term in terms if isinstance(term, str)}


def atoms_of(rule: RecursionRule) -> list[RecursionAtom]:
    """Return the head of a rule and all atoms of its body, negated ones included."""
    atoms = [rule.head]
    for literal in rule.body:
        if not isinstance(literal, RecursionComparison):
            atoms.append(literal.atom if isinstance(literal, RecursionNegation) else literal)
    return atoms


def evaluation_orders(rules: tuple[RecursionRule, ...], relation: int, derived: int) -> list[EvaluationOrder]:
    """Return one evaluation order for each atom of the relation in each body; the first `derived` are derived."""
    return [
        EvaluationOrder(
            rule.head,
            literal,
            ordered(without(rule.body, position), variables(literal), bound_terms),
            derived_atoms_of(rule.body[:position], derived) if relation < derived else frozenset(),
        )
        for rule in rules
        for position, literal in enumerate(rule.body)
        if isinstance(literal, RecursionAtom) and literal.relation == relation
    ]


def derived_atoms_of(body: tuple[Literal, ...], derived: int) -> frozenset[RecursionAtom]:
    """Return the atoms of derived relations."""
    return frozenset(literal for literal in body if isinstance(literal, RecursionAtom) and literal.relation < derived)


def without(body: tuple[Literal, ...], position: int) -> tuple[Literal, ...]:
    """Return a body without the literal at a position."""
    return body[:position] + body[position + 1 :]


Preference: TypeAlias = Callable[[RecursionAtom, set[str]], tuple[int, ...]]


def ordered(body: tuple[Literal, ...], bound: set[str], preference: Preference) -> tuple[Literal, ...]:
    """Order literals: each comparison and negation once its variables are bound, otherwise the most preferred atom."""
    waiting, steps, bound = list(body), list[Literal](), set(bound)
    while waiting:
        tests = [literal for literal in waiting if not isinstance(literal, RecursionAtom)]
        ready = [literal for literal in tests if variables(literal) <= bound]
        atoms = [literal for literal in waiting if isinstance(literal, RecursionAtom)]
        literal = ready[0] if ready else max(atoms, key=lambda atom: preference(atom, bound))
        waiting.remove(literal)
        steps.append(literal)
        bound |= variables(literal)
    return tuple(steps)


def bound_terms(atom: RecursionAtom, bound: set[str]) -> tuple[int, ...]:
    """Return the number of bound terms of an atom."""
    return (sum(isinstance(term, int) or term in bound for term in atom.terms),)
