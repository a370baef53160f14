"""The SQL text of calls, and values of parameters that have a meaning (fields, patterns, formats)."""

from __future__ import annotations

import random
from collections.abc import Sequence

from kpg.sql.functions.function import Function
from kpg.sql.functions.resolve import is_operator
from tests.sql.functions.argument_values import FIELDS

CASES = ("lower", "upper", "initcap")
NAMED_ZONES = ("timezone", "date_trunc")
BY_CASE = frozenset({  # by Unicode, as in a locale of UTF-8
    "~", "!~", "regexp_replace", "regexp_like", "regexp_count", "regexp_substr", "regexp_match", "lower", "upper",
    "initcap", "~~*", "!~~*", "~*", "!~*",
})  # fmt: skip
LIKES = ["%", "a%", "%o%", "_bc", "%o W%", "\\%", "a\\_b", "", "h%", "A%", "%B%"]
REGEXES = ["a", "^a", "[a-z]+", "o.*o", "(a)(b)?", "\\d+", "B", "x|y", "^$", "(", "[[:alpha:]]+", ","]
MEANINGFUL: dict[tuple[str, int], list[str]] = {
    ("extract", 0): FIELDS,
    ("date_part", 0): FIELDS,
    ("date_trunc", 0): [f for f in FIELDS if f not in ("dow", "isodow", "doy", "epoch", "isoyear", "julian")],
    **{(op, 1): LIKES for op in ("~~", "!~~", "~~*", "!~~*")},
    **{(op, 1): REGEXES for op in ("~", "!~", "~*", "!~*")},
    ("encode", 1): ["hex", "base64", "escape", "HEX", "nope"],
    ("decode", 1): ["hex", "base64", "escape"],
    ("decode", 0): ["6162", "YWJj", "abc", "zz", "6 1", "YQ==", "a\\\\b"],
    ("like_escape", 1): ["\\", "!", "#", "", "ab"],
    ("lpad", 1): ["0", "1", "5", "12", "-3"],
    ("rpad", 1): ["0", "1", "5", "12", "-3"],
    ("repeat", 1): ["0", "1", "3", "-2"],
    ("chr", 0): ["65", "97", "228", "26085", "0", "-1", "1114112"],
    ("timezone", 0): ["UTC", "Europe/Berlin", "America/New_York", "+02", "Nowhere/Land"],
    ("date_trunc", 2): ["UTC", "Europe/Berlin", "America/New_York", "Nowhere/Land"],
    ("left", 1): ["0", "1", "3", "-1", "-4", "100"],
    ("right", 1): ["0", "1", "3", "-1", "-4", "100"],
    ("round", 1): ["0", "1", "2", "-1", "3", "-2", "5"],
    ("trunc", 1): ["0", "1", "2", "-1", "3", "-2", "5"],
    ("factorial", 0): ["0", "1", "5", "20", "30", "-1"],
    ("regexp_replace", 3): ["", "g", "i", "gi"],
    ("regexp_match", 2): ["", "i"],
    ("regexp_like", 2): ["", "i"],
    **{(name, 1): REGEXES for name in ("regexp_replace", "regexp_match", "regexp_like", "regexp_count", "regexp_substr",
                                       "regexp_split_to_array")},
    ("regexp_split_to_array", 2): ["", "i"],
    ("regexp_replace", 2): ["<\\1>", "X", "", "[\\&]"],
    ("format", 0): ["plain", "%s", "%s-%s", "%%", "%I", "%L", "%1$s %1$s", "%10s|", "%-5s|"],
}  # fmt: skip


def meaningful(entry: Function, position: int, rng: random.Random) -> str | None:
    """Return a value for a parameter with a meaning, None for others and now and then."""
    choices = MEANINGFUL.get((entry.name, position))
    if choices is None or (rng.random() < 0.1 and entry.name not in NAMED_ZONES):
        return None
    parameter = entry.parameters[position] if position < len(entry.parameters) else entry.parameters[-1]
    if not (parameter.is_text or parameter.is_number):
        return None
    return rng.choice(choices)


def call_text(name: str, arguments: Sequence[str]) -> str:
    """Return a call as SQL text."""
    if name == "extract":
        field, source = arguments
        return f"pg_catalog.extract({field}, {source})"
    if name in BY_CASE and len(arguments) > 1 or name in CASES:
        arguments = [f'({arguments[0]} COLLATE "C.utf8")', *arguments[1:]]
    if name == "array":
        return f"ARRAY[{', '.join(arguments)}]"
    if name == "subscript":
        return f"({arguments[0]})[{arguments[1]}]"
    if name.endswith((" any", " all")):
        op, way = name.split(" ")
        return f"{arguments[0]} {op} {way.upper()} ({arguments[1]})"
    if is_operator(name):
        return f"{name} {arguments[0]}" if len(arguments) == 1 else f"{arguments[0]} {name} {arguments[1]}"
    return f"pg_catalog.{name}({', '.join(arguments)})" if name == "position" else f"{name}({', '.join(arguments)})"
