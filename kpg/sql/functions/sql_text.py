"""Functions of text and bytes."""

from __future__ import annotations

from typing import Final

from kpg.sql.functions.building import pending
from kpg.sql.functions.cast_rules import ANY
from kpg.sql.functions.function import Function
from kpg.sql.functions.sql_comparison import CHARACTER
from kpg.sql.sql_types import BIGINT, BOOLEAN, BYTEA, INTEGER, TEXT, array_of

MATCHES: Final = ("~~", "!~~", "~~*", "!~~*", "~", "!~", "~*", "!~*")

FUNCTIONS: Final = (
    *(Function(name, (TEXT,), TEXT, pending) for name in ("lower", "upper", "initcap", "reverse")),
    *(Function(name, (a,), INTEGER, pending) for name in ("length", "char_length", "character_length")
      for a in (TEXT, CHARACTER)),
    Function("length", (BYTEA,), INTEGER, pending),
    *(Function(name, (a,), INTEGER, pending) for name in ("octet_length", "bit_length")
      for a in (TEXT, BYTEA)),
    *(Function(name, (a, *numbers), a, pending) for name in ("substring", "substr") for a in (TEXT, BYTEA)
      for numbers in ((INTEGER,), (INTEGER, INTEGER))),
    Function("substring", (TEXT, TEXT), TEXT, pending),
    Function("substring", (TEXT, TEXT, TEXT), TEXT, pending),
    *(Function("position", (a, a), INTEGER, pending) for a in (TEXT, BYTEA)),
    Function("strpos", (TEXT, TEXT), INTEGER, pending),
    *(Function(name, parameters, TEXT, pending) for name in ("btrim", "ltrim", "rtrim")
      for parameters in ((TEXT,), (TEXT, TEXT))),
    *(Function(name, parameters, TEXT, pending) for name in ("lpad", "rpad")
      for parameters in ((TEXT, INTEGER), (TEXT, INTEGER, TEXT))),
    Function("replace", (TEXT, TEXT, TEXT), TEXT, pending),
    Function("translate", (TEXT, TEXT, TEXT), TEXT, pending),
    Function("split_part", (TEXT, TEXT, INTEGER), TEXT, pending),
    *(Function(name, (TEXT, INTEGER), TEXT, pending) for name in ("left", "right", "repeat")),
    *(Function("overlay", (TEXT, TEXT, *numbers), TEXT, pending) for numbers in ((INTEGER,), (INTEGER, INTEGER))),
    Function("||", (TEXT, TEXT), TEXT, pending),
    Function("||", (TEXT, ANY), TEXT, pending),
    Function("||", (ANY, TEXT), TEXT, pending),
    Function("||", (BYTEA, BYTEA), BYTEA, pending),
    Function("concat", (ANY,), TEXT, pending, variadic=True),
    Function("concat_ws", (TEXT, ANY), TEXT, pending, variadic=True),
    Function("format", (TEXT,), TEXT, pending),
    Function("format", (TEXT, ANY), TEXT, pending, variadic=True),
    Function("starts_with", (TEXT, TEXT), BOOLEAN, pending),
    Function("^@", (TEXT, TEXT), BOOLEAN, pending),
    Function("ascii", (TEXT,), INTEGER, pending),
    Function("chr", (INTEGER,), TEXT, pending),
    *(Function("to_hex", (a,), TEXT, pending) for a in (INTEGER, BIGINT)),
    *(Function("md5", (a,), TEXT, pending) for a in (TEXT, BYTEA)),
    Function("sha256", (BYTEA,), BYTEA, pending),
    Function("encode", (BYTEA, TEXT), TEXT, pending),
    Function("decode", (TEXT, TEXT), BYTEA, pending),
    Function("quote_literal", (TEXT,), TEXT, pending),
    Function("quote_ident", (TEXT,), TEXT, pending),
    *(Function(op, (a, TEXT), BOOLEAN, pending) for op in MATCHES for a in (TEXT, CHARACTER)),
    Function("like_escape", (TEXT, TEXT), TEXT, pending),
    Function("similar_to_escape", (TEXT,), TEXT, pending),
    Function("similar_to_escape", (TEXT, TEXT), TEXT, pending),
    Function("regexp_replace", (TEXT, TEXT, TEXT), TEXT, pending),
    Function("regexp_replace", (TEXT, TEXT, TEXT, TEXT), TEXT, pending),
    *(Function(name, (TEXT, TEXT, *flags), array_of(TEXT), pending)
      for name in ("regexp_match", "regexp_split_to_array") for flags in ((), (TEXT,))),
    Function("regexp_like", (TEXT, TEXT), BOOLEAN, pending),
    Function("regexp_like", (TEXT, TEXT, TEXT), BOOLEAN, pending),
    Function("regexp_count", (TEXT, TEXT), INTEGER, pending),
    Function("regexp_substr", (TEXT, TEXT), TEXT, pending),
)  # fmt: skip
