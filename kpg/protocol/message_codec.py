"""Messages to JSON text and back.

    decode(encode(message), kinds) == message

Decoding refuses every text that is not exactly a message: text that is not JSON, members that are given twice, bare NaN
and infinities, half a character, nesting too deep, and everything that `kpg.protocol.strict_decoder` refuses. It raises
ProtocolError only. Other threads run while a long text is decoded. Encoding leaves out members that have their
default. Encoders and decoders are made once for each class; a small message costs a few microseconds each way.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import re
from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar, cast

from kpg.errors import ProtocolError
from kpg.protocol.definitions import MessageKinds
from kpg.protocol.json_pieces import PIECE_CHARACTERS, Scan, read_in_pieces
from kpg.protocol.strict_decoder import ANY_JSON, MISSING, ROWS, VALUE, members, nearest, object_decoder, shown
from kpg.protocol.value_codec import EXACT, encode_value, refused

HALF_CHARACTER: Final = re.compile(r"\\u[dD][89a-fA-F]")  # the escape of a surrogate, which must come in a pair
MAX_DIGITS: Final = 400  # of a number: more would only cost time, since no column holds it
LONG_NUMBER: Final = re.compile(rf"(?<![0-9])[0-9]{{{MAX_DIGITS}}}")  # linear: only the first digit begins a search
UNCHANGED: Final = frozenset({str, bool, type(None)})  # types of values that are the same in JSON

Kind = TypeVar("Kind")
Encoder = Callable[[Any], Any]


# Encoding


dump_json: Final = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode


def encode(message: Any) -> str:
    """Return a message as JSON text; members that have their default are left out."""
    return dump_json({"type": message.kind, **plain(message)})


def plain(thing: Any) -> dict[str, Any]:
    """Return the members of a dataclass as JSON values; those that have their default are left out."""
    written = {}
    for name, default, encode_member in encoders(cast(Any, type(thing))):
        value = getattr(thing, name)
        if default is MISSING or value != default:
            written[name] = value if encode_member is None else encode_member(value)
    return written


@functools.cache
def encoders(shape: type) -> tuple[tuple[str, Any, Encoder | None], ...]:
    """Return the name, default and encoder of each member; no encoder if JSON takes the member as it is."""
    by_name = members(shape)
    return tuple(
        (field.name, field.default, encoder_of(by_name[field.name][0])) for field in dataclasses.fields(shape)
    )  # fmt: skip


def encoder_of(shape: Any) -> Encoder | None:
    """Return the function that writes members of an annotation; None if JSON takes them as they are."""
    marks = marks_in(shape)
    if ROWS in marks:
        return lambda rows: [plain_row(row) for row in rows]
    if VALUE in marks:
        return plain_arguments
    return None if ANY_JSON in marks or not holds_objects(shape) else plain_thing


def holds_objects(shape: Any) -> bool:
    """Return whether values of an annotation may hold dataclasses."""
    return dataclasses.is_dataclass(shape) or any(holds_objects(inner) for inner in getattr(shape, "__args__", ()))


def plain_row(row: Iterable[Any]) -> list[Any]:
    """Return a row as JSON values."""
    return [
        value if type(value) in UNCHANGED or (type(value) is int and -EXACT <= value <= EXACT) else encode_value(value)
        for value in row
    ]


def plain_arguments(arguments: dict[str, Any] | Iterable[dict[str, Any]] | None) -> Any:
    """Return the arguments of an interest, or the parameters of a statement, as JSON values."""
    if arguments is None:
        return None
    if isinstance(arguments, dict):
        return {name: encode_value(value) for name, value in arguments.items()}
    return [plain_arguments(argument) for argument in arguments]


def plain_thing(value: Any) -> Any:
    """Return a value that holds no values of rows as JSON."""
    if dataclasses.is_dataclass(value):
        return plain(value)
    if isinstance(value, tuple):
        return [plain_thing(item) for item in value]
    if isinstance(value, dict):
        return {name: plain_thing(item) for name, item in value.items()}
    return value


def marks_in(shape: Any) -> set[Any]:
    """Return the marks and bounds anywhere in an annotation."""
    notes = set(getattr(shape, "__metadata__", ()))
    return notes.union(*(marks_in(inner) for inner in getattr(shape, "__args__", ())))


def encode_result(value: Any) -> str:
    """Return the result of a typed request as JSON text: a dataclass, or tuples, dicts and scalars."""
    return dump_json(plain_thing(value))


# Decoding


def decode(text: str, kinds: MessageKinds[Kind]) -> Kind:
    """Return the message that a text holds, of one of some kinds."""
    json_value = read(text, kinds.python_only)
    if type(json_value) is not dict:
        raise refused("$", "a message is a JSON object", 'For example {"type": "ping", "id": 1}.')
    classes = kinds.by_name
    name = json_value.get("type")
    if type(name) is not str:
        raise refused("$", "the member 'type' is missing", f"It is one of {', '.join(classes)}.")
    if name not in classes:
        raise refused("$.type", f"there is no message {shown(name)!r} here", nearest(name, classes))
    shape: Any = classes[name]
    decoded: Kind = object_decoder(shape, ("type",))(json_value, "$")
    return decoded


def identify(text: str) -> int | None:
    """Return the id of a message that may be refused, if it has one."""
    try:
        json_value = read(text)
    except ProtocolError:
        return None
    number = json_value.get("id") if isinstance(json_value, dict) else None
    return number if type(number) is int and 0 <= number <= EXACT else None


def read(text: str, python_only: bool = False) -> Any:
    """Parse JSON, strictly: refuse what other readers would refuse or understand differently.

    From another process of the same db (`python_only`) bare NaN and infinities are accepted.
    """
    try:
        parser = parser_for(text, python_only)
        if len(text) > PIECE_CHARACTERS:
            scanner: Scan = parser.scan_once  # type: ignore[attr-defined]
            return read_in_pieces(text, functools.partial(scan_strictly, scanner), refuse_repeated)
        value = parser.decode(text)
        check_characters(value, text, 0, len(text))
        return value
    except json.JSONDecodeError as error:
        position = f"line {error.lineno} column {error.colno}"
        refusal = refused("$", f"the text is not JSON: {error.msg} at {position}", "Each message is one JSON object.")
        raise refusal from None
    except UnicodeEncodeError:
        raise refused("$", "a text holds half of a character", "Escapes from d800 to dfff come in pairs.") from None
    except RecursionError:
        raise refused("$", "lists and objects are nested too deep") from None


def scan_strictly(scan: Scan, text: str, position: int) -> tuple[Any, int]:
    """Return the value at a position and its end; refuse half a character."""
    value, end = scan(text, position)
    check_characters(value, text, position, end)
    return value, end


def check_characters(value: Any, text: str, start: int, end: int) -> None:
    """Raise UnicodeEncodeError if a value, whose text is given, holds half a character."""
    if text.find("\\u", start, end) >= 0 and HALF_CHARACTER.search(text, start, end):
        (value if type(value) is str else json.dumps(value, ensure_ascii=False)).encode()


def parser_for(text: str, python_only: bool) -> json.JSONDecoder:
    """Choose a parser: counting the digits of each number takes a call for each, so most texts avoid it."""
    if python_only:
        return PARSER_OF_PYTHON
    return PARSER_OF_LONG_NUMBERS if has_long_number(text) else PARSER


def has_long_number(text: str) -> bool:
    """Return whether a text has more digits in a row than a number may have; other threads run in between."""
    return any(
        LONG_NUMBER.search(text, start, start + PIECE_CHARACTERS + MAX_DIGITS)
        for start in range(0, len(text) - MAX_DIGITS + 1, PIECE_CHARACTERS)
    )


def refuse_repeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object; refuse a member that is given twice."""
    members_given = dict(pairs)
    if len(members_given) < len(pairs):
        seen: set[str] = set()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise refused("$", f"the member {shown(twice)!r} is given twice")
    return members_given


def refuse_constant(name: str) -> Any:
    """Refuse NaN and infinities, which are not JSON."""
    raise refused("$", f"{name} is not JSON", f'Write {{"float": "{name}"}}.')


def short_number(digits: str) -> int:
    """Return a whole number; refuse one of too many digits."""
    if len(digits) > MAX_DIGITS:
        raise refused("$", f"a number of {len(digits)} digits", 'A large number is written {"int": "..."}.')
    return int(digits)


# Parsers are made once: json.loads would make one for each call.
PARSER: Final = json.JSONDecoder(object_pairs_hook=refuse_repeated, parse_constant=refuse_constant)
PARSER_OF_PYTHON: Final = json.JSONDecoder(object_pairs_hook=refuse_repeated)
PARSER_OF_LONG_NUMBERS: Final = json.JSONDecoder(
    object_pairs_hook=refuse_repeated, parse_constant=refuse_constant, parse_int=short_number
)
