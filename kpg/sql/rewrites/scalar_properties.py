"""Properties of scalars that rewrites rely on: whether they can fail, and whether they are true of null.

can_fail(s)                 a row may fail on s. If not, s may be evaluated on more rows than the query asks for
rejects_null(s, columns)    s is not true on a row in which all of some columns are null
ignores_null(s, columns)    the same, and s does not fail on such a row
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
from kpg.sql.sql_types import MAX_NUMERIC_DIGITS

LIKE_OPERATORS: Final = frozenset({"~~", "!~~", "~~*", "!~~*"})
EXACT_OPERATORS: Final = frozenset({"+", "-", "*"})
STRICT_OPERATORS: Final = frozenset({"+", "-", "*", "/", "%", "=", "<>", "<", "<=", ">", ">=", "~~", "~", "||"})


def can_fail(scalar: Scalar) -> bool:
    """Return whether a row may fail on a scalar."""
    return any(map(fails_itself, walk(scalar)))


def fails_itself(part: Scalar) -> bool:
    """Return whether a row may fail on a scalar although it does not fail on the parts of the scalar."""
    match part:
        case ScalarCall():
            never = (is_like_of_constant, is_substring_of_constant_length, is_numeric_that_fits)
            return not part.function.total and not any(property_(part) for property_ in never)
        case Cast():
            return not is_total_cast(part.argument.type, part.type)
    return False


def is_like_of_constant(call: ScalarCall) -> bool:
    """Return whether a call is LIKE with a constant pattern; only a wrong pattern makes LIKE fail."""
    pattern = call.arguments[-1] if call.arguments else None
    return call.function.name in LIKE_OPERATORS and isinstance(pattern, Constant) and is_like_pattern(pattern.value)


def is_substring_of_constant_length(call: ScalarCall) -> bool:
    """Return whether a call is a substring at constant positions; only a negative length makes it fail."""
    if call.function.name not in ("substring", "substr") or not call.arguments[1].type.is_integer:
        return False
    numbers = call.arguments[1:]
    constants = [number.value for number in numbers if isinstance(number, Constant)]
    return len(constants) == len(numbers) and all(value is None or value >= 0 for value in constants[1:])


def is_numeric_that_fits(call: ScalarCall) -> bool:
    """Return whether a call is a sum, difference or product of numerics whose type holds every result."""
    return call.type.name == "numeric" and call.function.name in EXACT_OPERATORS and len(call.arguments) == 2 and (
        (call.type.precision or MAX_NUMERIC_DIGITS) < MAX_NUMERIC_DIGITS
    )  # fmt: skip


def ignores_null(condition: Scalar, columns: frozenset[Column]) -> bool:
    """Return whether a condition is false or null, and does not fail, if all of some columns are null."""
    fails = any(fails_itself(part) and not is_null_with(part, columns) for part in walk(condition))
    return not fails and rejects_null(condition, columns)


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
