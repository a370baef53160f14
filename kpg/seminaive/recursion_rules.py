"""Rules of a recursion on lanes, and in which order each is evaluated from a change.

Relations are numbered: first those that the rules derive, then those they read. A term is a variable's name or a lane
value. A `EvaluationOrder` begins with the atom whose rows are new; then each literal as soon as it can be, atoms that meet what
is bound before others. No atom has a variable twice: `RecursionRule` is made by `rule`, which puts a comparison in its place.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from kpg.columns.symbols import SymbolHold

Term: TypeAlias = str | int


@dataclass(frozen=True, slots=True)
class RecursionAtom:
    """Rows of a relation; None stands for any value."""

    relation: int
    terms: tuple[Term | None, ...]


@dataclass(frozen=True, slots=True)
class RecursionComparison:
    """Two terms compare so: = != < <= > >=."""

    op: str
    left: Term
    right: Term


Literal: TypeAlias = RecursionAtom | RecursionComparison


@dataclass(frozen=True, slots=True)
class RecursionRule:
    """The head holds wherever the body does."""

    head: RecursionAtom
    body: tuple[Literal, ...]


@dataclass(frozen=True, slots=True)
class RuleSystem:
    """Rules for the first `derived` of some relations, by how many columns each has."""

    name: str
    arities: tuple[int, ...]
    derived: int
    rules: tuple[RecursionRule, ...]
    max_rounds: int
    only_grows: bool = True
    held: SymbolHold | None = field(default=None, compare=False)  # the symbols that stand in rules


@dataclass(frozen=True, slots=True)
class EvaluationOrder:
    """A rule evaluated from the new rows of one of its atoms: what follows, in order."""

    head: RecursionAtom
    start: RecursionAtom
    steps: tuple[Literal, ...]


def rule(head: RecursionAtom, body: tuple[Literal, ...]) -> RecursionRule:
    """A rule in which no atom has a variable twice."""
    made: list[Literal] = []
    for number, literal in enumerate(body):
        made += single(literal, f"#{number}") if isinstance(literal, RecursionAtom) else [literal]
    return RecursionRule(head, tuple(made))


def single(atom: RecursionAtom, mark: str) -> list[Literal]:
    """An atom, and what its repeated variables say."""
    terms: list[Term | None] = []
    equal: list[Literal] = []
    for place, term in enumerate(atom.terms):
        if isinstance(term, str) and term in terms:
            equal.append(RecursionComparison("=", f"{term}{mark}.{place}", term))
            term = f"{term}{mark}.{place}"
        terms.append(term)
    return [RecursionAtom(atom.relation, tuple(terms)), *equal]


def variables(literal: Literal) -> set[str]:
    """The variables of a literal."""
    terms = literal.terms if isinstance(literal, RecursionAtom) else (literal.left, literal.right)
    return {term for term in terms if isinstance(term, str)}


def courses(rules: tuple[RecursionRule, ...], relation: int) -> list[EvaluationOrder]:
    """Every way in which new rows of a relation may add something."""
    return [
        course(rule, place)
        for rule in rules
        for place, literal in enumerate(rule.body)
        if isinstance(literal, RecursionAtom) and literal.relation == relation
    ]


def course(rule: RecursionRule, place: int) -> EvaluationOrder:
    """A rule in order, beginning with the atom at a place."""
    start = rule.body[place]
    assert isinstance(start, RecursionAtom)
    waiting = [literal for number, literal in enumerate(rule.body) if number != place]
    bound, steps = variables(start), list[Literal]()
    while waiting:
        ready = [
            literal for literal in waiting if isinstance(literal, RecursionComparison) and variables(literal) <= bound
        ]
        literal = ready[0] if ready else max(waiting, key=lambda each: meets(each, bound))
        waiting.remove(literal)
        steps.append(literal)
        bound |= variables(literal)
    return EvaluationOrder(rule.head, start, tuple(steps))


def meets(literal: Literal, bound: set[str]) -> int:
    """How many terms of an atom are known; a comparison that is not ready waits."""
    if isinstance(literal, RecursionComparison):
        return -1
    return sum(isinstance(term, int) or term in bound for term in literal.terms)
