"""Types and schemas: the names and types of a relation's columns.

A `Type` is a registered column type (kpg.columns.column_types) with its parameters, and whether it may be null. A value
takes one int64 lane or several, and lanes sort as values do, except those of strings, binary values and the like:

    int64     the number                    float64    its bits, arranged to sort; NaN is above +inf; -0.0 is 0.0
    uint64    the number minus 2**63        record     a symbol id
    bool      0 or 1                        date       days since 1970-01-01
    decimal   the number times 10**scale    timestamp  microseconds since 1970-01-01 UTC
    string, binary   a symbol id: equal exactly when the values are; order comes from `Symbols.ranks`
    jsonb     a symbol id, as for strings   time       microseconds since midnight
    timestamp_ntz   microseconds since 1970-01-01 00:00
    decimal of 19 digits or more   two lanes: the number times 10**scale as 128 bits, see kpg.columns.wide_integers
    uuid      two lanes: its 128 bits       interval   three lanes: months, days, microseconds; they do not sort

The lanes of a column are adjacent, the most significant one first. `Schema.slots` has the index of each column's lanes
in a block int64[lanes, n]: a number if it has one lane, so that `data[slot]` is int64[n], else a slice, so that it is
int64[k, n]. Most schemas have one lane for each column, and `slots` are then the positions of the columns.

Null, in a column that may hold it, is NULL (-2**63) in every lane of the column, which sorts first. No other value of
any type is encoded so, except the number -2**63 itself, which a nullable int64 column therefore refuses.
"""

from __future__ import annotations

import difflib
import re
import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa

from kpg.columns.column_types.column_type import (
    COLUMN_TYPES,
    ColumnType,
    type_names,
    type_of_arrow,
    type_of_class,
    type_of_value,
    type_spelled,
    type_spellings,
)
from kpg.errors import BadPlan, TypeMismatch, UndefinedName


@dataclass(frozen=True, slots=True)
class Type:
    """The type of one column: a registered type, its parameters, and whether it may be null."""

    kind: str
    nullable: bool = False
    precision: int = 0
    scale: int = 0
    element: Type | None = None  # of arrays
    lanes: int = field(init=False, compare=False)  # int64 per value

    def __post_init__(self) -> None:
        try:
            definition = COLUMN_TYPES[self.kind]
        except KeyError:
            raise TypeMismatch(f"unknown type {self.kind!r}", hint=_all_types()) from None
        definition.check_parameters(self.precision, self.scale)
        if definition.has_element != (self.element is not None):
            raise TypeMismatch(f"no such type: {self.kind} of {self.element}", hint='Write an array as in "int64[]".')
        object.__setattr__(self, "lanes", definition.lane_count(self.precision, self.scale))

    @property
    def definition(self) -> ColumnType:
        """The registered type, which encodes and decodes values."""
        return COLUMN_TYPES[self.kind]

    @property
    def is_symbolic(self) -> bool:
        """Whether lanes hold ids of the symbol table, as for strings and binary values."""
        return COLUMN_TYPES[self.kind].is_symbolic

    @property
    def is_numeric(self) -> bool:
        """Whether values are numbers that can be added up."""
        return COLUMN_TYPES[self.kind].is_numeric

    def limits(self) -> tuple[int, int]:
        """Return the least and greatest lane value, null aside."""
        return COLUMN_TYPES[self.kind].limits(self)

    def optional(self, nullable: bool = True) -> Type:
        """Return the same type with null, or, given False, without."""
        return self if self.nullable == nullable else replace(self, nullable=nullable)

    def same(self, other: Type) -> bool:
        """Return whether both types encode values alike, so that equal lanes mean equal values (null aside)."""
        alike = self.kind == other.kind and self.scale == other.scale and self.lanes == other.lanes
        if self.element is None or other.element is None:
            return alike and self.element is other.element
        return alike and self.element.same(other.element)

    def to_arrow(self) -> pa.DataType:
        """Return the Arrow type of decoded columns."""
        return COLUMN_TYPES[self.kind].to_arrow(self)

    def __str__(self) -> str:
        return COLUMN_TYPES[self.kind].spelling(self) + ("?" if self.nullable else "")

    __repr__ = __str__


INT64: Final = Type("int64")
UINT64: Final = Type("uint64")
FLOAT64: Final = Type("float64")
BOOL: Final = Type("bool")
STRING: Final = Type("string")
BINARY: Final = Type("binary")
DATE: Final = Type("date")
TIMESTAMP: Final = Type("timestamp")
RECORD: Final = Type("record")
UUID: Final = Type("uuid")
TIME: Final = Type("time")
TIMESTAMP_NTZ: Final = Type("timestamp_ntz")
INTERVAL: Final = Type("interval")
JSONB: Final = Type("jsonb")
PLAIN_TYPES: Final[dict[type, Type]] = {int: INT64, float: FLOAT64, bool: BOOL, str: STRING, bytes: BINARY}


def decimal(precision: int, scale: int = 0) -> Type:
    """Return the type of numbers of at most `precision` digits, `scale` of them after the point.

    >>> decimal(10, 2)
    decimal(10,2)
    """
    return Type("decimal", False, precision, scale)


def array_of(element: object) -> Type:
    """Return the type of arrays with elements of a type, given as `parse_type` accepts it; elements may be null.

    >>> array_of("decimal(10,2)")
    decimal(10,2)[]
    """
    return Type("array", element=parse_type(element).optional(False))


def parse_type(spec: object) -> Type:
    """Return the type meant by a Python type, a union with None, a name, an Arrow type or field, or a Type.

    >>> parse_type(int), parse_type(str | None), parse_type("decimal(10,2)?")
    (int64, string?, decimal(10,2)?)
    """
    if isinstance(spec, Type):
        return spec
    if isinstance(spec, str):
        return _parse_name(spec)
    if isinstance(spec, type) and spec in PLAIN_TYPES:
        return PLAIN_TYPES[spec]
    if isinstance(spec, pa.Field):
        return parse_arrow(spec.type).optional(spec.nullable)
    if isinstance(spec, pa.DataType):
        return parse_arrow(spec)
    if isinstance(spec, types.UnionType) or typing.get_origin(spec) is typing.Union:
        return _parse_union(spec)
    try:
        definition = type_of_class(spec)
    except TypeError:  # not hashable, so not a type
        definition = None
    if definition is None:
        raise TypeMismatch(f"not a type: {spec!r}", hint=f"{_all_types()[:-1]}; int, str, ...; or int | None.")
    return Type(definition.name, False, *definition.default_parameters())


def _parse_name(text: str) -> Type:
    name = text.strip()
    nullable = name.endswith("?")
    name = name.removesuffix("?").rstrip()
    if name.endswith("[]"):
        return array_of(name.removesuffix("[]")).optional(nullable)
    parameters = re.fullmatch(r"(\w+)\s*\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)", name)
    if parameters:
        definition = type_spelled(parameters[1])
        if definition is not None and definition.takes_parameters:
            return Type(definition.name, nullable, int(parameters[2]), int(parameters[3] or 0))
    definition = type_spelled(name)
    if definition is not None:
        return Type(definition.name, nullable, *definition.default_parameters())
    raise TypeMismatch(f"unknown type {text!r}", hint=_nearest(name, type_spellings(), _all_types()))


def _parse_union(spec: object) -> Type:
    members = typing.get_args(spec)
    others = [member for member in members if member is not type(None)]
    if len(others) != 1 or len(members) != 2:
        raise TypeMismatch(f"a column holds one type, not {spec}", hint="The only union is with None: int | None.")
    return parse_type(others[0]).optional()


def parse_arrow(source: pa.DataType) -> Type:
    """Return the type of the column that holds values of an Arrow type."""
    if pa.types.is_dictionary(source):
        return parse_arrow(source.value_type)
    match = type_of_arrow(source)
    if match is None:
        raise TypeMismatch(f"no column can hold Arrow's {source}", hint=_all_types())
    definition, parameters = match
    return Type(definition.name, False, *parameters)


def literal_type(value: Any) -> Type:
    """Return the type of a Python constant that is not None."""
    definition = type_of_value(value)
    if definition is None:
        raise TypeMismatch(
            f"no column can hold {type(value).__name__}",
            detail=f"It is {repr(value)[:80]}.",
            hint="Constants are int, float, bool, str, bytes, date, datetime, timedelta, Decimal or None.",
        )
    return Type(definition.name, False, *definition.literal_parameters(value))


@dataclass(frozen=True, slots=True, repr=False)
class Schema:
    """The columns of a relation, in order: their names, all different, and their types."""

    names: tuple[str, ...]
    types: tuple[Type, ...]
    positions: dict[str, int] = field(init=False, compare=False)
    slots: tuple[int | slice, ...] = field(init=False, compare=False)  # the index of each column's lanes in a block
    width: int = field(init=False, compare=False)  # lanes of all columns together
    all_int64: bool = field(init=False, compare=False)  # no nulls either: rows of plain ints have a fast path

    def __post_init__(self) -> None:
        positions = {name: position for position, name in enumerate(self.names)}
        if len(self.names) != len(self.types):
            raise BadPlan(f"a schema of {len(self.names)} names and {len(self.types)} types")
        for name in self.names:
            if not isinstance(name, str) or not name:
                raise BadPlan(f"a column cannot be called {name!r}", hint="A name is a string and not empty.")
        if len(positions) < len(self.names):
            repeated = next(name for position, name in enumerate(self.names) if positions[name] != position)
            raise BadPlan(
                f"two columns are called {repeated!r}", detail=f"The columns are {self!r}.", hint="Rename one of them."
            )
        object.__setattr__(self, "positions", positions)
        slots, width = slots_of(self.types)
        object.__setattr__(self, "slots", slots)
        object.__setattr__(self, "width", width)
        object.__setattr__(self, "all_int64", self.types.count(INT64) == len(self.types))

    @classmethod
    def of(cls, columns: Mapping[str, object] | Iterable[tuple[str, object]]) -> Schema:
        """Return the schema of column names and types, each in a form that `parse_type` accepts.

        >>> Schema.of({"name": str, "age": int | None})
        (name: string, age: int64?)
        """
        pairs = list(columns.items() if isinstance(columns, Mapping) else columns)
        return cls(tuple([name for name, _ in pairs]), tuple([parse_type(spec) for _, spec in pairs]))

    @classmethod
    def from_arrow(cls, schema: pa.Schema) -> Schema:
        """Return the schema that holds tables of an Arrow schema."""
        return cls(tuple(schema.names), tuple(parse_type(arrow_field) for arrow_field in schema))

    def __len__(self) -> int:
        return len(self.names)

    def index(self, name: str) -> int:
        """Return the position of a column."""
        try:
            return self.positions[name]
        except (KeyError, TypeError):
            raise UndefinedName(
                f"no column is called {name!r}",
                detail=f"The columns are {self!r}.",
                hint=_nearest(str(name), self.names, None),
            ) from None

    def lanes_of(self, names: Iterable[str]) -> tuple[int, ...]:
        """Return the lanes of some columns, in the given order."""
        if self.width == len(self.names):
            names = tuple(names)
            try:
                return tuple(map(self.positions.__getitem__, names))
            except (KeyError, TypeError):
                return tuple(map(self.index, names))  # raises
        return tuple(lane for name in names for lane in self.lanes_at(self.index(name)))

    def lanes_at(self, position: int) -> range:
        """Return the lanes of the column at a position."""
        slot = self.slots[position]
        return range(slot.start, slot.stop) if isinstance(slot, slice) else range(slot, slot + 1)

    def lane_of(self, name: str) -> int:
        """Return the first lane of a column."""
        return self.lanes_at(self.index(name))[0]

    def width_of(self, columns: int) -> int:
        """Return the number of lanes of the first columns."""
        return columns if self.width == len(self.names) else sum(type_.lanes for type_ in self.types[:columns])

    def columns_in(self, lanes: int) -> int:
        """Return the number of first columns that take this many lanes together."""
        if self.width == len(self.names):
            return lanes
        return next(columns for columns in range(len(self.names) + 1) if self.width_of(columns) >= lanes)

    def lane_types(self) -> tuple[Type, ...]:
        """Return for each lane the type of its column."""
        if self.width == len(self.names):
            return self.types
        return tuple(type_ for type_ in self.types for _ in range(type_.lanes))

    def symbolic_lanes(self) -> tuple[int, ...]:
        """Return the lanes that hold symbol ids."""
        if self.all_int64:
            return ()
        return tuple(lane for lane, type_ in enumerate(self.lane_types()) if type_.is_symbolic)

    def type_of(self, name: str) -> Type:
        """Return the type of a column."""
        try:
            return self.types[self.positions[name]]
        except (KeyError, TypeError):
            return self.types[self.index(name)]  # raises

    def select(self, names: Iterable[str]) -> Schema:
        """Return the schema of some columns, in the given order."""
        chosen = tuple(names)
        if chosen == self.names:
            return self
        return Schema(chosen, tuple(map(self.type_of, chosen)))

    def rename(self, names: Mapping[str, str]) -> Schema:
        """Return the same columns with new names for some: `{old: new}`."""
        for name in names:
            self.index(name)
        return Schema(tuple(names.get(name, name) for name in self.names), self.types)

    def concat(self, other: Schema) -> Schema:
        """Return the columns of both schemas, those of `other` last."""
        return Schema(self.names + other.names, self.types + other.types)

    def to_arrow(self) -> pa.Schema:
        """Return the Arrow schema of decoded tables."""
        return _arrow_schema(self.names, self.types)

    def __repr__(self) -> str:
        return "(" + ", ".join(f"{name}: {type_}" for name, type_ in zip(self.names, self.types, strict=True)) + ")"


def slots_of(types: Sequence[Type]) -> tuple[tuple[int | slice, ...], int]:
    """Return the slots of columns of these types, and the number of their lanes."""
    slots: list[int | slice] = []
    lane = 0
    for type_ in types:
        slots.append(lane if type_.lanes == 1 else slice(lane, lane + type_.lanes))
        lane += type_.lanes
    return tuple(slots), lane


@lru_cache(maxsize=256)
def _arrow_schema(names: tuple[str, ...], types: tuple[Type, ...]) -> pa.Schema:
    pairs = zip(names, types, strict=True)
    return pa.schema([pa.field(name, type_.to_arrow(), nullable=type_.nullable) for name, type_ in pairs])


def _all_types() -> str:
    return f"Types are {', '.join(type_names())}."


def _nearest(name: str, names: Iterable[str], otherwise: str | None) -> str | None:
    close = difflib.get_close_matches(name, list(names), n=1)
    return f"Did you mean {close[0]!r}?" if close else otherwise
