"""The steps that a rule takes from left to right, by binary joins.

    p(x, z) :- q(x, y), r(y, z), x < z, !s(z).
        scan q  |  join r on y  |  where x < z  |  without s on z  |  emit

A join of two at a time, whose intermediate results are indexed. Steps carry only the variables that later ones read.
How else a rule may be joined is told in `kpg/query/delta_pipelines.py`, and which way is chosen in `kpg/query/join_strategy.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from kpg.query.ir.body_variables import definitions, is_ready, literals, uses
from kpg.query.ir.functors import FUNCTORS
from kpg.query.ir.literals import Atom, Comparison, Literal, Negation, Test, variables
from kpg.query.ir.program import Rule
from kpg.query.ir.show import show, show_term
from kpg.query.ir.terms import CallTerm, ConstantTerm, Kind, Term, VariableTerm, WildcardTerm


@dataclass(frozen=True, slots=True)
class ScanStep:
    """Begin with the rows of an atom."""

    atom: Atom

    def __str__(self) -> str:
        return f"scan {show(self.atom)}"


@dataclass(frozen=True, slots=True)
class JoinStep:
    """Meet the rows of an atom on some columns: (variable, column of the atom)."""

    atom: Atom
    on: tuple[tuple[str, int], ...]

    def __str__(self) -> str:
        names = ", ".join(name for name, _ in self.on)
        return f"join {show(self.atom)} on {names}" if names else f"product with {show(self.atom)}"


@dataclass(frozen=True, slots=True)
class AntiJoinStep:
    """Drop what meets the rows of an atom on some columns."""

    atom: Atom
    on: tuple[tuple[str, int], ...]

    def __str__(self) -> str:
        return f"without {show(self.atom)}"


@dataclass(frozen=True, slots=True)
class FilterStep:
    """Keep rows on which a condition holds."""

    condition: Comparison | Test

    def __str__(self) -> str:
        return f"where {show(self.condition)}"


@dataclass(frozen=True, slots=True)
class BindStep:
    """Compute a variable."""

    variable: str
    term: Term

    def __str__(self) -> str:
        return f"let {self.variable} = {show_term(self.term)}"


@dataclass(frozen=True, slots=True)
class GenerateStep:
    """Any number of values for a variable, from a functor that gives several."""

    variable: str
    call: CallTerm
    kind: Kind

    def __str__(self) -> str:
        return f"each {self.variable} of {show_term(self.call)}"


Step: TypeAlias = ScanStep | JoinStep | AntiJoinStep | FilterStep | BindStep | GenerateStep


def steps_of(rule: Rule) -> tuple[Step, ...]:
    """The steps of a body, literal by literal."""
    bound: set[str] = set()
    steps: list[Step] = []
    for literal in literals(rule):
        steps.append(step_of(literal, bound, rule, first=not steps))
        bound |= uses(literal)
    return tuple(steps)


def step_of(literal: Literal, bound: set[str], rule: Rule, first: bool) -> Step:
    """What a literal does, given what is bound."""
    match literal:
        case Atom():
            return ScanStep(literal) if first else JoinStep(literal, meeting(literal, bound))
        case Negation():
            assert isinstance(literal.formula, Atom)
            return AntiJoinStep(literal.formula, meeting(literal.formula, bound))
        case Comparison():
            for variable, term in definitions(literal):
                if variable.name not in bound and is_ready(term, bound):
                    if isinstance(term, CallTerm) and FUNCTORS[term.functor].generates:
                        return GenerateStep(variable.name, term, rule.kind_of(variable.name))
                    return BindStep(variable.name, term)
    return FilterStep(literal)


def meeting(atom: Atom, bound: set[str]) -> tuple[tuple[str, int], ...]:
    """Which bound variables stand at which columns of an atom, each once."""
    found: dict[str, int] = {}
    for place, term in enumerate(atom.arguments):
        if isinstance(term, VariableTerm) and term.name in bound:
            found.setdefault(term.name, place)
    return tuple(found.items())


def live_after(rule: Rule, steps: tuple[Step, ...]) -> tuple[frozenset[str], ...]:
    """The variables that are read after each step."""
    needed = {variable.name for variable in variables(rule.head)}
    live: list[frozenset[str]] = []
    for literal in reversed(literals(rule)):
        live.append(frozenset(needed))
        needed |= uses(literal)
    return tuple(live[::-1])


def is_set(rule: Rule) -> bool:
    """Whether a rule derives each row once: its head tells apart all solutions of its body."""
    told = {term.name for term in rule.head.arguments if isinstance(term, VariableTerm)}
    body = literals(rule)
    for literal in body:
        if isinstance(literal, Atom) and any(isinstance(term, WildcardTerm) for term in literal.arguments):
            return False
    while True:
        more = {
            variable.name
            for literal in body
            for variable, term in definitions(literal)
            if variable.name not in told and is_ready(term, told) and not generates(term)
        }
        if not more:
            break
        told |= more
    return all(variable.name in told for literal in body for variable in variables(literal))


def generates(term: Term) -> bool:
    """Whether a term stands for several values."""
    return isinstance(term, CallTerm) and FUNCTORS[term.functor].generates


def fixed_columns(atom: Atom) -> list[tuple[int, ConstantTerm]]:
    """The columns of an atom that must hold a constant."""
    return [(place, term) for place, term in enumerate(atom.arguments) if isinstance(term, ConstantTerm)]


def repeated_columns(atom: Atom) -> list[tuple[int, int]]:
    """Pairs of columns of an atom that must be equal, because a variable stands at both."""
    first: dict[str, int] = {}
    pairs = []
    for place, term in enumerate(atom.arguments):
        if isinstance(term, VariableTerm):
            if term.name in first:
                pairs.append((first[term.name], place))
            first.setdefault(term.name, place)
    return pairs
