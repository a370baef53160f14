"""SQL types: PostgreSQL's names and modifiers, as immutable values.

An `SqlType` says how values are checked, combined and shown. Whether null is possible is no part of it: nullability is
a property of a column of the engine. `kpg.sql.lower` maps each type to the column type that holds its values.

    numeric(p, s)     p at most 38; `scale` is always known, since a column has one scale (listed as a difference from
                      PostgreSQL, where each value has its own)
    text, varchar(n), char(n)     `length` is n; char ignores trailing blanks in comparisons
    t[]               `element` is t
    unknown           a string constant or null that has no type yet, as in PostgreSQL
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

MAX_NUMERIC_DIGITS: Final = 38


@dataclass(frozen=True, slots=True)
class SqlType:
    """A type with its modifiers. `name` is PostgreSQL's own name, as `pg_typeof` shows it, without modifiers."""

    name: str
    precision: int | None = None  # of numeric: all digits
    scale: int | None = None  # of numeric: the digits after the point
    length: int | None = None  # of varchar and char: the maximum number of characters
    element: SqlType | None = None  # of arrays

    def same_family(self, other: SqlType) -> bool:
        """Return whether both are one type, modifiers aside."""
        return self.name == other.name and (self.element is None) == (other.element is None)

    def without_modifiers(self) -> SqlType:
        """Return the type as a function's result has it: without a length."""
        return self if self.length is None else replace(self, length=None)

    @property
    def is_integer(self) -> bool:
        """Whether values are integers of a fixed width."""
        return self.name in INTEGER_LIMITS

    @property
    def is_number(self) -> bool:
        """Whether values are numbers."""
        return self.is_integer or self.name in ("numeric", "real", "double precision")

    @property
    def is_text(self) -> bool:
        """Whether values are strings."""
        return self.name in ("text", "character varying", "character", "name")

    def __str__(self) -> str:
        if self.element is not None:
            return f"{self.element}[]"
        if self.name == "numeric" and self.precision is not None:
            return f"numeric({self.precision},{self.scale or 0})"
        return self.name if self.length is None else f"{self.name}({self.length})"


INTEGER_LIMITS: Final = {  # the least and greatest value
    "smallint": (-(2**15), 2**15 - 1),
    "integer": (-(2**31), 2**31 - 1),
    "oid": (0, 2**32 - 1),
    "bigint": (-(2**63), 2**63 - 1),
}

BOOLEAN: Final = SqlType("boolean")
SMALLINT: Final = SqlType("smallint")
INTEGER: Final = SqlType("integer")
BIGINT: Final = SqlType("bigint")
OID: Final = SqlType("oid")  # the number of an object in pg_catalog
REAL: Final = SqlType("real")
DOUBLE: Final = SqlType("double precision")
TEXT: Final = SqlType("text")
BYTEA: Final = SqlType("bytea")
DATE: Final = SqlType("date")
TIME: Final = SqlType("time without time zone")
TIMESTAMP: Final = SqlType("timestamp without time zone")
TIMESTAMPTZ: Final = SqlType("timestamp with time zone")
INTERVAL: Final = SqlType("interval")
UUID: Final = SqlType("uuid")
JSONB: Final = SqlType("jsonb")
UNKNOWN: Final = SqlType("unknown")


def numeric(precision: int, scale: int) -> SqlType:
    """Return the type of exact numbers with at most `precision` digits, `scale` of them after the point."""
    return SqlType("numeric", precision=precision, scale=scale)


def varchar(length: int | None = None) -> SqlType:
    """Return the type of strings with at most `length` characters."""
    return SqlType("character varying", length=length)


def char(length: int = 1) -> SqlType:
    """Return the type of strings padded with blanks, which comparisons ignore."""
    return SqlType("character", length=length)


def array_of(element: SqlType) -> SqlType:
    """Return the type of arrays."""
    return SqlType(f"{element.name}[]", element=element)
