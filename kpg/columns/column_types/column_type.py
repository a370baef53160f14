"""The contract of a column type, and the registry that finds a type by its name, a Python value or an Arrow type.

A type is one subclass of `ColumnType` in one file, which ends with a call of `register`. The rest of kpg (schemas,
encoding, decoding, messages, plans, storage, Spark) asks the registry and holds no list of types. For values a and b
of a type, neither of them null, the type promises:

    decode(encode(a)) == a
    lane(a) == lane(b)   ⇔   a == b
    lane(a) <  lane(b)   ⇔   a <  b          unless the type is symbolic: then the order is that of `Symbols.ranks`
    low <= lane(a) <= high                   where (low, high) = limits(type); never NULL in a nullable column

A type may take several lanes a value. Then `lane(a)` stands for the tuple of its lanes, the most significant first, and
methods for columns take and return blocks int64[lanes, n] in place of int64[n]. Such a type encodes one value by
`encode_lanes`, which checks the range itself; `limits`, `encode_value` and `decode_value` are for types of one lane.

Methods for whole columns (`encode_arrow`, `encode_plain`, `decode_arrow`, `decode_list`) are vectorised where NumPy or
Arrow can do the work. Methods for one value run once per value, and only for columns of Python objects.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kpg.columns.column_types.tagged_text import MESSAGE_FORMAT, PLAN_FORMAT, TaggedText
from kpg.columns.lane_values import MAX, NULL, is_null
from kpg.columns.updates import Ints
from kpg.errors import SchemaMismatch

if TYPE_CHECKING:
    from kpg.columns.schema import Type
    from kpg.columns.symbols import Symbols

Bools: TypeAlias = npt.NDArray[np.bool_]
Parameters: TypeAlias = tuple[int, int]  # the numbers in parentheses after a type's name: precision and scale

NO_PARAMETERS: Final[Parameters] = (0, 0)


class ColumnType(ABC):
    """The definition of one type. A single instance serves columns of all parameters, nullable or not."""

    # Names
    name: ClassVar[str]  # in schemas, messages and files: a literal that never changes
    aliases: ClassVar[tuple[str, ...]] = ()  # other names that a schema may use
    python_class: ClassVar[type | None] = None  # the class that declares such a column in a schema
    literal_classes: ClassVar[tuple[type, ...]] = ()  # classes of the Python constants of this type

    # Layout and meaning of lanes
    lanes: ClassVar[int] = 1  # int64 per value; a type whose parameters decide overrides `lane_count`
    is_symbolic: ClassVar[bool] = False  # lanes are ids in the db's symbol table, and do not sort as values
    large_arrow: ClassVar[pa.DataType | None] = None  # of symbolic types: Arrow's type with 64-bit offsets, for files
    is_numeric: ClassVar[bool] = False  # arithmetic and sums are defined
    is_ordered: ClassVar[bool] = True  # lanes (or ranks of symbols) sort as expressions compare the values
    has_nan: ClassVar[bool] = False  # NaN is a value, so that pandas' NaN is not always null

    # Conversions
    plain_class: ClassVar[type | None] = None  # `encode_plain` encodes columns of exactly this class as a whole
    datetime_unit: ClassVar[str] = ""  # NumPy's unit for dates and times that Arrow has no unit for: "D" or "s"
    message_text: ClassVar[TaggedText | None] = None  # in messages to clients; None where JSON has the value itself
    plan_text: ClassVar[TaggedText | None] = None  # in plans, for constants; likewise

    # Parameters
    has_element: ClassVar[bool] = False  # whether the type has an element type, as arrays have
    takes_parameters: ClassVar[bool] = False  # whether a schema may write "name(precision,scale)"

    def check_parameters(self, precision: int, scale: int) -> None:
        """Raise TypeMismatch unless the type has these parameters."""

    def lane_count(self, precision: int, scale: int) -> int:
        """Return the number of lanes of a value."""
        return self.lanes

    def default_parameters(self) -> Parameters:
        """Return the parameters of a column declared by name or class alone; raise TypeMismatch if it needs some."""
        return NO_PARAMETERS

    def literal_parameters(self, value: Any) -> Parameters:
        """Return the parameters of the type of a constant; raise TypeMismatch if no column can hold it."""
        return NO_PARAMETERS

    def spelling(self, type_: Type) -> str:
        """Return the name with its parameters, as schemas and files write it."""
        return self.name

    # Values

    def limits(self, type_: Type) -> tuple[int, int]:
        """Return the least and greatest lane value, null aside."""
        return NULL + type_.nullable, MAX

    def range_hint(self, type_: Type, lane_value: int) -> str | None:
        """Return a hint for the error about a value outside the limits, or None."""
        return None

    @abstractmethod
    def encode_value(self, type_: Type, value: Any, symbols: Symbols) -> int:
        """Return the lane value of one Python value that is not None; the caller checks the limits.

        Raise UnfitValue or TypeError, with the reason as message, if the type does not have the value.
        """

    def encode_lanes(self, type_: Type, value: Any, symbols: Symbols) -> tuple[int, ...]:
        """Return the lane values of one Python value that is not None, for a type of several lanes.

        Raise UnfitValue or TypeError, with the reason as message, if the type does not have the value.
        """
        raise TypeError(f"a value of {self.name} has one lane: use encode_value")

    @abstractmethod
    def decode_value(self, type_: Type, lane_value: int) -> Any:
        """Return the Python value of a lane value other than NULL."""

    def show_lane(self, type_: Type, lane_value: int) -> str:
        """Return a lane value as the user would write it, also outside the limits."""
        return str(lane_value)

    # Columns of Python values

    def encode_plain(self, type_: Type, values: Sequence[Any], has_null: bool, symbols: Symbols) -> Ints | None:
        """Return the lane of values of `plain_class`, and of None if `has_null`; None if some value does not fit.

        Only types with a `plain_class` override it; for the others, columns are encoded value by value.
        """
        return None

    def decode_list(self, type_: Type, lane: Ints, symbols: Symbols) -> list[Any]:
        """Return the Python values of a lane, None for null."""
        return [None if value == NULL else self.decode_value(type_, value) for value in lane.tolist()]

    def decode_numpy(self, type_: Type, lane: Ints, symbols: Symbols) -> npt.NDArray[Any]:
        """Return a lane without nulls as the NumPy array that user functions receive; of objects unless overridden."""
        array = np.empty(lane.shape[-1], object)
        array[:] = self.decode_list(type_, lane, symbols)
        return array

    # Arrow

    @abstractmethod
    def to_arrow(self, type_: Type) -> pa.DataType:
        """Return the Arrow type of decoded columns."""

    def from_arrow(self, source: pa.DataType) -> Parameters | None:
        """Return the parameters of the column for an Arrow type; None if this type is not the default for it.

        At most one type may claim an Arrow type. A type that claims none is used only where a schema names it.
        """
        return None

    def accepts_arrow(self, source: pa.DataType) -> bool:
        """Return whether a column of this type accepts an Arrow type; each value is still checked."""
        return self.from_arrow(source) is not None

    @abstractmethod
    def encode_arrow(self, type_: Type, array: Any, symbols: Symbols) -> Ints:
        """Return the lane of an Arrow array of an accepted type; null rows may hold anything, the caller fills them.

        The caller copies the lane and makes it int64, so it may be a view of the array, and of smaller integers.
        Raise an ArrowException, ValueError, OverflowError or SchemaMismatch if some value does not fit.
        """

    @abstractmethod
    def decode_arrow(self, type_: Type, lane: Ints, symbols: Symbols) -> Any:
        """Return the values of a lane as an Arrow array, or a chunked array where one array cannot hold them."""

    def from_stored_bytes(self, type_: Type, values: Any, symbols: Symbols) -> Ints:
        """Return the lanes of values of a type that had one symbolic lane in older directories, as Arrow bytes."""
        raise TypeError(f"{self.name} never was a symbolic type")

    def arrow_to_list(self, type_: Type, column: Any) -> list[Any]:
        """Return the Python values of an Arrow column that `decode_arrow` returned, None for null.

        Override this if the Python values of the type differ from Arrow's, as for a number that stands for an address.
        """
        return column.to_pylist()  # type: ignore[no-any-return]


class SymbolicType(ColumnType):
    """A type of values of any length: the lane holds the id of the value in the db's symbol table."""

    is_symbolic = True

    def decode_value(self, type_: Type, lane_value: int) -> Any:
        raise TypeError(f"only the symbol table has the values of {self.name}: use decode_list")

    def encode_plain(self, type_: Type, values: Sequence[Any], has_null: bool, symbols: Symbols) -> Ints | None:
        try:
            return symbols.intern(values)
        except SchemaMismatch:
            return None  # the caller then encodes value by value, and reports the row that fails

    def decode_list(self, type_: Type, lane: Ints, symbols: Symbols) -> list[Any]:
        return symbols.values(lane)

    def encode_arrow(self, type_: Type, array: Any, symbols: Symbols) -> Ints:
        return symbols.intern(array)

    def decode_arrow(self, type_: Type, lane: Ints, symbols: Symbols) -> Any:
        return symbols.text(lane, self.to_arrow(type_))


class WideType(ColumnType):
    """A type whose values always take several lanes."""

    def encode_texts(self, type_: Type, array: Any, symbols: Symbols) -> Ints:
        """Return the lanes of an Arrow array of text, for a type with values that are written as text."""
        nothing = (NULL,) * self.lanes
        rows = [nothing if text is None else self.encode_lanes(type_, text, symbols) for text in array.to_pylist()]
        return np.array(rows, np.int64).reshape(-1, self.lanes).T

    def encode_value(self, type_: Type, value: Any, symbols: Symbols) -> int:
        raise TypeError(f"a value of {self.name} has several lanes: use encode_lanes")

    def decode_value(self, type_: Type, lane_value: int) -> Any:
        raise TypeError(f"a value of {self.name} has several lanes: use decode_list")


# --- for types with numbers as lanes ----------------------------------------------------------------------------------


def null_mask(type_: Type, lane: Ints) -> Bools | None:
    """Return which rows of a lane, or of a block of lanes, are null; None if none is."""
    if not type_.nullable:
        return None
    null = is_null(lane)
    return null if null.any() else None


def put_nulls(type_: Type, values: list[Any], lane: Ints) -> list[Any]:
    """Set the values of null rows to None, in place, and return the list."""
    if type_.nullable:
        for row in np.flatnonzero(is_null(lane)).tolist():
            values[row] = None
    return values


def without_nulls(values: Sequence[Any], has_null: bool) -> Sequence[Any]:
    """Return the values with 0 instead of None."""
    return [0 if value is None else value for value in values] if has_null else values


def fixed_width_values(array: Any) -> Any:
    """Return the values of an Arrow array of fixed width as NumPy, 0 where null."""
    if array.null_count:
        array = pc.fill_null(array, 0)
    return array.to_numpy(zero_copy_only=False)


# --- registry ---------------------------------------------------------------------------------------------------------

COLUMN_TYPES: Final[dict[str, ColumnType]] = {}  # by name, in the order of registration
_BY_SPELLING: Final[dict[str, ColumnType]] = {}  # by name and alias
_BY_PYTHON_CLASS: Final[dict[type, ColumnType]] = {}
_BY_LITERAL_CLASS: Final[dict[type, ColumnType]] = {}


def register(definition: ColumnType) -> None:
    """Add a type to kpg, for the rest of the process. Raise ValueError if it conflicts with a registered type."""
    if definition.is_symbolic and definition.lanes != 1:
        raise ValueError(f"{definition.name} takes {definition.lanes} lanes a value; an id of a symbol takes one")
    python_classes = [] if definition.python_class is None else [definition.python_class]
    tables: list[tuple[dict[Any, ColumnType], Sequence[Any]]] = [
        (_BY_SPELLING, (definition.name, *definition.aliases)),
        (_BY_PYTHON_CLASS, python_classes),
        (_BY_LITERAL_CLASS, definition.literal_classes),
    ]
    for table, keys in tables:
        for key in keys:
            if key in table:
                raise ValueError(f"{definition.name} and {table[key].name} both claim {key!r}")
    for format_, text in ((MESSAGE_FORMAT, definition.message_text), (PLAN_FORMAT, definition.plan_text)):
        if text is not None:
            format_.add(text)
    COLUMN_TYPES[definition.name] = definition
    for table, keys in tables:
        table.update(dict.fromkeys(keys, definition))


def unregister(name: str) -> None:
    """Remove a type from kpg: for tests, which must leave the registry as it was."""
    definition = COLUMN_TYPES.pop(name)
    for format_, text in ((MESSAGE_FORMAT, definition.message_text), (PLAN_FORMAT, definition.plan_text)):
        if text is not None:
            format_.remove(text)
    tables: list[dict[Any, ColumnType]] = [_BY_SPELLING, _BY_PYTHON_CLASS, _BY_LITERAL_CLASS]
    for table in tables:
        for key in [key for key, entry in table.items() if entry is definition]:
            del table[key]


def type_names() -> tuple[str, ...]:
    """Return the names of all types."""
    return tuple(COLUMN_TYPES)


def type_spellings() -> tuple[str, ...]:
    """Return the names and aliases of all types."""
    return tuple(_BY_SPELLING)


def type_spelled(name: str) -> ColumnType | None:
    """Return the type of a name or alias."""
    return _BY_SPELLING.get(name)


def type_of_class(python_class: Any) -> ColumnType | None:
    """Return the type that a Python class declares in a schema."""
    return _BY_PYTHON_CLASS.get(python_class)


def type_of_value(value: Any) -> ColumnType | None:
    """Return the type of a Python constant: that of its class, or of the nearest base class."""
    for python_class in type(value).__mro__:
        definition = _BY_LITERAL_CLASS.get(python_class)
        if definition is not None:
            return definition
    return None


def type_of_arrow(source: pa.DataType) -> tuple[ColumnType, Parameters] | None:
    """Return the type that holds an Arrow type, with its parameters."""
    for definition in COLUMN_TYPES.values():
        parameters = definition.from_arrow(source)
        if parameters is not None:
            return definition, parameters
    return None
