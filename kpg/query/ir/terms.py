"""Terms: the arguments of atoms and the two sides of comparisons.

    Variable x    Wildcard _    Constant 3    Call cat(x, "!")    Aggregate sum y : { e(x, y) }

Positions do not take part in equality: two terms are equal when their text is equal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias

from kpg.query.source_text import NOWHERE, Position

if TYPE_CHECKING:
    from kpg.query.ir.literals import Formula

# One of KINDS, the name of a record or algebraic type, or a column type such as "date" or "decimal(9,2)".
Kind: TypeAlias = str
KINDS: tuple[Kind, ...] = ("number", "unsigned", "float", "symbol", "bool")
NUMBERS: frozenset[Kind] = frozenset({"number", "unsigned", "float"})
Value: TypeAlias = int | float | str | bool
AGGREGATES = ("count", "sum", "min", "max", "mean")


@dataclass(frozen=True, slots=True)
class VariableTerm:
    """A variable. Rewrites append a "#" and a mark to the name where they must distinguish equal names."""

    name: str
    at: Position = field(default=NOWHERE, compare=False, repr=False)

    @property
    def is_generated(self) -> bool:
        """Whether a rewrite made it for the value of an aggregate."""
        return self.name.startswith("value#@")

    @property
    def written(self) -> str:
        """The name in the source text."""
        return self.name.partition("#")[0]


@dataclass(frozen=True, slots=True)
class WildcardTerm:
    """`_`: any value; each occurrence is independent."""

    at: Position = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ConstantTerm:
    """A value. `kind` is None for an integer literal that type inference may still turn into any kind of number."""

    value: Value
    kind: Kind | None
    at: Position = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class CallTerm:
    """A functor and its arguments; `kind` is the kind of the result, once inferred. `span` is its whole text."""

    functor: str
    arguments: tuple[Term, ...]
    kind: Kind | None = None
    at: Position = field(default=NOWHERE, compare=False, repr=False)
    span: Position = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class AggregateTerm:
    """A value computed from all solutions of a body. Variables that also occur outside the aggregate are shared."""

    op: str
    target: Term | None
    body: Formula
    at: Position = field(default=NOWHERE, compare=False, repr=False)


Term: TypeAlias = VariableTerm | WildcardTerm | ConstantTerm | CallTerm | AggregateTerm


def subterms(term: Term) -> Iterator[Term]:
    """Yield the term and its parts; the body of an aggregate is not entered."""
    yield term
    if isinstance(term, CallTerm):
        for argument in term.arguments:
            yield from subterms(argument)


def variables(term: Term) -> Iterator[VariableTerm]:
    """Yield the variables of a term from left to right, except those inside aggregates."""
    return (part for part in subterms(term) if isinstance(part, VariableTerm))


def map_term(term: Term, function: Callable[[Term], Term]) -> Term:
    """Apply `function` to every subterm, innermost first; the body of an aggregate is not entered."""
    if isinstance(term, CallTerm):
        term = replace(term, arguments=tuple(map_term(argument, function) for argument in term.arguments))
    return function(term)
