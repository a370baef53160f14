"""Properties of scalars that rewrites rely on: whether they can fail, and whether they are true of null.

can_fail(s)                 a row may fail on s. If not, s may be evaluated on more rows than the query asks for
rejects_null(s, columns)    s is not true on a row in which all of some columns are null
"""

from __future__ import annotations

from typing import Final

from kpg.sql.functions.pattern_values import is_like_pattern
from kpg.sql.functions.sql_casts import is_total_cast
from kpg.sql.relational.scalars import (
    And,
    Cast,
    Column,
    ColumnValue,
    Constant,
    IsNull,
    Not,
    Or,
    Scalar,
    ScalarCall,
    walk,
)

LIKE_OPERATORS: Final = frozenset({"~~", "!~~", "~~*", "!~~*"})
STRICT_OPERATORS: Final = frozenset({"+", "-", "*", "/", "%", "=", "<>", "<", "<=", ">", ">=", "~~", "~", "||"})


def can_fail(scalar: Scalar) -> bool:
    """Return whether a row may fail on a scalar."""
    for part in walk(scalar):
        if isinstance(part, ScalarCall) and not part.function.total and not is_like_of_constant(part):
            return True
        if isinstance(part, Cast) and not is_total_cast(part.argument.type, part.type):
            return True
    return False


def is_like_of_constant(call: ScalarCall) -> bool:
    """Return whether a call is LIKE with a constant pattern; only a wrong pattern makes LIKE fail."""
    pattern = call.arguments[-1] if call.arguments else None
    return call.function.name in LIKE_OPERATORS and isinstance(pattern, Constant) and is_like_pattern(pattern.value)


def rejects_null(condition: Scalar, columns: frozenset[Column]) -> bool:
    """Return whether a condition is false or null if all of some columns are null."""
    match condition:
        case And():
            return any(rejects_null(term, columns) for term in condition.terms)
        case Or():
            return all(rejects_null(term, columns) for term in condition.terms)
        case Not(term=IsNull() as inner):
            return is_null_with(inner.argument, columns)
    return is_null_with(condition, columns)


def is_null_with(scalar: Scalar, columns: frozenset[Column]) -> bool:
    """Return whether a scalar is null if all of some columns are null."""
    match scalar:
        case ColumnValue():
            return scalar.column in columns
        case Cast():
            return is_null_with(scalar.argument, columns)
        case ScalarCall() if scalar.function.name in STRICT_OPERATORS:
            return any(is_null_with(argument, columns) for argument in scalar.arguments)
        case Not():
            return is_null_with(scalar.term, columns)
    return False
