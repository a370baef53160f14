"""A rule as delta queries: one pipeline for each atom that may change, from its changes to the rule's solutions.

    t(a, b, c) :- e(a, b), e(b, c), e(c, a).
        changes of e(a, b)  |  extend to c by e(b, c), e(c, a)
        changes of e(b, c)  |  extend to a by e(c, a), e(a, b)
        changes of e(c, a)  |  extend to b by e(a, b), e(b, c)

This says what a pipeline is; kpg.query.delta_planner finds those of a rule. Negations are atoms that only validate; their
changes have pipelines, too, for what they take away.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from kpg.query.binary_joins import BindStep, FilterStep, GenerateStep
from kpg.query.ir.body_variables import literals, uses
from kpg.query.ir.literals import Atom, Negation
from kpg.query.ir.program import Relation, Rule
from kpg.query.ir.show import show
from kpg.query.ir.terms import ConstantTerm, Term, VariableTerm, WildcardTerm
from kpg.query.ir.terms import variables as variables_of_term


@dataclass(frozen=True, slots=True)
class PipelineSource:
    """An atom of a rule as something that changes and is looked up: `names` has a variable for each open column."""

    number: int  # its place in the order of the relations
    atom: Atom
    names: tuple[
        str | ConstantTerm | None, ...
    ]  # for each column; a wildcard or second occurrence has a name of its own
    same: tuple[tuple[str, str], ...]  # pairs of names that must be equal
    negative: bool
    single: frozenset[str]  # names of which there is at most one, given all the others
    static: bool = False

    @property
    def variables(self) -> frozenset[str]:
        """The names of its columns."""
        return frozenset(name for name in self.names if isinstance(name, str))

    def lacks(self, bound: frozenset[str]) -> frozenset[str]:
        """The names that are not bound; where a variable is, so are its other occurrences."""
        return self.variables - bound - {second for first, second in self.same if first in bound}

    def __str__(self) -> str:
        return f"!{show(self.atom)}" if self.negative else show(self.atom)


@dataclass(frozen=True, slots=True)
class SourceLookup:
    """A source that is looked up: what is known of which columns, and whether its changes at the same time count."""

    source: PipelineSource
    key: tuple[tuple[str | ConstantTerm, int], ...]  # a variable or constant, and its column
    strict: bool

    def __str__(self) -> str:
        return str(self.source)


@dataclass(frozen=True, slots=True)
class ExtendStep:
    """Tuples extended by some names (none: only validated), by one or several sources."""

    looks: tuple[SourceLookup, ...]
    new: tuple[str, ...]
    low: str | None = None
    high: str | None = None

    def __str__(self) -> str:
        by = ", ".join(map(str, self.looks))
        if not self.new:
            return f"validate by {by}"
        names = ", ".join(name for name in self.new if " " not in name) or "what is not read"
        bounds = [f"{self.low} <= {self.new[0]}"] if self.low else []
        bounds += [f"{self.new[0]} < {self.high}"] if self.high else []
        return f"extend to {names} by {by}" + (f", {' and '.join(bounds)}" if bounds else "")


@dataclass(frozen=True, slots=True)
class EqualNamesStep:
    """Keep tuples in which two names hold the same."""

    first: str
    second: str

    def __str__(self) -> str:
        return f"where {self.first} occurs twice"


PipelineStep: TypeAlias = ExtendStep | EqualNamesStep | FilterStep | BindStep | GenerateStep


@dataclass(frozen=True, slots=True)
class DeltaPipeline:
    """The steps from the changes of one source; `live[i]` is what is read after step i, `head` what is before all."""

    source: PipelineSource
    steps: tuple[PipelineStep, ...]
    live: tuple[frozenset[str], ...]
    head: frozenset[str]

    def __str__(self) -> str:
        return " | ".join([f"changes of {self.source}", *map(str, self.steps)])


def sources_of(
    rule: Rule, relations: dict[str, Relation], static: frozenset[str] = frozenset()
) -> list[PipelineSource]:
    """The atoms of a rule, those that never change first, each with names for its columns."""
    found = [literal for literal in literals(rule) if isinstance(literal, (Atom, Negation))]
    atoms = [(each, False) if isinstance(each, Atom) else (each.formula, True) for each in found]
    made = []
    for place, (atom, negative) in enumerate(atoms):
        assert isinstance(atom, Atom)
        names, same = _names(atom, place, negative)
        single = relations[atom.relation].functional if atom.relation in relations else ()
        told = frozenset(name for name in (names[column] for column in single) if isinstance(name, str))
        made.append(PipelineSource(place, atom, names, same, negative, told, atom.relation in static and not negative))
    ordered = sorted(made, key=lambda source: not source.static)
    return [replace(source, number=number) for number, source in enumerate(ordered)]


def _names(
    atom: Atom, place: int, negative: bool
) -> tuple[tuple[str | ConstantTerm | None, ...], tuple[tuple[str, str], ...]]:
    names: list[str | ConstantTerm | None] = []
    same: list[tuple[str, str]] = []
    for column, term in enumerate(atom.arguments):
        match term:
            case ConstantTerm():
                names.append(term)
            case VariableTerm() if term.name not in names:
                names.append(term.name)
            case VariableTerm():
                names.append(f"{term.name} {place} {column}")
                same.append((term.name, f"{term.name} {place} {column}"))
            case _:
                assert isinstance(term, WildcardTerm)
                names.append(None if negative else f"_ {place} {column}")  # what does not hold of any value, is one
    return tuple(names), tuple(same)


def is_connected(sources: Sequence[PipelineSource]) -> bool:
    """Whether every source can be reached from every other by variables they share."""
    reached = sources[0].variables
    rest = list(sources[1:])
    while rest:
        found = [source for source in rest if source.variables & reached]
        if not found:
            return False
        for source in found:
            reached |= source.variables
            rest.remove(source)
    return True


def read_by(step: PipelineStep) -> set[str]:
    """The variables that a step reads."""
    match step:
        case ExtendStep():
            named = {name for look in step.looks for name, _ in look.key if isinstance(name, str)}
            return named | {name for name in (step.low, step.high) if name is not None}
        case EqualNamesStep():
            return {step.first, step.second}
        case FilterStep():
            return uses(step.condition)
        case BindStep():
            return _variables_of(step.term)
        case GenerateStep():
            return {name for term in step.call.arguments for name in _variables_of(term)}
    raise AssertionError(step)


def _variables_of(term: Term) -> set[str]:
    return {variable.name for variable in variables_of_term(term)}
