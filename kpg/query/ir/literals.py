"""Formulas: the bodies of rules and their parts.

    Atom edge(x, y)    Comparison x < y    Test match("a.*", x)    Truth true
    Negation !f        Conjunction f, g    Disjunction f; g

After the rewrite `expand_disjunction` a body is a conjunction of literals: atoms, comparisons, tests, and negations of
atoms.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from kpg.query.ir.terms import AggregateTerm, Term, VariableTerm, map_term, subterms
from kpg.query.ir.terms import variables as variables_of_term
from kpg.query.source_text import NOWHERE, Position

COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
OPPOSITE = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


@dataclass(frozen=True, slots=True)
class Atom:
    """A relation contains the row of these arguments."""

    relation: str
    arguments: tuple[Term, ...]
    at: Position = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Comparison:
    """A comparison of two terms; an "=" can also define a variable."""

    op: str
    left: Term
    right: Term
    at: Position = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Test:
    """A named condition, or its negation. `span` is its whole text."""

    __test__ = False  # pytest must not collect it

    name: str
    arguments: tuple[Term, ...]
    positive: bool = True
    at: Position = field(default=NOWHERE, compare=False, repr=False)
    span: Position = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Truth:
    """`true` or `false`."""

    holds: bool
    at: Position = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Negation:
    """The negation of a formula."""

    formula: Formula
    at: Position = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Conjunction:
    """All parts hold."""

    parts: tuple[Formula, ...]
    at: Position = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Disjunction:
    """At least one part holds."""

    parts: tuple[Formula, ...]
    at: Position = field(default=NOWHERE, compare=False, repr=False)


Formula: TypeAlias = Atom | Comparison | Test | Truth | Negation | Conjunction | Disjunction
Literal: TypeAlias = Atom | Comparison | Test | Negation


def subformulas(formula: Formula) -> Iterator[Formula]:
    """Yield the formula and its parts; the bodies of aggregates are not entered."""
    yield formula
    if isinstance(formula, Negation):
        yield from subformulas(formula.formula)
    elif isinstance(formula, (Conjunction, Disjunction)):
        for part in formula.parts:
            yield from subformulas(part)


def terms(formula: Formula) -> Iterator[Term]:
    """Yield the arguments and operands of a formula; the bodies of aggregates are not entered."""
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
    """Yield the outermost aggregates of a formula."""
    for term in terms(formula):
        yield from (part for part in subterms(term) if isinstance(part, AggregateTerm))


def variables(formula: Formula) -> Iterator[VariableTerm]:
    """Yield the variables of a formula, except those inside aggregates."""
    for term in terms(formula):
        yield from variables_of_term(term)


def all_variables(formula: Formula) -> Iterator[VariableTerm]:
    """Yield the variables of a formula, including those inside aggregates."""
    yield from variables(formula)
    for aggregate in aggregates(formula):
        if aggregate.target is not None:
            yield from variables_of_term(aggregate.target)
        yield from all_variables(aggregate.body)


def atoms(formula: Formula) -> Iterator[tuple[Atom, bool]]:
    """Yield (atom, whether it occurs positively) for the atoms of a formula, except those inside aggregates."""
    match formula:
        case Atom():
            yield formula, True
        case Negation():
            yield from ((atom, not positive) for atom, positive in atoms(formula.formula))
        case Conjunction() | Disjunction():
            for part in formula.parts:
                yield from atoms(part)


def map_atom_terms(atom: Atom, function: Callable[[Term], Term]) -> Atom:
    """Apply `function` to every term of an atom, innermost first; the bodies of aggregates are not entered."""
    return replace(atom, arguments=tuple(map_term(term, function) for term in atom.arguments))


def map_terms(formula: Formula, function: Callable[[Term], Term], *, inside: bool = False) -> Formula:
    """Apply `function` to every term of a formula, innermost first; with `inside`, also in the bodies of aggregates."""

    def everywhere(term: Term) -> Term:
        if inside and isinstance(term, AggregateTerm):
            target = None if term.target is None else map_term(term.target, everywhere)
            term = replace(term, target=target, body=map_terms(term.body, function, inside=True))
        return function(term)

    match formula:
        case Atom() | Test():
            return replace(formula, arguments=tuple(map_term(term, everywhere) for term in formula.arguments))
        case Comparison():
            return replace(formula, left=map_term(formula.left, everywhere), right=map_term(formula.right, everywhere))
        case Negation():
            return replace(formula, formula=map_terms(formula.formula, function, inside=inside))
        case Conjunction() | Disjunction():
            parts = tuple(map_terms(part, function, inside=inside) for part in formula.parts)
            return replace(formula, parts=parts)
    return formula
