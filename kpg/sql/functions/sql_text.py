"""Functions of text and bytes. Each is computed once for each distinct combination of values in a batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from kpg.columns.expression import Expression, Literal
from kpg.sql.functions import byte_values, pattern_values, text_values
from kpg.sql.functions.building import batches, distinct, values
from kpg.sql.functions.cast_rules import ANY, ANY_ELEMENT, ANY_NONARRAY
from kpg.sql.functions.function import Function
from kpg.sql.functions.sql_casts import build_cast
from kpg.sql.functions.sql_comparison import CHARACTER
from kpg.sql.sql_types import BIGINT, BOOLEAN, BYTEA, INTEGER, TEXT, SqlType, array_of

LIKES: Final = {"~~": (False, False), "!~~": (False, True), "~~*": (True, False), "!~~*": (True, True)}
MATCHES: Final = {"~": (False, False), "!~": (False, True), "~*": (True, False), "!~*": (True, True)}


def _length(types: Sequence[SqlType], result: SqlType) -> tuple[Any, ...]:
    """Return the length that text of type character is padded to."""
    return (types[0].length or 0,)


def type_names(types: Sequence[SqlType], result: SqlType) -> tuple[Any, ...]:
    """Return the names of types as one option, one a line; character keeps its length."""
    return ("\n".join(str(type_) if type_.name == "character" else type_.name for type_ in types),)


def _other_type_names(types: Sequence[SqlType], result: SqlType) -> tuple[Any, ...]:
    return type_names(types[1:], result)


def _join_shown(arguments: Sequence[Expression], types: Sequence[SqlType], result: SqlType) -> Expression:
    """Build text || anything: the other operand is cast to text."""
    shown = [
        argument if type_.is_text else build_cast(argument, type_, TEXT, explicit=True)
        for argument, type_ in zip(arguments, types, strict=True)
    ]
    return distinct(text_values.join)(shown, (TEXT, TEXT), TEXT)


def _quote_shown(arguments: Sequence[Expression], types: Sequence[SqlType], result: SqlType) -> Expression:
    shown = build_cast(arguments[0], types[0], TEXT, explicit=True)
    return distinct(text_values.quote_literal)([shown], (TEXT,), TEXT)


def _substring(arguments: Sequence[Expression], types: Sequence[SqlType], result: SqlType) -> Expression:
    """Build a substring; one at constant positions is cut from all texts at once."""
    found = [argument.value for argument in arguments[1:] if isinstance(argument, Literal)]
    numbers = [number for number in found if isinstance(number, int)]
    if len(numbers) == len(types) - 1 and all(number >= 0 for number in numbers[1:]):
        return batches(text_values.substrings)(arguments, types, result)
    return distinct(text_values.substring)(arguments, types, result)


FUNCTIONS: Final = (
    Function("lower", (TEXT,), TEXT, distinct(text_values.lower)),
    Function("upper", (TEXT,), TEXT, distinct(text_values.upper)),
    Function("initcap", (TEXT,), TEXT, distinct(text_values.initcap)),
    Function("reverse", (TEXT,), TEXT, distinct(text_values.reverse)),
    *(Function(name, (a,), INTEGER, distinct(text_values.character_count))
      for name in ("length", "char_length", "character_length") for a in (TEXT, CHARACTER)),
    Function("length", (BYTEA,), INTEGER, distinct(text_values.byte_length)),
    *(Function(name, (a,), INTEGER, distinct(function)) for a in (TEXT, BYTEA)
      for name, function in (("octet_length", text_values.byte_length), ("bit_length", text_values.bit_length))),
    *(Function(name, (a, *numbers), a, _substring) for name in ("substring", "substr")
      for a in (TEXT, BYTEA) for numbers in ((INTEGER,), (INTEGER, INTEGER))),
    Function("substring", (TEXT, TEXT), TEXT, distinct(pattern_values.substring_matching, null=True)),
    Function("substring", (TEXT, TEXT, TEXT), TEXT, distinct(pattern_values.substring_similar, null=True)),
    *(Function("position", (a, a), INTEGER, distinct(text_values.position)) for a in (TEXT, BYTEA)),
    Function("strpos", (TEXT, TEXT), INTEGER, distinct(text_values.position)),
    *(Function(name, parameters, TEXT, distinct(text_values.trim, name)) for name in ("btrim", "ltrim", "rtrim")
      for parameters in ((TEXT,), (TEXT, TEXT))),
    *(Function(name, parameters, TEXT, distinct(text_values.pad, name)) for name in ("lpad", "rpad")
      for parameters in ((TEXT, INTEGER), (TEXT, INTEGER, TEXT))),
    Function("replace", (TEXT, TEXT, TEXT), TEXT, distinct(text_values.replace)),
    Function("translate", (TEXT, TEXT, TEXT), TEXT, distinct(text_values.translate)),
    Function("split_part", (TEXT, TEXT, INTEGER), TEXT, distinct(text_values.split_part)),
    Function("left", (TEXT, INTEGER), TEXT, distinct(text_values.left)),
    Function("right", (TEXT, INTEGER), TEXT, distinct(text_values.right)),
    Function("repeat", (TEXT, INTEGER), TEXT, distinct(text_values.repeat)),
    *(Function("overlay", (TEXT, TEXT, *numbers), TEXT, distinct(text_values.overlay))
      for numbers in ((INTEGER,), (INTEGER, INTEGER))),
    Function("||", (TEXT, TEXT), TEXT, distinct(text_values.join)),
    Function("||", (TEXT, ANY_NONARRAY), TEXT, _join_shown),
    Function("||", (ANY_NONARRAY, TEXT), TEXT, _join_shown),
    Function("||", (BYTEA, BYTEA), BYTEA, distinct(text_values.join)),
    Function("concat", (ANY,), TEXT, values(text_values.concat, by_types=type_names), variadic=True),
    Function("concat_ws", (TEXT, ANY), TEXT, values(text_values.concat_ws, by_types=_other_type_names), variadic=True),
    Function("format", (TEXT,), TEXT, values(text_values.format_text, by_types=_other_type_names)),
    Function("format", (TEXT, ANY), TEXT, values(text_values.format_text, by_types=_other_type_names), variadic=True),
    *(Function(name, (TEXT, TEXT), BOOLEAN, distinct(text_values.starts_with)) for name in ("starts_with", "^@")),
    Function("ascii", (TEXT,), INTEGER, distinct(text_values.ascii_code)),
    Function("chr", (INTEGER,), TEXT, distinct(text_values.character)),
    Function("to_hex", (INTEGER,), TEXT, distinct(text_values.hexadecimal, 32)),
    Function("to_hex", (BIGINT,), TEXT, distinct(text_values.hexadecimal, 64)),
    *(Function("md5", (a,), TEXT, distinct(byte_values.md5)) for a in (TEXT, BYTEA)),
    Function("sha256", (BYTEA,), BYTEA, distinct(byte_values.sha256)),
    Function("encode", (BYTEA, TEXT), TEXT, distinct(byte_values.encode)),
    Function("decode", (TEXT, TEXT), BYTEA, distinct(byte_values.decode)),
    Function("quote_literal", (TEXT,), TEXT, distinct(text_values.quote_literal)),
    Function("quote_literal", (ANY_ELEMENT,), TEXT, _quote_shown),
    Function("quote_ident", (TEXT,), TEXT, distinct(text_values.quote_identifier)),
    *(Function(op, (a, TEXT), BOOLEAN, batches(pattern_values.like, *ways, by_types=_length))
      for op, ways in LIKES.items() for a in (TEXT, CHARACTER)),
    *(Function(op, (a, TEXT), BOOLEAN, distinct(pattern_values.matches, *ways, by_types=_length))
      for op, ways in MATCHES.items() for a in (TEXT, CHARACTER)),
    Function("like_escape", (TEXT, TEXT), TEXT, distinct(pattern_values.like_escape)),
    Function("similar_to_escape", (TEXT,), TEXT, distinct(pattern_values.similar_pattern)),
    Function("similar_to_escape", (TEXT, TEXT), TEXT, distinct(pattern_values.similar_pattern)),
    *(Function("regexp_replace", (TEXT,) * count, TEXT, distinct(pattern_values.regexp_replace)) for count in (3, 4)),
    *(Function("regexp_match", (TEXT,) * count, array_of(TEXT), distinct(pattern_values.regexp_match, null=True))
      for count in (2, 3)),
    *(Function("regexp_split_to_array", (TEXT,) * count, array_of(TEXT), distinct(pattern_values.regexp_split))
      for count in (2, 3)),
    *(Function("regexp_like", (TEXT,) * count, BOOLEAN, distinct(pattern_values.regexp_like)) for count in (2, 3)),
    Function("regexp_count", (TEXT, TEXT), INTEGER, distinct(pattern_values.regexp_count)),
    Function("regexp_substr", (TEXT, TEXT), TEXT, distinct(pattern_values.regexp_substr, null=True)),
)  # fmt: skip
