"""The delta queries of a rule: one pipeline for each atom that may change, from its changes to the rule's solutions.

    t(a, b, c) :- e(a, b), e(b, c), e(c, a).
        changes of e(a, b)  |  extend to c by e(b, c), e(c, a)
        changes of e(b, c)  |  extend to a by e(c, a), e(a, b)
        changes of e(c, a)  |  extend to b by e(a, b), e(b, c)

This module defines pipelines; kpg/query/delta_planner.py plans those of a rule. A negated atom only validates tuples.
Its changes have a pipeline as well: a row added to its relation removes solutions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from kpg.query.binary_joins import BindStep, FilterStep, GenerateStep, variables_of_step
from kpg.query.ir.body_variables import literals
from kpg.query.ir.literals import Atom, Negation
from kpg.query.ir.program import Relation, Rule
from kpg.query.ir.show import show
from kpg.query.ir.terms import ConstantTerm, VariableTerm, WildcardTerm


@dataclass(frozen=True, slots=True)
class PipelineSource:
    """An atom of a rule: the source of a pipeline, and an index for the others. `names` names its columns."""

    number: int  # the order of sources; at equal times, the pipeline of the later source finds the earlier ones
    atom: Atom
    names: tuple[
        str | ConstantTerm | None, ...
    ]  # for each column; a wildcard or second occurrence has a name of its own
    equal_names: tuple[tuple[str, str], ...]  # pairs of names that must be equal
    negative: bool
    functional: frozenset[str]  # names that all other names determine
    static: bool = False

    @property
    def variables(self) -> frozenset[str]:
        """The names of the columns."""
        return frozenset(name for name in self.names if isinstance(name, str))

    def unbound(self, bound: frozenset[str]) -> frozenset[str]:
        """Return the names that are not bound; a second occurrence of a bound variable counts as bound."""
        return self.variables - bound - {second for first, second in self.equal_names if first in bound}

    def __str__(self) -> str:
        return f"!{show(self.atom)}" if self.negative else show(self.atom)


@dataclass(frozen=True, slots=True)
class SourceLookup:
    """A lookup in a source: the bound columns, and whether only changes at strictly earlier times count."""

    source: PipelineSource
    key: tuple[tuple[str | ConstantTerm, int], ...]  # a variable or constant, and its column
    strict: bool

    def __str__(self) -> str:
        return str(self.source)


@dataclass(frozen=True, slots=True)
class ExtendStep:
    """Extend tuples by new names, or only validate them if `new` is empty, by one or several sources."""

    lookups: tuple[SourceLookup, ...]
    new: tuple[str, ...]
    low: str | None = None
    high: str | None = None

    def __str__(self) -> str:
        by = ", ".join(map(str, self.lookups))
        if not self.new:
            return f"validate by {by}"
        names = ", ".join(name for name in self.new if " " not in name) or "unread columns"
        bounds = [f"{self.low} <= {self.new[0]}"] if self.low else []
        bounds += [f"{self.new[0]} < {self.high}"] if self.high else []
        return f"extend to {names} by {by}" + (f", {' and '.join(bounds)}" if bounds else "")


@dataclass(frozen=True, slots=True)
class EqualNamesStep:
    """Keep the tuples in which two names have equal values."""

    first: str
    second: str

    def __str__(self) -> str:
        return f"where {self.first} occurs twice"


PipelineStep: TypeAlias = ExtendStep | EqualNamesStep | FilterStep | BindStep | GenerateStep


@dataclass(frozen=True, slots=True)
class DeltaPipeline:
    """The steps from the changes of one source. `live[i]` are the names read after step i, `head` those before all."""

    source: PipelineSource
    steps: tuple[PipelineStep, ...]
    live: tuple[frozenset[str], ...]
    head: frozenset[str]

    def __str__(self) -> str:
        return " | ".join([f"changes of {self.source}", *map(str, self.steps)])


def sources_of(
    rule: Rule, relations: dict[str, Relation], static: frozenset[str] = frozenset()
) -> list[PipelineSource]:
    """Return the atoms of a rule with names for their columns, atoms of static relations first."""
    joined = [literal for literal in literals(rule) if isinstance(literal, (Atom, Negation))]
    atoms = [(literal, False) if isinstance(literal, Atom) else (literal.formula, True) for literal in joined]
    sources = []
    for number, (atom, negative) in enumerate(atoms):
        assert isinstance(atom, Atom)
        names, equal_names = _names(atom, number, negative)
        columns = relations[atom.relation].functional if atom.relation in relations else ()
        functional = frozenset(name for name in (names[column] for column in columns) if isinstance(name, str))
        is_static = atom.relation in static and not negative
        sources.append(PipelineSource(number, atom, names, equal_names, negative, functional, is_static))
    ordered = sorted(sources, key=lambda source: not source.static)
    return [replace(source, number=number) for number, source in enumerate(ordered)]


def _names(
    atom: Atom, number: int, negative: bool
) -> tuple[tuple[str | ConstantTerm | None, ...], tuple[tuple[str, str], ...]]:
    names: list[str | ConstantTerm | None] = []
    equal_names: list[tuple[str, str]] = []
    for column, term in enumerate(atom.arguments):
        match term:
            case ConstantTerm():
                names.append(term)
            case VariableTerm() if term.name not in names:
                names.append(term.name)
            case VariableTerm():
                names.append(f"{term.name} {number} {column}")
                equal_names.append((term.name, f"{term.name} {number} {column}"))
            case _:
                assert isinstance(term, WildcardTerm)
                names.append(None if negative else f"_ {number} {column}")  # "no row with any value" has no name
    return tuple(names), tuple(equal_names)


def is_connected(sources: Sequence[PipelineSource]) -> bool:
    """Return whether shared variables connect all sources."""
    reached = sources[0].variables
    rest = list(sources[1:])
    while rest:
        neighbours = [source for source in rest if source.variables & reached]
        if not neighbours:
            return False
        for source in neighbours:
            reached |= source.variables
            rest.remove(source)
    return True


def read_by(step: PipelineStep) -> set[str]:
    """Return the variables that a step reads."""
    match step:
        case ExtendStep():
            named = {name for lookup in step.lookups for name, _ in lookup.key if isinstance(name, str)}
            return named | {name for name in (step.low, step.high) if name is not None}
        case EqualNamesStep():
            return {step.first, step.second}
    return variables_of_step(step)
