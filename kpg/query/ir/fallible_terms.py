"""Terms and literals that can fail on a row: arithmetic on integers, divisions, conversions, users' functions.

A functor that is not listed here counts as fallible. That is always correct, and costs little: its literals are
evaluated later, after the literals that do not use their values (kpg/query/failing_literals.py).
"""

from __future__ import annotations

from kpg.query.ir.constructors import BRANCH, FIELD, IS_TAGGED, NIL, RECORD
from kpg.query.ir.functors import MATH
from kpg.query.ir.literals import Literal, Test, terms
from kpg.query.ir.terms import CallTerm, Term, subterms

TOTAL_FUNCTORS = frozenset(
    {"cat", "strlen", "substr", "min", "max", "ord", "to_string", "land", "lor", "lxor", "lnot"}
    | {"band", "bor", "bxor", "bnot", "bshl", "bshr", "bshru", RECORD, NIL, *MATH}
    | {"range"}  # a range that fails is reported where it is evaluated: it has no single value to wait for
)  # they have a value for all arguments
TOTAL_ON_FLOATS = frozenset({"+", "-", "*", "neg", "^"})
TOTAL_TESTS = frozenset({"contains"})
FAILS = "fails"  # the test whether its arguments fail; it never fails itself


def can_fail(call: CallTerm) -> bool:
    """Return whether a call itself can fail, given arguments that do not."""
    if call.functor in TOTAL_ON_FLOATS and call.kind in ("float", "symbol"):
        return False
    return call.functor not in TOTAL_FUNCTORS and not call.functor.startswith((BRANCH, FIELD))


def term_can_fail(term: Term) -> bool:
    """Return whether a term can fail."""
    return any(isinstance(part, CallTerm) and can_fail(part) for part in subterms(term))


def literal_can_fail(literal: Literal) -> bool:
    """Return whether a literal can fail: one of its terms, or the test itself."""
    if isinstance(literal, Test) and literal.name == FAILS:
        return False
    if isinstance(literal, Test) and not (literal.name in TOTAL_TESTS or literal.name.startswith(IS_TAGGED)):
        return True
    return any(map(term_can_fail, terms(literal)))
