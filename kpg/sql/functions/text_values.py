"""Functions of text on Python values: called once for each distinct combination of values. Positions count from 1.

A ValueError fails the row. Upper and lower case follow Unicode, one character for one character.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from kpg.sql.functions.text_output import output_of

MAX_TEXT_LENGTH: Final = 1 << 24  # characters of a computed text: a recursion must not exhaust memory
_MAX_CHARACTER: Final = 0x10FFFF
_MAX_INTEGER: Final = 2**31 - 1


def _simple_lower(character: str) -> str:
    lower = character.lower()
    return lower if len(lower) == 1 else character


def _simple_upper(character: str) -> str:
    upper = character.upper()
    return upper if len(upper) == 1 else character


def lower(text: str) -> str:
    """Return text in lower case."""
    return text.lower() if text.isascii() else "".join(map(_simple_lower, text))


def upper(text: str) -> str:
    """Return text in upper case."""
    return text.upper() if text.isascii() else "".join(map(_simple_upper, text))


def initcap(text: str) -> str:
    """Return text with the first letter of each word in upper case and the rest in lower case."""
    return re.sub(r"[^\W_]+", lambda word: upper(word[0][0]) + lower(word[0][1:]), text)


def reverse(text: str) -> str:
    """Return text backwards."""
    return text[::-1]


def character_count(text: str) -> int:
    """Return the number of characters."""
    return len(text)


def byte_length(text: Any) -> int:
    """Return the number of bytes of text in UTF-8, or of bytes."""
    return len(text if isinstance(text, bytes) else text.encode())


def bit_length(text: Any) -> int:
    """Return the number of bits."""
    return 8 * byte_length(text)


def substring(text: Any, start: int, length: int | None = None) -> Any:
    """Return `length` characters from a position on, which may lie before the text."""
    if length is not None and length < 0:
        raise ValueError("negative substring length not allowed")
    end = None if length is None else max(start - 1 + length, 0)
    return text[max(start - 1, 0) : end]


def substrings(count: int, texts: list[Any], starts: list[int], lengths: list[int | None] | None = None) -> list[Any]:
    """Return the characters of each text at constant positions; the length is not negative."""
    start, length = starts[0] - 1, None if lengths is None else lengths[0]
    part = slice(max(start, 0), None if length is None else max(start + length, 0))
    found = [text[part] for text in texts]
    return found * count if len(found) < count else found


def position(text: Any, part: Any) -> int:
    """Return the position of a part, 0 if the text does not have it."""
    return int(text.find(part)) + 1


def trim(side: str, text: str, characters: str = " ") -> str:
    """Return text without some characters at its ends."""
    match side:
        case "btrim":
            return text.strip(characters) if characters else text
        case "ltrim":
            return text.lstrip(characters) if characters else text
    return text.rstrip(characters) if characters else text


def pad(side: str, text: str, length: int, fill: str = " ") -> str:
    """Return text of exactly `length` characters: filled at one side, or cut."""
    length = max(length, 0)
    _check_length(length)
    missing = length - len(text)
    if missing <= 0 or not fill:
        return text[:length]
    filling = (fill * (missing // len(fill) + 1))[:missing]
    return filling + text if side == "lpad" else text + filling


def _check_length(length: int) -> None:
    if length > MAX_TEXT_LENGTH:
        raise ValueError("requested length too large")


def replace(text: str, old: str, new: str) -> str:
    """Return text with every `old` replaced."""
    if not old:
        return text
    _check_length(len(text) + max(0, len(new) - len(old)) * text.count(old))
    return text.replace(old, new)


def translate(text: str, source: str, target: str) -> str:
    """Return text with characters of `source` replaced by those of `target`, or removed if it is shorter."""
    table: dict[int, str | None] = {}
    for at, character in enumerate(source):
        table.setdefault(ord(character), target[at] if at < len(target) else None)
    return text.translate(table)


def split_part(text: str, delimiter: str, number: int) -> str:
    """Return a part of text between delimiters; negative numbers count from the end."""
    if number == 0:
        raise ValueError("field position must not be zero")
    parts = text.split(delimiter) if delimiter else [text]
    at = number - 1 if number > 0 else len(parts) + number
    return parts[at] if 0 <= at < len(parts) and text else ""


def left(text: str, count: int) -> str:
    """Return the first characters; a negative count leaves out the last ones."""
    return text[:count]


def right(text: str, count: int) -> str:
    """Return the last characters; a negative count leaves out the first ones."""
    return text[-count:] if count != 0 else ""


def repeat(text: str, count: int) -> str:
    """Return text several times."""
    _check_length(len(text) * max(count, 0))
    return text * count


def overlay(text: str, new: str, start: int, length: int | None = None) -> str:
    """Return text with `length` characters from a position on replaced."""
    if start <= 0:
        raise ValueError("negative substring length not allowed")
    end = start + (len(new) if length is None else length)
    if abs(end) > _MAX_INTEGER:
        raise ValueError("integer out of range")
    return text[: start - 1] + new + text[max(end - 1, 0) :]


def join(a: Any, b: Any) -> Any:
    """Return two texts, or two byte strings, as one."""
    _check_length(len(a) + len(b))
    return a + b


def concat(type_names: str, *values: Any) -> str:
    """Return values as one text; nulls are left out. `type_names` has the type of each value, one a line."""
    return "".join(_shown(type_names, values))


def concat_ws(type_names: str, separator: str | None, *values: Any) -> str | None:
    """Return values as one text with a separator; nulls are left out."""
    return None if separator is None else separator.join(_shown(type_names, values))


def _shown(type_names: str, values: Sequence[Any]) -> list[str]:
    names = type_names.split("\n")
    shown = [output_of(name, value) for name, value in zip(names, values, strict=True) if value is not None]
    _check_length(sum(map(len, shown)))
    return shown


def starts_with(text: str, prefix: str) -> bool:
    """Return whether text begins with a prefix."""
    return text.startswith(prefix)


def ascii_code(text: str) -> int:
    """Return the code point of the first character, 0 for no character."""
    return ord(text[0]) if text else 0


def character(code: int) -> str:
    """Return the character of a code point."""
    if code < 0:
        raise ValueError("requested character number must be positive: not recognized")
    if code == 0:
        raise ValueError("null character not permitted")
    if code > _MAX_CHARACTER or 0xD800 <= code <= 0xDFFF:
        raise ValueError("requested character too large for encoding")
    return chr(code)


def hexadecimal(bits: int, value: int) -> str:
    """Return an integer in hexadecimal, a negative one as its two's complement."""
    return f"{value % (1 << bits):x}"


def quote_literal(text: str) -> str:
    """Return text as a literal of SQL."""
    quoted = text.replace("'", "''")
    return "E'" + quoted.replace("\\", "\\\\") + "'" if "\\" in text else f"'{quoted}'"


_PLACEHOLDER: Final = re.compile(r"%(?:(%)|(?:(\d+)\$)?(-)?(\d+)?([sIL])|(.?))", re.DOTALL)
_IDENTIFIER: Final = re.compile(r"[a-z_][a-z0-9_]*")
_RESERVED: Final = frozenset(
    "all analyse analyze and any array as asc asymmetric both case cast check collate column constraint create "
    "current_catalog current_date current_role current_time current_timestamp current_user default deferrable desc "
    "distinct do else end except false fetch for foreign from grant group having in initially intersect into lateral "
    "leading limit localtime localtimestamp not null offset on only or order placing primary references returning "
    "select session_user some symmetric table then to trailing true union unique user using variadic when where "
    "window with".split()
)


def quote_identifier(text: str) -> str:
    """Return text as an identifier of SQL, quoted if it has to be."""
    if _IDENTIFIER.fullmatch(text) and text not in _RESERVED:
        return text
    return '"' + text.replace('"', '""') + '"'


def format_text(type_names: str, template: str | None, *values: Any) -> str | None:
    """Return a template with %s, %I and %L replaced by values, in order or by number, with a width."""
    if template is None:
        return None
    names = type_names.split("\n")
    following = 0

    def fill(match: re.Match[str]) -> str:
        nonlocal following
        if match[1]:
            return "%"
        if match[5] is None:
            raise ValueError(f'unrecognized format() type specifier "{match[6]}"')
        at = following if match[2] is None else int(match[2]) - 1
        following = at + 1
        if not 0 <= at < len(values):
            raise ValueError("too few arguments for format()")
        shown = _formatted(match[5], names[at], values[at])
        width = int(match[4] or 0)
        return shown.ljust(width) if match[3] else shown.rjust(width)

    return _PLACEHOLDER.sub(fill, template)


def _formatted(kind: str, type_name: str, value: Any) -> str:
    if value is None:
        if kind == "I":
            raise ValueError("null values cannot be formatted as an SQL identifier: cannot be null")
        return "NULL" if kind == "L" else ""
    shown = output_of(type_name, value)
    return {"s": shown, "I": quote_identifier(shown) if kind == "I" else "", "L": quote_literal(shown)}[kind]
