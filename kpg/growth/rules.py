"""Rules of a recursion on lanes, and in which order each is evaluated from a change.

Relations are numbered: first those that the rules derive, then those they read. A term is a variable's name or a lane
value. A `Course` begins with the atom whose rows are new; then each literal as soon as it can be, atoms that meet what
is bound before others. No atom has a variable twice: `Rule` is made by `rule`, which puts a comparison in its place.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from kpg.columns.symbols import Held

Term: TypeAlias = str | int


@dataclass(frozen=True, slots=True)
class Atom:
    """Rows of a relation; None stands for any value."""

    relation: int
    terms: tuple[Term | None, ...]


@dataclass(frozen=True, slots=True)
class Compare:
    """Two terms compare so: = != < <= > >=."""

    op: str
    left: Term
    right: Term


Literal: TypeAlias = Atom | Compare


@dataclass(frozen=True, slots=True)
class Rule:
    """The head holds wherever the body does."""

    head: Atom
    body: tuple[Literal, ...]


@dataclass(frozen=True, slots=True)
class System:
    """Rules for the first `derived` of some relations, by how many columns each has."""

    name: str
    arities: tuple[int, ...]
    derived: int
    rules: tuple[Rule, ...]
    max_rounds: int
    only_grows: bool = True
    held: Held | None = field(default=None, compare=False)  # the symbols that stand in rules


@dataclass(frozen=True, slots=True)
class Course:
    """A rule evaluated from the new rows of one of its atoms: what follows, in order."""

    head: Atom
    start: Atom
    steps: tuple[Literal, ...]


def rule(head: Atom, body: tuple[Literal, ...]) -> Rule:
    """A rule in which no atom has a variable twice."""
    made: list[Literal] = []
    for number, literal in enumerate(body):
        made += single(literal, f"#{number}") if isinstance(literal, Atom) else [literal]
    return Rule(head, tuple(made))


def single(atom: Atom, mark: str) -> list[Literal]:
    """An atom, and what its repeated variables say."""
    terms: list[Term | None] = []
    equal: list[Literal] = []
    for place, term in enumerate(atom.terms):
        if isinstance(term, str) and term in terms:
            equal.append(Compare("=", f"{term}{mark}.{place}", term))
            term = f"{term}{mark}.{place}"
        terms.append(term)
    return [Atom(atom.relation, tuple(terms)), *equal]


def variables(literal: Literal) -> set[str]:
    """The variables of a literal."""
    terms = literal.terms if isinstance(literal, Atom) else (literal.left, literal.right)
    return {term for term in terms if isinstance(term, str)}


def courses(rules: tuple[Rule, ...], relation: int) -> list[Course]:
    """Every way in which new rows of a relation may add something."""
    return [
        course(rule, place)
        for rule in rules
        for place, literal in enumerate(rule.body)
        if isinstance(literal, Atom) and literal.relation == relation
    ]


def course(rule: Rule, place: int) -> Course:
    """A rule in order, beginning with the atom at a place."""
    start = rule.body[place]
    assert isinstance(start, Atom)
    waiting = [literal for number, literal in enumerate(rule.body) if number != place]
    bound, steps = variables(start), list[Literal]()
    while waiting:
        ready = [literal for literal in waiting if isinstance(literal, Compare) and variables(literal) <= bound]
        literal = ready[0] if ready else max(waiting, key=lambda each: meets(each, bound))
        waiting.remove(literal)
        steps.append(literal)
        bound |= variables(literal)
    return Course(rule.head, start, tuple(steps))


def meets(literal: Literal, bound: set[str]) -> int:
    """How many terms of an atom are known; a comparison that is not ready waits."""
    if isinstance(literal, Compare):
        return -1
    return sum(isinstance(term, int) or term in bound for term in literal.terms)
