"""Which type a value may become another by itself, by assignment, or only by an explicit cast: PostgreSQL's rules.

    can_cast(from, to, context)     whether the cast exists; each context includes the ones before it
    common_type(types)              the type of UNION, CASE, COALESCE, VALUES and arrays
    concrete(parameter, argument)   the type that an argument gets for a parameter: numeric gets its digits

Types have categories, and most categories have a preferred type, which wins if several would do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, TypeAlias

from kpg.errors import TypeMismatch
from kpg.sql.sql_states import with_sqlstate
from kpg.sql.sql_types import MAX_NUMERIC_DIGITS, TEXT, UNKNOWN, SqlType, numeric

CastContext: TypeAlias = Literal["implicit", "assignment", "explicit"]

NUMERIC: Final = SqlType("numeric")  # numeric of any digits, as a parameter
ANY: Final = SqlType("any")  # a parameter of any type
ANY_NONARRAY: Final = SqlType("anynonarray")  # a parameter of any type but arrays
ANY_ELEMENT: Final = SqlType("anyelement")  # parameters of one type
ANY_ARRAY: Final = SqlType("anyarray")  # an array of the type of ANY_ELEMENT
ANY_COMPATIBLE: Final = SqlType("anycompatible")  # parameters of the common type of the arguments
POLYMORPHIC: Final = frozenset({"any", "anynonarray", "anyelement", "anyarray", "anycompatible"})

# The digits of numeric without any; PostgreSQL keeps those of each value.
DEFAULT_NUMERIC: Final = numeric(MAX_NUMERIC_DIGITS, 9)
INTEGER_DIGITS: Final = {"smallint": 5, "integer": 10, "oid": 10, "bigint": 19}

CATEGORIES: Final = {
    "boolean": "boolean",
    **dict.fromkeys(("smallint", "integer", "oid", "bigint", "numeric", "real", "double precision"), "number"),
    **dict.fromkeys(("text", "character varying", "character", "name"), "string"),
    "date": "moment",
    "time without time zone": "moment",
    "timestamp without time zone": "moment",
    "timestamp with time zone": "moment",
    "interval": "span",
    "unknown": "unknown",
    **dict.fromkeys(("any", "anynonarray", "anyelement", "anyarray", "anycompatible"), "pseudo"),
}
PREFERRED: Final = frozenset({"boolean", "double precision", "text", "timestamp with time zone", "interval"})

_IMPLICIT: Final = {
    "smallint": ("integer", "bigint", "numeric", "real", "double precision"),
    "integer": ("bigint", "numeric", "real", "double precision"),
    "oid": ("bigint",),
    "bigint": ("numeric", "real", "double precision"),
    "numeric": ("real", "double precision"),
    "real": ("double precision",),
    "text": ("character varying", "character", "name"),
    "character varying": ("text", "character", "name"),
    "character": ("text", "character varying", "name"),
    "name": ("text",),
    "date": ("timestamp without time zone", "timestamp with time zone"),
    "timestamp without time zone": ("timestamp with time zone",),
    "time without time zone": ("interval",),
}
_ASSIGNMENT: Final = {
    "integer": ("smallint", "oid"),
    "smallint": ("oid",),
    "oid": ("integer",),
    "bigint": ("smallint", "integer", "oid"),
    "numeric": ("smallint", "integer", "bigint"),
    "real": ("smallint", "integer", "bigint", "numeric"),
    "double precision": ("smallint", "integer", "bigint", "numeric", "real"),
    "timestamp without time zone": ("date", "time without time zone"),
    "timestamp with time zone": ("date", "time without time zone", "timestamp without time zone"),
    "interval": ("time without time zone",),
    "name": ("character varying", "character"),
}
_EXPLICIT: Final = {
    "integer": ("boolean",),
    "boolean": ("integer",),
    "jsonb": ("boolean", "smallint", "integer", "bigint", "numeric", "real", "double precision"),
}


def category(type_: SqlType) -> str:
    """Return the category of a type."""
    return "array" if type_.element is not None else CATEGORIES.get(type_.name, "other")


def can_cast(source: SqlType, target: SqlType, context: CastContext = "implicit") -> bool:
    """Return whether a value of one type may become another in a context."""
    if source.name in (target.name, "unknown") or target.name == "any":
        return True
    if target.name in _IMPLICIT.get(source.name, ()):
        return True
    if source.element is not None and target.element is not None:
        return can_cast(source.element, target.element, context)
    if context == "implicit":
        return False
    if target.name in _ASSIGNMENT.get(source.name, ()) or target.is_text:
        return True
    return context == "explicit" and (target.name in _EXPLICIT.get(source.name, ()) or source.is_text)


def concrete(parameter: SqlType, argument: SqlType) -> SqlType:
    """Return the type that an argument gets for a parameter: its own with its modifiers, if that is the same type."""
    if parameter.name == argument.name or parameter.name == "any":
        return argument
    if parameter == NUMERIC and argument.name != "unknown":
        return numeric_of(argument)
    return parameter


def numeric_of(type_: SqlType) -> SqlType:
    """Return the numeric type for `value::numeric`: all digits of an integer, nine after the point of other types."""
    if type_.name == "numeric":
        return type_ if type_.precision is not None else DEFAULT_NUMERIC
    digits = INTEGER_DIGITS.get(type_.name)
    return DEFAULT_NUMERIC if digits is None else numeric(digits, 0)


def common_type(types: Sequence[SqlType], what: str = "CASE") -> SqlType:
    """Return the type that all values of a UNION, CASE, … get; raise TypeMismatch (42804) if there is none.

    String constants and nulls without a type take that of the others; text if there are no others.
    """
    different = {id(type_): type_ for type_ in types}  # of many values, which share few types
    known = [type_ for type_ in dict.fromkeys(different.values()) if type_.name != UNKNOWN.name]
    if not known:
        return TEXT
    chosen = known[0]
    for other in known[1:]:
        if category(other) != category(chosen):
            raise with_sqlstate("42804", TypeMismatch(f"{what} types {chosen} and {other} cannot be matched"))
        widens = can_cast(chosen, other) and not can_cast(other, chosen)
        if chosen.name not in PREFERRED and other.name != chosen.name and widens:
            chosen = other
    for other in known:
        if not can_cast(other, chosen):
            raise with_sqlstate("42846", TypeMismatch(f"{what} could not convert type {other} to {chosen}"))
    return _with_modifiers(chosen, known)


def _with_modifiers(chosen: SqlType, types: Sequence[SqlType]) -> SqlType:
    """Return the common type with enough digits for all; a length only if all have the same one."""
    if chosen.name == "numeric":
        return widest_numeric([numeric_of(type_) for type_ in types])
    same = [type_ for type_ in types if type_.name == chosen.name]
    if chosen.length is not None and (len(same) < len(types) or any(type_.length != chosen.length for type_ in same)):
        return chosen.without_modifiers()
    return chosen


def widest_numeric(types: Sequence[SqlType]) -> SqlType:
    """Return the numeric type that holds all values of several, up to the limit of digits."""
    scale = max(type_.scale or 0 for type_ in types)
    whole = max((type_.precision or 0) - (type_.scale or 0) for type_ in types)
    return numeric(max(1, min(whole + scale, MAX_NUMERIC_DIGITS)), scale)
