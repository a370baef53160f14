"""Rules for the names of types: `bigint`, `numeric(12,2)`, `timestamp with time zone`, `text[]`, …

A type becomes a node of class DataType whose `this` is the `SqlType`.
"""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from kpg.errors import ProgramError, TypeMismatch, UndefinedName
from kpg.query.source_text import did_you_mean
from kpg.sql import sql_types
from kpg.sql.functions.cast_rules import DEFAULT_NUMERIC, NUMERIC
from kpg.sql.parse.postgres_tokens import COLUMN_ONLY, RESERVED, folded, is_word
from kpg.sql.parse.sql_failures import sql_failure
from kpg.sql.parse.token_rules import TokenRules
from kpg.sql.sql_types import MAX_NUMERIC_DIGITS, SqlType, array_of, char, numeric, varchar

PLAIN_TYPES: Final = {
    "boolean": sql_types.BOOLEAN, "bool": sql_types.BOOLEAN,
    "smallint": sql_types.SMALLINT, "int2": sql_types.SMALLINT,
    "integer": sql_types.INTEGER, "int": sql_types.INTEGER, "int4": sql_types.INTEGER,
    "bigint": sql_types.BIGINT, "int8": sql_types.BIGINT,
    "real": sql_types.REAL, "float4": sql_types.REAL, "float8": sql_types.DOUBLE,
    "text": sql_types.TEXT, "bytea": sql_types.BYTEA, "date": sql_types.DATE,
    "uuid": sql_types.UUID, "jsonb": sql_types.JSONB, "timestamptz": sql_types.TIMESTAMPTZ,
}  # fmt: skip
SERIAL_TYPES: Final = {
    "smallserial": sql_types.SMALLINT, "serial2": sql_types.SMALLINT, "serial": sql_types.INTEGER,
    "serial4": sql_types.INTEGER, "bigserial": sql_types.BIGINT, "serial8": sql_types.BIGINT,
}  # fmt: skip
UNSUPPORTED_TYPES: Final = frozenset(
    "json xml money bit varbit timetz inet cidr macaddr point line lseg box path polygon circle tsvector tsquery "
    "int4range int8range numrange tsrange tstzrange daterange hstore".split()
)
OBJECT_TYPES: Final = frozenset({"regclass", "regtype", "regnamespace", "regproc"})  # names of what has an OID
CATALOG_TYPES: Final = {  # types of pg_catalog, in casts only
    "oid": sql_types.OID, "xid": sql_types.OID, "name": sql_types.TEXT, "char": sql_types.TEXT,
    "int2vector": array_of(sql_types.SMALLINT), "oidvector": array_of(sql_types.OID),
    **{name: SqlType(name) for name in OBJECT_TYPES},
}  # fmt: skip
INTERVAL_FIELDS: Final = ("year", "month", "day", "hour", "minute", "second")
FOLLOWED_BY_LENGTH: Final = ("varchar", "character", "char", "bpchar", "nchar")
TYPE_WORDS: Final = frozenset({
    *PLAIN_TYPES, *FOLLOWED_BY_LENGTH, "numeric", "decimal", "dec", "float", "double", "timestamp", "time", "national"
})  # fmt: skip


class TypeRules(TokenRules):
    """PostgreSQL's rules for type names."""

    def data_type(self) -> exp.DataType:
        """Parse a type, with its modifiers and array brackets."""
        start = self._index
        sql_type = self.scalar_type()
        while True:
            if self.accept("array"):
                if self.accept_symbol("["):
                    self.integer()
                    self.expect_symbol("]")
            elif self.accept_symbol("["):
                if not self.at_symbol("]"):
                    self.integer()
                self.expect_symbol("]")
            else:
                break
            if sql_type.element is None:  # PostgreSQL does not distinguish the number of dimensions
                sql_type = array_of(with_digits(sql_type))
        return self.spanned(exp.DataType(this=sql_type), start)

    def column_type(self) -> exp.DataType:
        """Parse the type of a declared column, which has one scale."""
        start = self._index
        node = self.data_type()
        word = self._tokens[self._index - 1].text.lower()
        if node.args["this"].name in OBJECT_TYPES or word in CATALOG_TYPES and word != "char":
            raise self.unsupported(f"a column of type {word}", start)
        node.set("this", with_digits(node.args["this"]))
        return node

    def scalar_type(self) -> SqlType:
        """Parse a type up to its array brackets."""
        start = self._index
        if self.accept("pg_catalog"):
            self.expect_symbol(".")
        quoted = not is_word(self._curr)
        word = "" if quoted else self._curr.text.lower()
        if word in RESERVED or (word in COLUMN_ONLY and word not in TYPE_WORDS and word != "interval"):
            self.unexpected("a type")
        identifier = self.label()
        name = identifier.name if quoted else folded(identifier.name)
        if name in PLAIN_TYPES:
            return PLAIN_TYPES[name]
        if name in CATALOG_TYPES and (name != "char" or quoted):
            return CATALOG_TYPES[name]
        parsed = None if quoted else self.modified_type(name)
        if parsed is None:
            self.deferred.append(self.type_failure(name, start))
            return sql_types.UNKNOWN
        return parsed

    def modified_type(self, name: str) -> SqlType | None:
        """Parse the rest of a type that may have modifiers; None if there is no such type."""
        if name in ("numeric", "decimal", "dec"):
            return self.numeric_type()
        if name in FOLLOWED_BY_LENGTH or (name == "national" and self.one_of("character", "char")):
            return self.text_type(name)
        if name == "float":
            return self.float_type()
        if name == "double":
            self.expect("precision")
            return sql_types.DOUBLE
        if name in ("timestamp", "time"):
            return self.time_type(name)
        if name == "interval":
            self.interval_fields()
            return sql_types.INTERVAL
        return None

    def numeric_type(self) -> SqlType:
        """Parse the digits of numeric; without them they depend on what is cast."""
        start = self._index - 1
        if not self.accept_symbol("("):
            return NUMERIC
        precision = self.integer()
        scale = self.integer() if self.accept_symbol(",") else 0
        self.expect_symbol(")")
        if not 1 <= precision <= MAX_NUMERIC_DIGITS:
            raise self.unsupported(f"numeric with {precision} digits: the maximum of {MAX_NUMERIC_DIGITS}", start)
        if scale > precision:
            raise self.unsupported(f"numeric({precision},{scale}), with a scale above its precision,", start)
        return numeric(precision, scale)

    def text_type(self, name: str) -> SqlType:
        """Parse the length of a string type."""
        varying = name == "varchar" or self.accept("varying")
        length = None
        if self.accept_symbol("("):
            length = self.integer()
            self.expect_symbol(")")
            if length < 1:
                what = f"length for type {'varchar' if varying else 'char'} must be at least 1"
                raise sql_failure(TypeMismatch, what, self.span(self._prev), "22023")
        if varying:
            return varchar(length)
        if name == "bpchar" and length is None:
            return SqlType("character")
        return char(1 if length is None else length)

    def float_type(self) -> SqlType:
        """Parse the precision of float: up to 24 bits are a real."""
        if not self.accept_symbol("("):
            return sql_types.DOUBLE
        bits = self.integer()
        self.expect_symbol(")")
        if not 1 <= bits <= 53:
            raise sql_failure(TypeMismatch, "float has 1 to 53 bits", self.span(self._prev), "22023")
        return sql_types.REAL if bits <= 24 else sql_types.DOUBLE

    def time_type(self, name: str) -> SqlType:
        """Parse the precision and time zone of time and timestamp."""
        start = self._index - 1
        if self.accept_symbol("("):
            precision = self.integer()
            self.expect_symbol(")")
            if precision != 6:
                raise self.unsupported(f"{name}({precision}): a precision other than 6", start)
        zoned = self.accept("with", "time", "zone")
        if not zoned:
            self.accept("without", "time", "zone")
        if name == "time":
            if zoned:
                raise self.unsupported("time with time zone", start)
            return sql_types.TIME
        return sql_types.TIMESTAMPTZ if zoned else sql_types.TIMESTAMP

    def interval_fields(self) -> str | None:
        """Parse the fields after INTERVAL or its string: `month`, `day to second`."""
        first = self.one_of(*INTERVAL_FIELDS)
        if first is None:
            if self.at_symbol("("):
                raise self.unsupported("a precision of interval")
            return None
        if not self.accept("to"):
            return first
        allowed = {"year": ("month",), "day": INTERVAL_FIELDS[3:], "hour": INTERVAL_FIELDS[4:], "minute": ("second",)}
        second = self.one_of(*allowed.get(first, ()))
        if second is None:
            self.unexpected("a smaller field of an interval")
        return f"{first} to {second}"

    def type_failure(self, name: str, start: int) -> ProgramError:
        """Return the error of a type that does not exist, or that kpg does not have."""
        span = self.span(self._tokens[start])
        if name in UNSUPPORTED_TYPES or name in SERIAL_TYPES:
            return self.unsupported(f"type {name}", start)
        hint = did_you_mean(name, TYPE_WORDS)
        return sql_failure(UndefinedName, f'type "{name}" does not exist', span, "42704", hint=hint)


def with_digits(type_: SqlType) -> SqlType:
    """Return a type whose digits are known: numeric without digits gets those that it has by default."""
    return DEFAULT_NUMERIC if type_ == NUMERIC else type_
