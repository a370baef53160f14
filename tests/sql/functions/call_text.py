"""The SQL text of calls, and values of parameters that have a meaning (fields, patterns, formats)."""

from __future__ import annotations

import random
from collections.abc import Sequence

from kpg.sql.functions.function import Function
from kpg.sql.functions.resolve import is_operator
from tests.sql.functions.argument_values import FIELDS

CASES = ("lower", "upper", "initcap")
NAMED_ZONES = ("timezone", "date_trunc", "to_char", "to_date", "to_timestamp", "make_interval")
TEMPLATES = [
    "YYYY-MM-DD HH24:MI:SS",
    "Month DD, YYYY",
    "FMMonth FMDD, YYYY",
    "Dy, DD Mon YY",
    "HH12:MI AM",
    "HH:MI:SS.MS",
    'YYYY-"W"IW-ID',
    "DDD Q W WW CC",
    "US MS FF3",
    "DDth",
    "FMDDTH",
    "day DAY Day",
    "YYYY.MM.DD",
    "J",
]
NUMBER_TEMPLATES = [
    "999",
    "000",
    "999.99",
    "FM999.99",
    "9,999.99",
    "S999",
    "999MI",
    "FM0.00",
    "0.0",
    "99PR",
    "FM9990.0",
    "9999999999",
    "999,999,999.000",
    "SG999",
    '"n: "99',
]
BY_CASE = frozenset({  # by Unicode, as in a locale of UTF-8
    "~", "!~", "regexp_replace", "regexp_like", "regexp_count", "regexp_substr", "regexp_match",
    "regexp_split_to_array", "lower", "upper",
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
    **{("make_interval", position): ["0", "1", "-3", "14", "100"] for position in range(7)},
    ("to_char", 0): ["0", "1.5", "-2.25", "123.456", "-0.05", "1000"],
    ("to_char", 1): TEMPLATES,
    ("to_date", 0): ["2024-05-17", "17 May 2024", "05/17/24", "20240517", "May 17, 2024", "2024-138"],
    ("to_date", 1): ["YYYY-MM-DD", "DD Mon YYYY", "MM/DD/YY", "YYYYMMDD", "Month DD, YYYY", "YYYY-DDD"],
    ("to_timestamp", 0): ["2024-05-17 10:20:30", "17 May 2024 01:02 PM", "20240517102030", "2024-05-17 10:20:30.125"],
    ("to_timestamp", 1): ["YYYY-MM-DD HH24:MI:SS", "DD Mon YYYY HH12:MI PM", "YYYYMMDDHH24MISS",
                          "YYYY-MM-DD HH24:MI:SS.MS"],
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
    if entry.name == "to_timestamp" and not parameter.is_text:
        return None
    if entry.name == "to_char" and entry.parameters[0].is_number and position == 1:
        choices = NUMBER_TEMPLATES
    elif entry.name == "to_char" and position == 0 and parameter.name != "double precision":
        return None
    elif entry.name == "to_char" and entry.parameters[0].name == "interval":
        choices = ["HH24:MI:SS", "DD HH24:MI", "YYYY MM DD", "MI:SS.MS", "FMHH24 h"]
    return rng.choice(choices)


def call_text(name: str, arguments: Sequence[str], by_unicode: bool = True) -> str:
    """Return a call as SQL text; functions of letters get a collation that knows all letters."""
    if name == "extract":
        field, source = arguments
        return f"pg_catalog.extract({field}, {source})"
    if by_unicode and (name in CASES or (name in BY_CASE and len(arguments) > 1)):
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
