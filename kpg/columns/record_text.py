"""The text of records: values made of other values, as Datalog programs construct them.

    nil                     the empty record
    [1, ["a", nil]]         a record of fields
    $Leaf    $Node(1, $Leaf)    a branch of an algebraic type, with or without fields

A record is stored as this text, in one canonical form: numbers in decimal, symbols in double quotes with JSON escapes,
one space behind each comma. So two records are equal exactly when their texts are, in every process.

    fields(make(tag, texts), len(texts)) == texts

The text of a record contains the texts of its fields. Making or taking apart a record therefore costs time in
proportion to its text; the last field is cut off without being read.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from typing import Any, Final

NIL: Final = "nil"
_SCALAR: Final = r'"(?:[^"\\]|\\.)*"|[^,\[\]()"$\s][^,\[\]()"]*'
_TOKEN: Final = re.compile(rf"\s*({_SCALAR}|\$[A-Za-z_?][\w?.]*|[\[\](),])", re.DOTALL)
_NEXT_STRUCTURE: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\](),]', re.DOTALL)
_QUOTED: Final = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_NUMBER: Final = re.compile(r"-?(?:[0-9]+(?:\.[0-9]+)?(?:e[-+]?[0-9]+)?|inf)|nan", re.IGNORECASE)
_WORDS: Final = ("true", "false", NIL)


def make(tag: str, fields: Sequence[str]) -> str:
    """Return the text of a record with these fields: of the branch `tag` (as in "$Node"), or without one."""
    inside = ", ".join(fields)
    if not tag:
        return f"[{inside}]"
    return f"{tag}({inside})" if fields else tag


def has_tag(text: str, tag: str, arity: int) -> bool:
    """Return whether a text is a record of a branch (as in "$Node"), or with an empty tag a record that is not nil."""
    if not tag:
        return text.startswith("[")
    return text.startswith(tag + "(") if arity else text == tag


def field(text: str, tag: str, position: int, arity: int) -> str | None:
    """Return the text of one field of a record, or None if the record has another tag."""
    if not has_tag(text, tag, arity):
        return None
    start = len(tag) + 1
    for _ in range(position):
        start = _end_of_value(text, start) + 2
    return text[start:-1] if position == arity - 1 else text[start : _end_of_value(text, start)]


def _end_of_value(text: str, start: int) -> int:
    """Return the position behind the value that begins at `start`."""
    depth, position = 0, start
    while True:
        match = _NEXT_STRUCTURE.search(text, position)
        if match is None:
            return len(text)
        symbol = match[0]
        if symbol in "([":
            depth += 1
        elif symbol in ")]":
            if depth == 0:
                return match.start()
            depth -= 1
        elif symbol == "," and depth == 0:
            return match.start()
        position = match.end()


# --- scalars ----------------------------------------------------------------------------------------------------------


def quote(text: str) -> str:
    """Return a symbol as it stands in a record."""
    return json.dumps(text, ensure_ascii=False)


def unquote(text: str) -> str:
    """Return the symbol of a text that `quote` returned."""
    return str(json.loads(text)) if text.startswith('"') else text


def show_float(value: float) -> str:
    """Return the shortest text of a float; integral values have no decimal point."""
    return repr(value).removesuffix(".0")


def write_scalar(value: Any) -> str:
    """Return a number, bool or symbol as it stands in a record."""
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    return show_float(value) if isinstance(value, float) else str(value)


# --- whole records ----------------------------------------------------------------------------------------------------


def canonical(value: Any) -> str:
    """Return the canonical text of a record; raise ValueError if the value is not one.

    A record is given as its text, or as a tuple or list of its fields.
    """
    if isinstance(value, str):
        return _canonical_text(value)
    if isinstance(value, (tuple, list)):
        try:
            return make("", [_field_of(part) for part in value])
        except RecursionError:
            raise ValueError("the tuples are nested too deep: write the record as text") from None
    raise ValueError(f"{value!r} is not a record")


def _field_of(value: Any) -> str:
    if value is None:
        return NIL
    return canonical(value) if isinstance(value, (tuple, list)) else write_scalar(value)


def _canonical_text(text: str) -> str:
    """Return the canonical form of a text, token by token: nesting of any depth needs no recursion."""
    out: list[str] = []
    closers: list[str] = []
    position, state = 0, "value"  # what must follow: a value, the end of a value, or the fields of a branch
    stripped = text.rstrip()
    while position < len(stripped):
        match = _TOKEN.match(stripped, position)
        if match is None:
            raise ValueError(f"{text[:60]!r} is not a record")
        token, position = match[1].rstrip(), match.end()
        if state == "value" and token not in "),":
            if token == "]" and out and out[-1] == "[":
                closers.pop()
                out.append(token)
                state = "end"
            elif token in "[":
                closers.append("]")
                out.append(token)
            elif token != "]":
                out.append(token if token.startswith("$") else _canonical_scalar(token, bool(closers)))
                state = "fields" if token.startswith("$") else "end"
                continue
            else:
                raise ValueError(f"{text[:60]!r} is not a record")
        elif state == "fields" and token == "(":
            closers.append(")")
            out.append(token)
            state = "value"
        elif state != "value" and closers and token == ",":
            out.append(", ")
            state = "value"
        elif state != "value" and closers and token == closers[-1]:
            out.append(closers.pop())
            state = "end"
        else:
            raise ValueError(f"{text[:60]!r} is not a record")
    if closers or state == "value":
        raise ValueError(f"{text[:60]!r} is not a record")
    return "".join(out)


def _canonical_scalar(token: str, inside: bool) -> str:
    if token == NIL:
        return token
    if not inside:
        raise ValueError(f"{token[:60]!r} is not a record")
    if token.startswith('"'):
        return quote(unquote(token))
    if token in _WORDS:
        return token
    if not _NUMBER.fullmatch(token):
        raise ValueError(f"{token[:60]!r} is not a value of a record: symbols stand in double quotes")
    try:
        return str(int(token))
    except ValueError:
        number = float(token)
        return show_float(number) if math.isfinite(number) else repr(number)


def show_unquoted(text: str) -> str:
    """Return a record as Soufflé writes it to files: symbols without quotes."""
    if '"' not in text:
        return text
    return _QUOTED.sub(lambda match: unquote(match[0]), text)
