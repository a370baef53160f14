"""Strict decoding of JSON values by the annotations of dataclasses.

    decode(annotation, value, path)      the value that JSON stands for; ProtocolError for anything else

A message is what its class declares and nothing else. A member that is missing, unknown or of another type is refused
with its path (`$.changes[0].rows[2]`) and a hint. Supported annotations are str, int, float, bool, Literal, `X | None`,
unions of scalars, `tuple[X, ...]`, `tuple[X, Y]`, `dict[str, X]`, dataclasses, `Annotated` with a bound, and the marks
VALUE, ROWS, ANY_JSON, TRUSTED_JSON and INT64. The same annotations make the JSON schema (`kpg.protocol.json_schema`).

Each annotation is compiled into a function once and cached. Decoding a small message costs a few microseconds beyond
parsing its JSON; rows of plain numbers and texts cost one type test for each value.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import types
import typing
from collections.abc import Callable, Iterable
from typing import Annotated, Any, Final, Literal, TypeVar, get_args, get_origin

from kpg.protocol.value_codec import EXACT, decode_value, refused

Shape = TypeVar("Shape")
Decoder = Callable[[Any, str], Any]  # a JSON value and its path → the decoded value
MISSING: Final = dataclasses.MISSING
MAX_JSON_DEPTH: Final = 100  # nested lists and objects in a member that takes any JSON
SHOWN_CHARACTERS: Final = 60  # of a refused value, so that an error stays readable
INT64_LIMIT: Final = 2**63
SCALARS: Final[dict[type, str]] = {str: "a text", int: "a whole number", float: "a number", bool: "true or false"}
PLAIN: Final = frozenset({str, bool, type(None)})


@dataclasses.dataclass(frozen=True, slots=True)
class Size:
    """Bounds of the length of a text, list or object."""

    least: int
    most: int


@dataclasses.dataclass(frozen=True, slots=True)
class Between:
    """Bounds of a number."""

    least: float
    most: float


class Mark:
    """A type of values that Python's annotations cannot express."""

    def __init__(self, name: str) -> None:
        self.name = name


VALUE = Mark("value")
ROWS = Mark("rows")
ANY_JSON = Mark("json")
TRUSTED_JSON = Mark("trusted json")
INT64 = Mark("int64")

Value = Annotated[Any, VALUE]  # a value of a row, as `kpg.protocol.value_codec` writes it
Rows = Annotated[tuple[tuple[Any, ...], ...], ROWS]
Json = Annotated[Any, ANY_JSON]
TrustedJson = Annotated[Any, TRUSTED_JSON]  # of any depth: only from a process of the same db
Int64 = Annotated[int, INT64]  # beyond 2^53: only for messages that no other language reads
Name = Annotated[str, Size(1, 1_000)]
Count = Annotated[int, Between(0, EXACT)]


@functools.cache
def members(shape: Any) -> dict[str, tuple[Any, bool]]:
    """Return, for each field of a dataclass, its annotation and whether it is required."""
    hints = typing.get_type_hints(shape, include_extras=True)
    return {
        field.name: (hints[field.name], field.default is MISSING and field.default_factory is MISSING)
        for field in dataclasses.fields(shape)
    }


def build(shape: type[Shape], json_value: Any, path: str, extra: tuple[str, ...] = ()) -> Shape:
    """Make an object of a dataclass from a JSON object; members named in `extra` are ignored."""
    built: Shape = object_decoder(typing.cast(Any, shape), extra)(json_value, path)
    return built


def decode(shape: Any, json_value: Any, path: str) -> Any:
    """Decode a JSON value as an annotation."""
    return decoder_of(shape)(json_value, path)


# Compilation: from an annotation to a function


@functools.cache
def decoder_of(shape: Any) -> Decoder:
    """Return the function that decodes values of an annotation."""
    origin, arguments = get_origin(shape), get_args(shape)
    if origin is Annotated:
        return annotated_decoder(arguments)
    if origin in (types.UnionType, typing.Union):
        return union_decoder(shape, arguments)
    if origin is Literal:
        return literal_decoder(shape, arguments)
    if origin is tuple:
        return list_decoder(arguments[0]) if arguments[-1] is Ellipsis else tuple_decoder(arguments)
    if origin is dict:
        return mapping_decoder(arguments[1])
    if dataclasses.is_dataclass(shape):
        return object_decoder(typing.cast(Any, shape), ())
    return null_decoder if shape is type(None) or shape is None else scalar_decoder(shape)


@functools.cache
def object_decoder(shape: Any, extra: tuple[str, ...]) -> Decoder:
    """Decode an object as a dataclass: unknown members are refused first, then missing ones, then wrong ones."""
    by_name = members(shape)
    decoders = {name: (decoder_of(annotation), f".{name}") for name, (annotation, _) in by_name.items()}
    allowed = {*by_name, *extra}
    required = {name for name, (_, is_required) in by_name.items() if is_required}
    ignored = frozenset(extra) - by_name.keys()

    def decode_object(json_value: Any, path: str) -> Any:
        if type(json_value) is not dict:
            raise refused(path, f"an object is expected, not {kind_of(json_value)}")
        if not json_value.keys() <= allowed:
            name = next(name for name in json_value if name not in allowed)
            raise refused(f"{path}.{shown(name)}", "no such member", nearest(name, by_name))
        if not required <= json_value.keys():
            name = next(name for name in by_name if name in required and name not in json_value)
            raise refused(path, f"the member {name!r} is missing", f"It holds {describe(by_name[name][0])}.")
        values = {}
        for name, value in json_value.items():
            if name not in ignored:
                decoder, suffix = decoders[name]
                values[name] = decoder(value, path + suffix)
        return shape(**values)

    return decode_object


def annotated_decoder(arguments: tuple[Any, ...]) -> Decoder:
    """Decode a value that has a mark or bounds."""
    inner, *notes = arguments
    marks: dict[Any, Decoder] = {
        VALUE: decode_value, ROWS: decode_rows, ANY_JSON: decode_any_json, INT64: decode_int64,
        TRUSTED_JSON: accept,
    }  # fmt: skip
    for note in notes:
        if note in marks:
            return marks[note]
    decode_inner = decoder_of(inner)

    def decode_bounded(json_value: Any, path: str) -> Any:
        value = decode_inner(json_value, path)
        for note in notes:
            if type(note) is Size and not note.least <= len(value) <= note.most:
                raise refused(path, f"the length is {len(value):,}", f"From {note.least:,} to {note.most:,}.")
            if type(note) is Between and not note.least <= value <= note.most:
                raise refused(path, f"{value} is out of bounds", f"From {note.least} to {note.most}.")
        return value

    return decode_bounded


def union_decoder(shape: Any, arguments: tuple[Any, ...]) -> Decoder:
    """Decode `X | None`, or one of several scalars."""
    alternatives = [alternative for alternative in arguments if alternative is not type(None)]
    if len(alternatives) == 1:
        decode_inner = decoder_of(alternatives[0])
        return lambda json_value, path: None if json_value is None else decode_inner(json_value, path)
    assert all(alternative in SCALARS for alternative in alternatives), f"{shape} is not supported"
    by_type: dict[type, Decoder] = {alternative: decoder_of(alternative) for alternative in alternatives}

    def decode_alternative(json_value: Any, path: str) -> Any:
        decoder = by_type.get(type(json_value))
        if decoder is None:
            raise refused(path, f"{describe(shape)} is expected, not {kind_of(json_value)}")
        return decoder(json_value, path)

    return decode_alternative


def literal_decoder(shape: Any, arguments: tuple[Any, ...]) -> Decoder:
    """Decode one of some constants."""

    def decode_literal(json_value: Any, path: str) -> Any:
        if json_value not in arguments or type(json_value) is not type(arguments[0]):
            raise refused(path, f"{shown(json_value)} is not {describe(shape)}", nearest(json_value, arguments))
        return json_value

    return decode_literal


def list_decoder(item: Any) -> Decoder:
    """Decode a list of items with one annotation, as a tuple."""
    decode_item = decoder_of(item)
    bulk_type = int if item is int or item == Int64 else item if item is str else None
    largest = EXACT if item is int else INT64_LIMIT - 1

    def decode_list(json_value: Any, path: str) -> tuple[Any, ...]:
        if type(json_value) is not list:
            raise refused(path, f"a list is expected, not {kind_of(json_value)}")
        if not json_value:
            return ()
        # The common cases, names, times and diffs, without a call for each item.
        if bulk_type is not None and set(map(type, json_value)) == {bulk_type}:
            if bulk_type is str or (-largest <= min(json_value) and max(json_value) <= largest):
                return tuple(json_value)
        return tuple([decode_item(value, f"{path}[{position}]") for position, value in enumerate(json_value)])

    return decode_list


def tuple_decoder(items: tuple[Any, ...]) -> Decoder:
    """Decode a list of fixed length as a tuple, each item by its own annotation."""
    decoders = [decoder_of(item) for item in items]

    def decode_tuple(json_value: Any, path: str) -> tuple[Any, ...]:
        require(json_value, list, path, "a list")
        if len(json_value) != len(decoders):
            raise refused(path, f"a list of {len(decoders)} is expected, not of {len(json_value):,}")
        return tuple([decoders[position](value, f"{path}[{position}]") for position, value in enumerate(json_value)])

    return decode_tuple


def mapping_decoder(item: Any) -> Decoder:
    """Decode an object of values with one annotation."""
    decode_item = decoder_of(item)

    def decode_mapping(json_value: Any, path: str) -> dict[str, Any]:
        require(json_value, dict, path, "an object")
        return {name: decode_item(value, f"{path}.{shown(name)}") for name, value in json_value.items()}

    return decode_mapping


def scalar_decoder(shape: type) -> Decoder:
    """Decode a text, a number or a truth value."""
    expected = SCALARS[shape]

    def decode_scalar(json_value: Any, path: str) -> Any:
        if type(json_value) is not shape:
            raise refused(path, f"{expected} is expected, not {kind_of(json_value)}")
        return json_value

    return {int: decode_int, float: decode_float}.get(shape, decode_scalar)


# Decoders without parameters


def null_decoder(json_value: Any, path: str) -> None:
    """Accept null only."""
    if json_value is not None:
        raise refused(path, f"null is expected, not {kind_of(json_value)}")


def decode_int(json_value: Any, path: str) -> int:
    """Decode a whole number that every reader of JSON takes exactly."""
    if type(json_value) is not int:
        raise refused(path, f"a whole number is expected, not {kind_of(json_value)}")
    if not -EXACT <= json_value <= EXACT:
        raise refused(path, "the number is too large", "At most 2^53 - 1.")
    return json_value


def decode_int64(json_value: Any, path: str) -> int:
    """Decode a whole number of 64 bits."""
    if type(json_value) is not int:
        raise refused(path, f"a whole number is expected, not {kind_of(json_value)}")
    if not -INT64_LIMIT <= json_value < INT64_LIMIT:
        raise refused(path, "the number is too large", "At most 2^63 - 1.")
    return json_value


def decode_float(json_value: Any, path: str) -> Any:
    """Decode a number; a whole one becomes a float."""
    if type(json_value) is int:
        return float(json_value) if abs(json_value) <= EXACT else decode_value(json_value, path)
    require(json_value, float, path, SCALARS[float])
    return json_value


def accept(json_value: Any, path: str) -> Any:
    """Accept any JSON."""
    return json_value


def decode_any_json(json_value: Any, path: str) -> Any:
    """Accept any JSON that is not nested too deep."""
    if is_deeper(json_value, MAX_JSON_DEPTH):
        raise refused(path, f"lists and objects are nested deeper than {MAX_JSON_DEPTH}")
    return json_value


def is_deeper(json_value: Any, depth: int) -> bool:
    """Return whether lists and objects are nested deeper than `depth`."""
    if not isinstance(json_value, list | dict):
        return False
    inner = json_value.values() if isinstance(json_value, dict) else json_value
    return depth == 0 or any(is_deeper(value, depth - 1) for value in inner)


def decode_rows(json_value: Any, path: str) -> tuple[tuple[Any, ...], ...]:
    """Decode rows, each a list of values. The list is used up: to free all rows at once would hold up other threads."""
    require(json_value, list, path, "a list of rows")
    rows = []
    for position, row in enumerate(json_value):
        if type(row) is not list:
            raise refused(f"{path}[{position}]", f"a row is a list of values, not {kind_of(row)}")
        rows.append(tuple([
            value if type(value) in PLAIN or (type(value) is int and -EXACT <= value <= EXACT)
            else decode_value(value, f"{path}[{position}][{column}]")
            for column, value in enumerate(row)
        ]))  # fmt: skip
        json_value[position] = None
    return tuple(rows)


# Refusals


def require(json_value: Any, kind: type, path: str, expected: str) -> None:
    """Refuse a value of another type."""
    if type(json_value) is not kind:
        raise refused(path, f"{expected} is expected, not {kind_of(json_value)}")


def without_none(arguments: tuple[Any, ...]) -> Any:
    """Return the one alternative of a union with None."""
    (inner,) = [alternative for alternative in arguments if alternative is not type(None)]
    return inner


def kind_of(json_value: Any) -> str:
    """Name the type of a JSON value, for people."""
    names = {dict: "an object", list: "a list", type(None): "null", **SCALARS}
    return names.get(type(json_value), type(json_value).__name__)


def describe(shape: Any) -> str:
    """Say what an annotation expects, for people."""
    origin, arguments = get_origin(shape), get_args(shape)
    if origin is Annotated:
        marks = {VALUE: "a value", ROWS: "a list of rows", ANY_JSON: "JSON"}
        return next((marks[note] for note in arguments if note in marks), None) or describe(arguments[0])
    if origin is Literal:
        return "one of " + ", ".join(map(repr, arguments))
    if origin in (types.UnionType, typing.Union):
        alternatives = [describe(alternative) for alternative in arguments if alternative is not type(None)]
        return " or ".join([*alternatives, "null"] if type(None) in arguments else alternatives)
    if origin is tuple:
        return "a list"
    return SCALARS.get(shape, "an object")


def nearest(name: object, candidates: Iterable[Any]) -> str:
    """Return a hint with the nearest known name, or else with all of them."""
    names = [str(candidate) for candidate in candidates]
    close = difflib.get_close_matches(str(name)[:100], names, n=1)
    return f"Did you mean {close[0]!r}?" if close else f"There are {', '.join(names)}."


def shown(json_value: Any) -> str:
    """Return the text of a refused value, cut to a readable length."""
    text = json_value if isinstance(json_value, str) else repr(json_value)
    return text if len(text) <= SHOWN_CHARACTERS else text[:SHOWN_CHARACTERS] + "..."
