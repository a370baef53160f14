"""Plan a rule as binary joins, literal by literal from left to right.

    p(x, z) :- q(x, y), r(y, z), x < z, !s(z).
        scan q  |  join r on y  |  where x < z  |  without s on z  |  emit

Each step joins one more atom; intermediate results are indexed. Steps carry only the variables that later steps read.
The alternative is a delta query (kpg/query/delta_pipelines.py); kpg/query/join_strategy.py chooses between them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from kpg.query.ir.body_variables import definitions, is_computable, literals, variable_names
from kpg.query.ir.functors import FUNCTORS
from kpg.query.ir.literals import Atom, Comparison, Literal, Negation, Test, variables
from kpg.query.ir.program import Rule
from kpg.query.ir.show import show, show_term
from kpg.query.ir.terms import CallTerm, ConstantTerm, Kind, Term, VariableTerm, WildcardTerm


@dataclass(frozen=True, slots=True)
class ScanStep:
    """Start with the rows of an atom."""

    atom: Atom

    def __str__(self) -> str:
        return f"scan {show(self.atom)}"


@dataclass(frozen=True, slots=True)
class JoinStep:
    """Join the rows of an atom on some columns: (variable, column of the atom)."""

    atom: Atom
    on: tuple[tuple[str, int], ...]

    def __str__(self) -> str:
        names = ", ".join(name for name, _ in self.on)
        return f"join {show(self.atom)} on {names}" if names else f"product with {show(self.atom)}"


@dataclass(frozen=True, slots=True)
class AntiJoinStep:
    """Drop the rows that match a row of an atom on some columns."""

    atom: Atom
    on: tuple[tuple[str, int], ...]

    def __str__(self) -> str:
        return f"without {show(self.atom)}"


@dataclass(frozen=True, slots=True)
class FilterStep:
    """Keep the rows that satisfy a condition."""

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
    """Bind a variable to each value of a generator, such as range."""

    variable: str
    call: CallTerm
    kind: Kind

    def __str__(self) -> str:
        return f"each {self.variable} of {show_term(self.call)}"


Step: TypeAlias = ScanStep | JoinStep | AntiJoinStep | FilterStep | BindStep | GenerateStep


def steps_of(rule: Rule) -> tuple[Step, ...]:
    """Return the steps of a body, one for each literal."""
    bound: set[str] = set()
    steps: list[Step] = []
    for literal in literals(rule):
        steps.append(step_of(literal, bound, rule, first=not steps))
        bound |= variable_names(literal)
    return tuple(steps)


def step_of(literal: Literal, bound: set[str], rule: Rule, first: bool) -> Step:
    """Return the step of a literal, given the bound variables."""
    match literal:
        case Atom():
            return ScanStep(literal) if first else JoinStep(literal, join_columns(literal, bound))
        case Negation():
            assert isinstance(literal.formula, Atom)
            return AntiJoinStep(literal.formula, join_columns(literal.formula, bound))
        case Comparison():
            for variable, term in definitions(literal):
                if variable.name not in bound and is_computable(term, bound):
                    if isinstance(term, CallTerm) and generates(term):
                        return GenerateStep(variable.name, term, rule.kind_of(variable.name))
                    return BindStep(variable.name, term)
    return FilterStep(literal)


def join_columns(atom: Atom, bound: set[str]) -> tuple[tuple[str, int], ...]:
    """Return the bound variables of an atom with their columns, each variable once."""
    columns: dict[str, int] = {}
    for column, term in enumerate(atom.arguments):
        if isinstance(term, VariableTerm) and term.name in bound:
            columns.setdefault(term.name, column)
    return tuple(columns.items())


def live_after(rule: Rule, steps: tuple[Step, ...]) -> tuple[frozenset[str], ...]:
    """Return the variables that are read after each step."""
    needed = {variable.name for variable in variables(rule.head)}
    live: list[frozenset[str]] = []
    for literal in reversed(literals(rule)):
        live.append(frozenset(needed))
        needed |= variable_names(literal)
    return tuple(live[::-1])


def is_set(rule: Rule) -> bool:
    """Return whether a rule derives each row once: the head's variables determine each solution of the body."""
    determined = {term.name for term in rule.head.arguments if isinstance(term, VariableTerm)}
    body = literals(rule)
    for literal in body:
        if isinstance(literal, Atom) and any(isinstance(term, WildcardTerm) for term in literal.arguments):
            return False
    while True:
        more = {
            variable.name
            for literal in body
            for variable, term in definitions(literal)
            if variable.name not in determined and is_computable(term, determined) and not generates(term)
        }
        if not more:
            break
        determined |= more
    return all(variable.name in determined for literal in body for variable in variables(literal))


def generates(term: Term) -> bool:
    """Return whether a term generates several values."""
    return isinstance(term, CallTerm) and term.functor in FUNCTORS and FUNCTORS[term.functor].generates


def fixed_columns(atom: Atom) -> list[tuple[int, ConstantTerm]]:
    """Return the columns of an atom that must hold a constant."""
    return [(column, term) for column, term in enumerate(atom.arguments) if isinstance(term, ConstantTerm)]


def repeated_columns(atom: Atom) -> list[tuple[int, int]]:
    """Return the pairs of columns of an atom that must be equal because both contain the same variable."""
    first: dict[str, int] = {}
    pairs = []
    for column, term in enumerate(atom.arguments):
        if isinstance(term, VariableTerm):
            if term.name in first:
                pairs.append((first[term.name], column))
            first.setdefault(term.name, column)
    return pairs
