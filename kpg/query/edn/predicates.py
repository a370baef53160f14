"""Predicates on text, as queries in EDN write them: `[(clojure.string/starts-with? ?name "An")]`.

A namespace before the name is accepted and ignored. Each predicate becomes a formula of comparisons and tests of the
IR. To add one, add its name, its number of arguments and its formula to `PREDICATES`, and its name to docs/edn.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kpg.errors import ParseError
from kpg.query.ir.literals import Comparison, Formula, Test
from kpg.query.ir.terms import CallTerm, ConstantTerm, Term
from kpg.query.source_text import Position, failure


@dataclass(frozen=True, slots=True)
class Predicate:
    """The number of arguments of a predicate, and its formula."""

    arguments: int
    formula: Callable[[tuple[Term, ...], Position], Formula]


def starts_with(terms: tuple[Term, ...], at: Position) -> Formula:
    """Return that the first part of a text, as long as the prefix, is the prefix."""
    text, prefix = terms
    start = CallTerm("substr", (text, ConstantTerm(0, "number", at), length_of(prefix, at)), None, at)
    return Comparison("=", start, prefix, at)


def ends_with(terms: tuple[Term, ...], at: Position) -> Formula:
    """Return that the last part of a text, as long as the suffix, is the suffix."""
    text, suffix = terms
    position = CallTerm("-", (length_of(text, at), length_of(suffix, at)), None, at)
    end = CallTerm("substr", (text, position, length_of(suffix, at)), None, at)
    return Comparison("=", end, suffix, at)


def length_of(text: Term, at: Position) -> Term:
    """Return the length of a text as a term."""
    return CallTerm("strlen", (text,), None, at)


def find_pattern(terms: tuple[Term, ...], at: Position) -> Formula:
    """Return that a part of a text matches a regular expression."""
    pattern, text = terms
    if not isinstance(pattern, ConstantTerm):
        raise failure(ParseError, "the expression of re-find is not a constant", at, hint='Write (re-find #"a+" ?s).')
    anywhere = ConstantTerm(f"(?s:.*)(?:{pattern.value})(?s:.*)", "symbol", at)
    return Test("match", (anywhere, text), True, at)


PREDICATES: dict[str, Predicate] = {
    "starts-with?": Predicate(2, starts_with),
    "ends-with?": Predicate(2, ends_with),
    "includes?": Predicate(2, lambda terms, at: Test("contains", (terms[1], terms[0]), True, at)),
    "blank?": Predicate(1, lambda terms, at: Test("match", (ConstantTerm(r"\s*", "symbol", at), terms[0]), True, at)),
    "re-matches": Predicate(2, lambda terms, at: Test("match", terms, True, at)),
    "re-find": Predicate(2, find_pattern),
}
