"""The rules of a recursion over lane values, and the order in which a change evaluates the body of each rule.

Relations are numbered: first those that the rules derive, then those that they read. A term is a variable's name or a
lane value. An `EvaluationOrder` starts with the atom that has new rows. A comparison follows when its variables are
bound; otherwise the atom with the most bound terms follows. No atom holds a variable twice: `rule` builds a
`RecursionRule` and replaces a repeated variable by a comparison.
"""

from __future__ import annotations

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


Literal: TypeAlias = RecursionAtom | RecursionComparison


@dataclass(frozen=True, slots=True)
class RecursionRule:
    """A rule: the head holds wherever all literals of the body hold."""

    head: RecursionAtom
    body: tuple[Literal, ...]


@dataclass(frozen=True, slots=True)
class RuleSystem:
    """Mutually recursive rules. The first `derived` relations are derived; `arities` has every relation's arity."""

    name: str
    arities: tuple[int, ...]
    derived: int
    rules: tuple[RecursionRule, ...]
    max_rounds: int
    insert_only: bool = True
    held: SymbolHold | None = field(default=None, compare=False)  # keeps the symbols that occur in rules alive


@dataclass(frozen=True, slots=True)
class EvaluationOrder:
    """The order in which a rule is evaluated from the new rows of one of its atoms, `start`."""

    head: RecursionAtom
    start: RecursionAtom
    steps: tuple[Literal, ...]


def rule(head: RecursionAtom, body: tuple[Literal, ...]) -> RecursionRule:
    """Build a rule in which no atom holds a variable twice."""
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
    terms = literal.terms if isinstance(literal, RecursionAtom) else (literal.left, literal.right)
    return {term for term in terms if isinstance(term, str)}


def evaluation_orders(rules: tuple[RecursionRule, ...], relation: int) -> list[EvaluationOrder]:
    """Return one evaluation order for each atom of the relation in each body."""
    return [
        evaluation_order(rule, position)
        for rule in rules
        for position, literal in enumerate(rule.body)
        if isinstance(literal, RecursionAtom) and literal.relation == relation
    ]


def evaluation_order(rule: RecursionRule, position: int) -> EvaluationOrder:
    """Order the body of a rule, starting with the atom at a position."""
    start = rule.body[position]
    assert isinstance(start, RecursionAtom)
    waiting = [literal for number, literal in enumerate(rule.body) if number != position]
    bound, steps = variables(start), list[Literal]()
    while waiting:
        ready = [
            literal for literal in waiting if isinstance(literal, RecursionComparison) and variables(literal) <= bound
        ]
        literal = ready[0] if ready else max(waiting, key=lambda literal: bound_terms(literal, bound))
        waiting.remove(literal)
        steps.append(literal)
        bound |= variables(literal)
    return EvaluationOrder(rule.head, start, tuple(steps))


def bound_terms(literal: Literal, bound: set[str]) -> int:
    """Return the number of bound terms of an atom; -1 for a comparison, which must wait for its variables."""
    if isinstance(literal, RecursionComparison):
        return -1
    return sum(isinstance(term, int) or term in bound for term in literal.terms)
