"""Types and schemas: what a relation's columns are called and what they hold.

Every column is exactly one int64 lane, and the order of lanes is the order of values:

    int64     the number                    float64    its bits, made to sort; NaN is one value above +inf; -0.0 is 0.0
    bool      0 or 1                        date       days since 1970-01-01
    decimal   the number times 10**scale    timestamp  microseconds since 1970-01-01 UTC
    string, binary   a symbol id: equal exactly when the values are; order comes from `Symbols.ranks`

Null, in a column that may hold it, is the lane value NULL (-2**63), which sorts first. No other value of any type is
encoded as NULL, except the number -2**63 itself, which a nullable int64 column therefore refuses.
"""

from __future__ import annotations

import datetime
import decimal as decimals
import difflib
import re
import types
import typing
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa

from kpg.errors import BadPlan, TypeMismatch, UndefinedName

NULL: Final = -(2**63)
MAX: Final = 2**63 - 1
MAX_DIGITS: Final = 18

KINDS: Final = ("int64", "float64", "bool", "string", "binary", "date", "timestamp", "decimal")
NUMERIC: Final = frozenset({"int64", "float64", "decimal"})
SYMBOLIC: Final = frozenset({"string", "binary"})


@dataclass(frozen=True, slots=True)
class Type:
    """What one column holds."""

    kind: str
    nullable: bool = False
    precision: int = 0
    scale: int = 0

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise TypeMismatch(f"unknown type {self.kind!r}", hint=f"Types are {', '.join(KINDS)}.")
        if self.kind == "decimal" and not (1 <= self.precision <= MAX_DIGITS and 0 <= self.scale <= self.precision):
            raise TypeMismatch(
                f"no such type: decimal({self.precision},{self.scale})",
                hint=f"A decimal has 1 to {MAX_DIGITS} digits, of which 0 to all are after the point.",
            )

    def optional(self, nullable: bool = True) -> Type:
        """The same type, with null (or, given False, without)."""
        return self if self.nullable == nullable else replace(self, nullable=nullable)

    def same(self, other: Type) -> bool:
        """Whether values of both are encoded alike, so that equal lanes mean equal values (null aside)."""
        return self.kind == other.kind and self.scale == other.scale

    def to_arrow(self) -> pa.DataType:
        """The Arrow type that values come out as."""
        if self.kind == "decimal":
            return pa.decimal128(self.precision, self.scale)
        return _TO_ARROW[self.kind]

    def __str__(self) -> str:
        digits = f"({self.precision},{self.scale})" if self.kind == "decimal" else ""
        return self.kind + digits + ("?" if self.nullable else "")

    __repr__ = __str__


INT64: Final = Type("int64")
FLOAT64: Final = Type("float64")
BOOL: Final = Type("bool")
STRING: Final = Type("string")
BINARY: Final = Type("binary")
DATE: Final = Type("date")
TIMESTAMP: Final = Type("timestamp")

_TO_ARROW: Final[dict[str, pa.DataType]] = {
    "int64": pa.int64(),
    "float64": pa.float64(),
    "bool": pa.bool_(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
}
_FROM_PYTHON: Final[dict[Any, Type]] = {
    int: INT64,
    float: FLOAT64,
    bool: BOOL,
    str: STRING,
    bytes: BINARY,
    datetime.date: DATE,
    datetime.datetime: TIMESTAMP,
}
_FROM_NAME: Final[dict[str, Type]] = {kind: Type(kind) for kind in KINDS if kind != "decimal"} | {
    "int": INT64,
    "float": FLOAT64,
    "str": STRING,
    "bytes": BINARY,
    "datetime": TIMESTAMP,
}


def decimal(precision: int, scale: int = 0) -> Type:
    """A number of at most `precision` digits, `scale` of them after the point.

    >>> decimal(10, 2)
    decimal(10,2)
    """
    return Type("decimal", False, precision, scale)


def parse_type(spec: object) -> Type:
    """The type meant by a Python type, a union with None, a name, an Arrow type or field, or a Type.

    >>> parse_type(int), parse_type(str | None), parse_type("decimal(10,2)?")
    (int64, string?, decimal(10,2)?)
    """
    if isinstance(spec, Type):
        return spec
    if isinstance(spec, str):
        return _parse_name(spec)
    if isinstance(spec, pa.Field):
        return parse_arrow(spec.type).optional(spec.nullable)
    if isinstance(spec, pa.DataType):
        return parse_arrow(spec)
    if isinstance(spec, types.UnionType) or typing.get_origin(spec) is typing.Union:
        return _parse_union(spec)
    try:
        found = _FROM_PYTHON.get(spec)
    except TypeError:  # not hashable, so not a type
        found = None
    if found is not None:
        return found
    if spec is decimals.Decimal:
        raise TypeMismatch("a decimal needs its digits", hint="Write kpg.decimal(10, 2), or 'decimal(10,2)'.")
    raise TypeMismatch(f"not a type: {spec!r}", hint=f"Types are {', '.join(KINDS)}; int, str, ...; or int | None.")


def _parse_name(text: str) -> Type:
    name = text.strip()
    nullable = name.endswith("?")
    name = name.removesuffix("?").rstrip()
    digits = re.fullmatch(r"decimal\s*\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)", name)
    if digits:
        return decimal(int(digits[1]), int(digits[2] or 0)).optional(nullable)
    if name in _FROM_NAME:
        return _FROM_NAME[name].optional(nullable)
    if name == "decimal":
        raise TypeMismatch("a decimal needs its digits", hint="Write 'decimal(10,2)'.")
    raise TypeMismatch(f"unknown type {text!r}", hint=_nearest(name, _FROM_NAME, f"Types are {', '.join(KINDS)}."))


def _parse_union(spec: object) -> Type:
    members = typing.get_args(spec)
    others = [member for member in members if member is not type(None)]
    if len(others) != 1 or len(members) != 2:
        raise TypeMismatch(f"a column holds one type, not {spec}", hint="The only union is with None: int | None.")
    return parse_type(others[0]).optional()


def parse_arrow(spec: pa.DataType) -> Type:
    """The type a column of this Arrow type is kept as."""
    kinds = pa.types
    if kinds.is_dictionary(spec):
        return parse_arrow(spec.value_type)
    if kinds.is_integer(spec):
        return INT64
    if kinds.is_floating(spec):
        return FLOAT64
    if kinds.is_boolean(spec):
        return BOOL
    if is_text(spec):
        return STRING
    if is_bytes(spec):
        return BINARY
    if kinds.is_date(spec):
        return DATE
    if kinds.is_timestamp(spec):
        return TIMESTAMP
    if kinds.is_decimal(spec) and spec.precision <= MAX_DIGITS and 0 <= spec.scale <= spec.precision:
        return decimal(spec.precision, spec.scale)
    hint = f"Types are {', '.join(KINDS)}."
    if kinds.is_decimal(spec):
        hint = f"A decimal has at most {MAX_DIGITS} digits: cast it first."
    raise TypeMismatch(f"no column can hold Arrow's {spec}", hint=hint)


def is_text(spec: pa.DataType) -> bool:
    """Whether an Arrow type is one of the three of text."""
    return pa.types.is_string(spec) or pa.types.is_large_string(spec) or pa.types.is_string_view(spec)


def is_bytes(spec: pa.DataType) -> bool:
    """Whether an Arrow type is one of the four of bytes."""
    kinds = pa.types
    fixed = kinds.is_fixed_size_binary(spec)
    return fixed or kinds.is_binary(spec) or kinds.is_large_binary(spec) or kinds.is_binary_view(spec)


@dataclass(frozen=True, slots=True, repr=False)
class Schema:
    """The columns of a relation, in order: their names, all different, and their types."""

    names: tuple[str, ...]
    types: tuple[Type, ...]
    positions: dict[str, int] = field(init=False, compare=False)
    all_int64: bool = field(init=False, compare=False)  # no nulls either: rows of plain ints have a fast path

    def __post_init__(self) -> None:
        positions = {name: position for position, name in enumerate(self.names)}
        if len(self.names) != len(self.types):
            raise BadPlan(f"a schema of {len(self.names)} names and {len(self.types)} types")
        for name in self.names:
            if not isinstance(name, str) or not name:
                raise BadPlan(f"a column cannot be called {name!r}", hint="A name is a string and not empty.")
        if len(positions) < len(self.names):
            twice = next(name for position, name in enumerate(self.names) if positions[name] != position)
            raise BadPlan(
                f"two columns are called {twice!r}", detail=f"The columns are {self!r}.", hint="Rename one of them."
            )
        object.__setattr__(self, "positions", positions)
        object.__setattr__(self, "all_int64", all(type_ == INT64 for type_ in self.types))

    @classmethod
    def of(cls, columns: Mapping[str, object] | Iterable[tuple[str, object]]) -> Schema:
        """A schema from names and anything `parse_type` understands.

        >>> Schema.of({"name": str, "age": int | None})
        (name: string, age: int64?)
        """
        pairs = list(columns.items() if isinstance(columns, Mapping) else columns)
        return cls(tuple(name for name, _ in pairs), tuple(parse_type(spec) for _, spec in pairs))

    @classmethod
    def from_arrow(cls, schema: pa.Schema) -> Schema:
        """The schema that keeps tables of this Arrow schema."""
        return cls(tuple(schema.names), tuple(parse_type(item) for item in schema))

    def __len__(self) -> int:
        return len(self.names)

    def index(self, name: str) -> int:
        """The position of a column."""
        try:
            return self.positions[name]
        except (KeyError, TypeError):
            raise UndefinedName(
                f"no column is called {name!r}",
                detail=f"The columns are {self!r}.",
                hint=_nearest(str(name), self.names, None),
            ) from None

    def type_of(self, name: str) -> Type:
        """The type of a column."""
        return self.types[self.index(name)]

    def select(self, names: Iterable[str]) -> Schema:
        """Some columns, in the order asked for."""
        chosen = tuple(names)
        return Schema(chosen, tuple(self.types[self.index(name)] for name in chosen))

    def rename(self, names: Mapping[str, str]) -> Schema:
        """The same columns, some called otherwise: `{old: new}`."""
        for name in names:
            self.index(name)
        return Schema(tuple(names.get(name, name) for name in self.names), self.types)

    def concat(self, other: Schema) -> Schema:
        """The columns of both, those of `other` last."""
        return Schema(self.names + other.names, self.types + other.types)

    def to_arrow(self) -> pa.Schema:
        """The Arrow schema that tables come out with."""
        return _arrow_schema(self.names, self.types)

    def __repr__(self) -> str:
        return "(" + ", ".join(f"{name}: {type_}" for name, type_ in zip(self.names, self.types, strict=True)) + ")"


@lru_cache(maxsize=256)
def _arrow_schema(names: tuple[str, ...], types: tuple[Type, ...]) -> pa.Schema:
    pairs = zip(names, types, strict=True)
    return pa.schema([pa.field(name, type_.to_arrow(), nullable=type_.nullable) for name, type_ in pairs])


def _nearest(name: str, names: Iterable[str], otherwise: str | None) -> str | None:
    close = difflib.get_close_matches(name, list(names), n=1)
    return f"Did you mean {close[0]!r}?" if close else otherwise
