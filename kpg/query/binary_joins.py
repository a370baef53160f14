"""Plan a rule as binary joins, literal by literal from left to right.

    p(x, z) :- q(x, y), r(y, z), x < z, !s(z).
        scan q  |  join r on y  |  where x < z  |  without s on z  |  emit

Each step joins one more atom; intermediate results are indexed. Steps carry only the variables that later steps read.
The alternative is a delta query (kpg/query/delta_pipelines.py); kpg/query/join_strategy.py chooses between them.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from kpg.query.ir.body_variables import definitions, is_computable, literals, variable_names
from kpg.query.ir.functors import FUNCTORS
from kpg.query.ir.literals import Atom, Comparison, Literal, Negation, Test, variables
from kpg.query.ir.program import Rule
from kpg.query.ir.show import show, show_term
from kpg.query.ir.terms import CallTerm, ConstantTerm, Kind, Term, VariableTerm, WildcardTerm
from kpg.query.ir.terms import variables as variables_of_term


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
    """Keep the rows that satisfy a condition. With `silent`, rows that fail are dropped without an error."""

    condition: Comparison | Test
    silent: bool = False

    def __str__(self) -> str:
        return f"where {show(self.condition)}"


@dataclass(frozen=True, slots=True)
class BindStep:
    """Compute a variable. With `silent`, rows that fail are dropped without an error."""

    variable: str
    term: Term
    silent: bool = False

    def __str__(self) -> str:
        return f"let {self.variable} = {show_term(self.term)}"


@dataclass(frozen=True, slots=True)
class GenerateStep:
    """Bind a variable to each value of a generator, such as range."""

    variable: str
    call: CallTerm
    kind: Kind
    silent: bool = False

    def __str__(self) -> str:
        return f"each {self.variable} of {show_term(self.call)}"


@dataclass(frozen=True, slots=True)
class TogetherStep:
    """Keep the rows that satisfy all conditions and on which all terms have values; false is stronger than failed."""

    conditions: tuple[Comparison | Test, ...]
    terms: tuple[Term, ...]

    def __str__(self) -> str:
        parts = [*map(show, self.conditions), *(f"{show_term(term)} has a value" for term in self.terms)]
        return f"where together {', '.join(parts)}"


Step: TypeAlias = ScanStep | JoinStep | AntiJoinStep | FilterStep | BindStep | GenerateStep | TogetherStep


def steps_of(body: Iterable[Literal], rule: Rule, silent: Container[Literal] = ()) -> list[Step]:
    """Return the steps of some literals of a rule, one for each; those of `silent` literals report no errors."""
    bound: set[str] = set()
    steps: list[Step] = []
    for literal in body:
        step = step_of(literal, bound, rule, first=not steps)
        if literal in silent and isinstance(step, (BindStep, FilterStep, GenerateStep)):
            step = replace(step, silent=True)
        steps.append(step)
        bound |= variable_names(literal)
    return steps


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


def live_after(needed: Iterable[str], steps: Sequence[Step]) -> tuple[frozenset[str], ...]:
    """Return the variables that are read after each step, if `needed` are read after the last."""
    read = set(needed)
    live: list[frozenset[str]] = []
    for step in reversed(steps):
        live.append(frozenset(read))
        read |= variables_of_step(step)
    return tuple(live[::-1])


def variables_of_step(step: Step) -> set[str]:
    """Return the variables in a step."""
    match step:
        case ScanStep() | JoinStep() | AntiJoinStep():
            return variable_names(step.atom)
        case FilterStep():
            return variable_names(step.condition)
        case BindStep():
            return {variable.name for variable in variables_of_term(step.term)}
        case GenerateStep():
            return {variable.name for variable in variables_of_term(step.call)}
    names = {name for condition in step.conditions for name in variable_names(condition)}
    return names | {variable.name for term in step.terms for variable in variables_of_term(term)}


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
