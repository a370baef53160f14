"""Decoding JSON by the annotations of a dataclass, strictly.

A message is what its class says and nothing else: a member that is missing, unknown or of another type is refused with
the path to it (`$.changes[0].rows[2]`) and a hint. Annotations that are understood: str, int, float, bool, Literal,
`X | None`, `tuple[X, ...]`, `dict[str, X]`, dataclasses, `Annotated` with a bound, and the marks VALUE, ROWS and JSON.
The same annotations make the machine-readable schema (`kpg.protocol.json_schema`).
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import types
import typing
from typing import Annotated, Any, Final, Literal, TypeVar, get_args, get_origin

from kpg.protocol.value_codec import EXACT, decode_value, refused

Shape = TypeVar("Shape")
MISSING: Final = dataclasses.MISSING
DEPTH: Final = 100  # lists and objects within each other, where any JSON may stand
SCALARS: Final[dict[type, str]] = {str: "a text", int: "a whole number", float: "a number", bool: "true or false"}


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
    """Something that no annotation of Python says."""

    def __init__(self, name: str) -> None:
        self.name = name


VALUE = Mark("value")
ROWS = Mark("rows")
ANY_JSON = Mark("json")

Value = Annotated[Any, VALUE]
Rows = Annotated[tuple[tuple[Any, ...], ...], ROWS]
Json = Annotated[Any, ANY_JSON]
Name = Annotated[str, Size(1, 1_000)]
Count = Annotated[int, Between(0, EXACT)]


def members(shape: Any) -> dict[str, tuple[Any, bool]]:
    """The annotation of each field of a dataclass, and whether it must be given."""
    return remembered(shape)


@functools.cache
def remembered(shape: Any) -> dict[str, tuple[Any, bool]]:
    """The same, worked out once."""
    hints = typing.get_type_hints(shape, include_extras=True)
    return {
        each.name: (hints[each.name], each.default is MISSING and each.default_factory is MISSING)
        for each in dataclasses.fields(shape)
    }


def build(shape: type[Shape], given: Any, path: str, extra: tuple[str, ...] = ()) -> Shape:
    """An object of a dataclass from a JSON object; members named in `extra` are passed over."""
    if type(given) is not dict:
        raise refused(path, f"an object is expected, not {kind_of(given)}")
    known = members(shape)
    for name in given:
        if name not in known and name not in extra:
            raise refused(f"{path}.{shown(name)}", "no such member", nearest(name, known))
    for name, (_, required) in known.items():
        if required and name not in given:
            raise refused(path, f"the member {name!r} is missing", f"It holds {describe(known[name][0])}.")
    return shape(**{
        name: decode(known[name][0], value, f"{path}.{name}") for name, value in given.items() if name in known
    })  # fmt: skip


def decode(shape: Any, given: Any, path: str) -> Any:
    """A JSON value as an annotation says."""
    origin, arguments = get_origin(shape), get_args(shape)
    if origin is Annotated:
        return decode_annotated(arguments, given, path)
    if origin in (types.UnionType, typing.Union):
        return None if given is None else decode(without_none(arguments), given, path)
    if origin is Literal:
        if given not in arguments or type(given) is not type(arguments[0]):
            raise refused(path, f"{shown(given)} is not {describe(shape)}", nearest(given, arguments))
        return given
    if origin is tuple:
        require(given, list, path, "a list")
        return tuple([decode(arguments[0], each, f"{path}[{place}]") for place, each in enumerate(given)])
    if origin is dict:
        require(given, dict, path, "an object")
        return {name: decode(arguments[1], each, f"{path}.{shown(name)}") for name, each in given.items()}
    if dataclasses.is_dataclass(shape):
        return build(typing.cast(type, shape), given, path)
    return decode_scalar(shape, given, path)


def decode_scalar(shape: type, given: Any, path: str) -> Any:
    """A text, a number or a truth value."""
    if shape is float and type(given) is int:
        return float(given) if abs(given) <= EXACT else decode_value(given, path)
    require(given, shape, path, SCALARS[shape])
    if shape is int and abs(given) > EXACT:
        raise refused(path, "the number is too large", "At most 2^53 - 1.")
    return given


def decode_annotated(arguments: tuple[Any, ...], given: Any, path: str) -> Any:
    """A value with a mark or a bound."""
    inner, *notes = arguments
    if VALUE in notes:
        return decode_value(given, path)
    if ROWS in notes:
        return decode_rows(given, path)
    if ANY_JSON in notes:
        if deeper(given, DEPTH):
            raise refused(path, f"lists and objects are nested deeper than {DEPTH}")
        return given
    value = decode(inner, given, path)
    for note in notes:
        if isinstance(note, Size) and not note.least <= len(value) <= note.most:
            raise refused(path, f"the length is {len(value):,}", f"From {note.least:,} to {note.most:,}.")
        if isinstance(note, Between) and not note.least <= value <= note.most:
            raise refused(path, f"{value} is out of bounds", f"From {note.least} to {note.most}.")
    return value


def deeper(given: Any, depth: int) -> bool:
    """Whether lists and objects are nested deeper than this."""
    if not isinstance(given, list | dict):
        return False
    inner = given.values() if isinstance(given, dict) else given
    return depth == 0 or any(deeper(each, depth - 1) for each in inner)


def decode_rows(given: Any, path: str) -> tuple[tuple[Any, ...], ...]:
    """Rows, each a list of values."""
    require(given, list, path, "a list of rows")
    rows = []
    for place, row in enumerate(given):
        if type(row) is not list:
            raise refused(f"{path}[{place}]", f"a row is a list of values, not {kind_of(row)}")
        rows.append(tuple([
            value if type(value) is str else decode_value(value, f"{path}[{place}][{column}]")
            for column, value in enumerate(row)
        ]))  # fmt: skip
    return tuple(rows)


def require(given: Any, kind: type, path: str, expected: str) -> None:
    """Refuse a value of another type."""
    if type(given) is not kind:
        raise refused(path, f"{expected} is expected, not {kind_of(given)}")


def without_none(arguments: tuple[Any, ...]) -> Any:
    """The one member of a union with None."""
    (inner,) = [each for each in arguments if each is not type(None)]
    return inner


def kind_of(given: Any) -> str:
    """What a JSON value is, for people."""
    names = {dict: "an object", list: "a list", type(None): "null", **SCALARS}
    return names.get(type(given), type(given).__name__)


def describe(shape: Any) -> str:
    """What an annotation expects, for people."""
    origin, arguments = get_origin(shape), get_args(shape)
    if origin is Annotated:
        marks = {VALUE: "a value", ROWS: "a list of rows", ANY_JSON: "JSON"}
        return next((marks[note] for note in arguments if isinstance(note, Mark)), None) or describe(arguments[0])
    if origin is Literal:
        return "one of " + ", ".join(map(repr, arguments))
    if origin in (types.UnionType, typing.Union):
        return f"{describe(without_none(arguments))} or null"
    if origin is tuple:
        return "a list"
    return SCALARS.get(shape, "an object")


def nearest(name: object, known: typing.Iterable[Any]) -> str | None:
    """A hint with the nearest name, else with all."""
    names = [str(each) for each in known]
    close = difflib.get_close_matches(str(name)[:100], names, n=1)
    return f"Did you mean {close[0]!r}?" if close else f"There are {', '.join(names)}."


def shown(given: Any) -> str:
    """A piece of what was sent, cut to a bearable length."""
    text = given if isinstance(given, str) else repr(given)
    return text if len(text) <= 60 else text[:60] + "..."
