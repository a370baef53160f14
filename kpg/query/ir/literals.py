"""Formulas: what the body of a rule says.

    Atom edge(x, y)    Comparison x < y    Test match("a.*", x)    Truth true
    Negation !f        Conjunction f, g    Disjunction f; g

After `expand_disjunction` a body is a tuple of literals: atoms, comparisons, tests, and negations of atoms.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from kpg.query.ir.terms import AggregateTerm, Term, VariableTerm, change, subterms
from kpg.query.ir.terms import variables as variables_of_term
from kpg.query.source_text import NOWHERE, Position

COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
OPPOSITE = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


@dataclass(frozen=True, slots=True)
class Atom:
    """A relation holds of some terms."""

    relation: str
    arguments: tuple[Term, ...]
    at: Position = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two terms compare so; an "=" may also say what a variable is."""

    op: str
    left: Term
    right: Term
    at: Position = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Test:
    """A condition by name, or its opposite."""

    __test__ = False  # not a test of pytest's

    name: str
    arguments: tuple[Term, ...]
    positive: bool = True
    at: Position = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Truth:
    """What always holds, or never."""

    holds: bool
    at: Position = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Negation:
    """A formula does not hold."""

    formula: Formula
    at: Position = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Conjunction:
    """All of some formulas hold."""

    parts: tuple[Formula, ...]
    at: Position = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Disjunction:
    """One of some formulas holds."""

    parts: tuple[Formula, ...]
    at: Position = field(default=NOWHERE, compare=False, repr=False)


Formula: TypeAlias = Atom | Comparison | Test | Truth | Negation | Conjunction | Disjunction
Literal: TypeAlias = Atom | Comparison | Test | Negation


def terms(formula: Formula) -> Iterator[Term]:
    """The terms that stand directly in a formula."""
    match formula:
        case Atom() | Test():
            yield from formula.arguments
        case Comparison():
            yield formula.left
            yield formula.right
        case Negation():
            yield from terms(formula.formula)
        case Conjunction() | Disjunction():
            for part in formula.parts:
                yield from terms(part)


def aggregates(formula: Formula) -> Iterator[AggregateTerm]:
    """The outermost aggregates of a formula."""
    for term in terms(formula):
        yield from (each for each in subterms(term) if isinstance(each, AggregateTerm))


def variables(formula: Formula) -> Iterator[VariableTerm]:
    """The variables of a formula, those inside aggregates left out."""
    for term in terms(formula):
        yield from variables_of_term(term)


def all_variables(formula: Formula) -> Iterator[VariableTerm]:
    """The variables of a formula, those inside aggregates too."""
    yield from variables(formula)
    for aggregate in aggregates(formula):
        if aggregate.target is not None:
            yield from variables_of_term(aggregate.target)
        yield from all_variables(aggregate.body)


def atoms(formula: Formula) -> Iterator[tuple[Atom, bool]]:
    """The atoms of a formula, and whether each counts positively; not those inside aggregates."""
    match formula:
        case Atom():
            yield formula, True
        case Negation():
            yield from ((atom, not positive) for atom, positive in atoms(formula.formula))
        case Conjunction() | Disjunction():
            for part in formula.parts:
                yield from atoms(part)


def change_atom(atom: Atom, function: Callable[[Term], Term]) -> Atom:
    """The atom with `function` done to every term, innermost first; not inside aggregates."""
    return replace(atom, arguments=tuple(change(term, function) for term in atom.arguments))


def change_terms(formula: Formula, function: Callable[[Term], Term], *, inside: bool = False) -> Formula:
    """The formula with `function` done to every term, innermost first; with `inside`, in aggregates as well."""

    def everywhere(term: Term) -> Term:
        if inside and isinstance(term, AggregateTerm):
            target = None if term.target is None else change(term.target, everywhere)
            term = replace(term, target=target, body=change_terms(term.body, function, inside=True))
        return function(term)

    match formula:
        case Atom() | Test():
            return replace(formula, arguments=tuple(change(term, everywhere) for term in formula.arguments))
        case Comparison():
            return replace(formula, left=change(formula.left, everywhere), right=change(formula.right, everywhere))
        case Negation():
            return replace(formula, formula=change_terms(formula.formula, function, inside=inside))
        case Conjunction() | Disjunction():
            parts = tuple(change_terms(part, function, inside=inside) for part in formula.parts)
            return replace(formula, parts=parts)
    return formula
