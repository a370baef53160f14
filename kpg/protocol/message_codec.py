"""Messages to text and back.

    decode(encode(message), kinds) == message

Decoding refuses whatever is not exactly a message: text that is not JSON, members that are given twice, NaN as a bare
word, half a character, nesting too deep, and what `kpg.protocol.strict_decoder` refuses. Nothing but ProtocolError is raised.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterable
from typing import Any, Final, TypeVar

from kpg.errors import ProtocolError
from kpg.protocol.messages import Message
from kpg.protocol.strict_decoder import ANY_JSON, ROWS, VALUE, build, members, nearest, shown
from kpg.protocol.value_codec import EXACT, encode_value, refused

HALF: Final = re.compile(r"\\u[dD][89a-fA-F]")  # an escape of half a character: no text could say it again
SAME: Final = frozenset({str, bool, type(None)})

Kind = TypeVar("Kind")


def encode(message: Message) -> str:
    """A message as text; members that have their default are left out."""
    return json.dumps({"type": message.kind, **plain(message)}, separators=(",", ":"), ensure_ascii=False)


def plain(thing: Any) -> dict[str, Any]:
    """The members of a dataclass as JSON."""
    known = members(type(thing))
    return {
        each.name: plain_member(known[each.name][0], getattr(thing, each.name))
        for each in dataclasses.fields(thing)
        if each.default is dataclasses.MISSING or getattr(thing, each.name) != each.default
    }


def plain_member(shape: Any, value: Any) -> Any:
    """One member as JSON, by its annotation where a mark says so."""
    notes = marks(shape)
    if ROWS in notes:
        return [plain_row(row) for row in value]
    if VALUE in notes:
        return None if value is None else [{name: encode_value(each) for name, each in one.items()} for one in value]
    if ANY_JSON in notes:
        return value
    return plain_thing(value)


def plain_row(row: Iterable[Any]) -> list[Any]:
    """A row as JSON."""
    return [
        value if type(value) in SAME or (type(value) is int and -EXACT <= value <= EXACT) else encode_value(value)
        for value in row
    ]


def plain_thing(value: Any) -> Any:
    """Anything that holds no values of rows."""
    if dataclasses.is_dataclass(value):
        return plain(value)
    if isinstance(value, tuple):
        return [plain_thing(each) for each in value]
    if isinstance(value, dict):
        return {name: plain_thing(each) for name, each in value.items()}
    return value


def marks(shape: Any) -> set[Any]:
    """The marks anywhere in an annotation."""
    found = set(getattr(shape, "__metadata__", ()))
    inner = getattr(shape, "__args__", ())
    return found.union(*(marks(each) for each in inner)) if inner else found


def decode(text: str, kinds: Iterable[type[Kind]]) -> Kind:
    """The message that a text holds, of one of these classes."""
    given = read(text)
    if type(given) is not dict:
        raise refused("$", "a message is a JSON object", 'For example {"type": "ping", "id": 1}.')
    known = {kind.kind: kind for kind in kinds}  # type: ignore[attr-defined]
    name = given.get("type")
    if not isinstance(name, str):
        raise refused("$", "the member 'type' is missing", f"It is one of {', '.join(known)}.")
    if name not in known:
        raise refused("$.type", f"there is no message {shown(name)!r} here", nearest(name, known))
    return build(known[name], given, "$", extra=("type",))


def identify(text: str) -> int | None:
    """The id of a message that may be refused, if it has one."""
    try:
        given = read(text)
    except ProtocolError:
        return None
    number = given.get("id") if isinstance(given, dict) else None
    return number if type(number) is int and 0 <= number <= EXACT else None


def read(text: str) -> Any:
    """JSON, and nothing that most readers would not take for JSON."""
    try:
        found = json.loads(text, object_pairs_hook=members_once, parse_constant=no_constant, parse_int=number)
        if HALF.search(text):
            json.dumps(found, ensure_ascii=False).encode()
        return found
    except json.JSONDecodeError as error:
        place = f"line {error.lineno} column {error.colno}"
        made = refused("$", f"the text is not JSON: {error.msg} at {place}", "Each message is one JSON object.")
        raise made from None
    except UnicodeEncodeError:
        raise refused("$", "a text holds half of a character", "Escapes from d800 to dfff come in pairs.") from None
    except RecursionError:
        raise refused("$", "lists and objects are nested too deep") from None


def members_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object, each of whose members is given once."""
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise refused("$", f"the member {shown(twice)!r} is given twice")
    return found


def no_constant(name: str) -> Any:
    """NaN and infinities are not JSON."""
    raise refused("$", f"{name} is not JSON", f'Write {{"float": "{name}"}}.')


def number(digits: str) -> int:
    """A whole number of bearable length."""
    if len(digits) > 400:
        raise refused("$", f"a number of {len(digits)} digits", 'A large number is written {"int": "..."}.')
    return int(digits)
