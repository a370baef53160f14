"""Terms: what stands in the places of an atom or beside a comparison.

    Variable x    Wildcard _    Constant 3    Call cat(x, "!")    Aggregate sum y : { e(x, y) }

Positions do not take part in equality: two terms are equal when they are written alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

from kpg.query.source_text import NOWHERE, Position

if TYPE_CHECKING:
    from kpg.query.ir.literals import Formula

Kind = Literal["number", "unsigned", "float", "symbol", "bool"]
KINDS: tuple[Kind, ...] = ("number", "unsigned", "float", "symbol", "bool")
NUMBERS: frozenset[Kind] = frozenset({"number", "unsigned", "float"})
Value: TypeAlias = int | float | str | bool
AGGREGATES = ("count", "sum", "min", "max", "mean")


@dataclass(frozen=True, slots=True)
class VariableTerm:
    """A name for a value; a "#" begins a mark that rewrites add to tell namesakes apart."""

    name: str
    at: Position = field(default=NOWHERE, compare=False, repr=False)

    @property
    def written(self) -> str:
        """The name as in the source."""
        return self.name.partition("#")[0]


@dataclass(frozen=True, slots=True)
class WildcardTerm:
    """Any value, not to be used again."""

    at: Position = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ConstantTerm:
    """A value; `kind` is None for a whole number that may still become any kind of number."""

    value: Value
    kind: Kind | None
    at: Position = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class CallTerm:
    """A functor and its arguments; `kind` is what it gives, once known."""

    functor: str
    arguments: tuple[Term, ...]
    kind: Kind | None = None
    at: Position = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class AggregateTerm:
    """A value computed from all solutions of a body; variables that also occur outside are those of outside."""

    op: str
    target: Term | None
    body: Formula
    at: Position = field(default=NOWHERE, compare=False, repr=False)


Term: TypeAlias = VariableTerm | WildcardTerm | ConstantTerm | CallTerm | AggregateTerm


def subterms(term: Term) -> Iterator[Term]:
    """The term and what it is made of; an aggregate is one thing."""
    yield term
    if isinstance(term, CallTerm):
        for argument in term.arguments:
            yield from subterms(argument)


def variables(term: Term) -> Iterator[VariableTerm]:
    """The variables of a term, left to right, those inside aggregates left out."""
    return (each for each in subterms(term) if isinstance(each, VariableTerm))


def change(term: Term, function: Callable[[Term], Term]) -> Term:
    """The term with `function` done to everything in it, innermost first; not inside aggregates."""
    if isinstance(term, CallTerm):
        term = replace(term, arguments=tuple(change(argument, function) for argument in term.arguments))
    return function(term)
