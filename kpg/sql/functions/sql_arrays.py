"""Functions of arrays. `ARRAY[…]` is "array", `a[i]` is "subscript", `x = ANY (a)` is "= any"."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kpg.sql.functions.building import pending
from kpg.sql.functions.cast_rules import ANY_ARRAY, ANY_COMPATIBLE, ANY_ELEMENT
from kpg.sql.functions.function import Function
from kpg.sql.functions.sql_comparison import COMPARISONS
from kpg.sql.sql_types import BOOLEAN, INTEGER, TEXT, SqlType, array_of


def _first(types: Sequence[SqlType]) -> SqlType:
    return types[0]


def _second(types: Sequence[SqlType]) -> SqlType:
    return types[1]


def _element(types: Sequence[SqlType]) -> SqlType:
    return types[0].element or TEXT


def _array(types: Sequence[SqlType]) -> SqlType:
    return array_of(types[0])


FUNCTIONS: Final = (
    Function("array", (ANY_COMPATIBLE,), _array, pending, variadic=True),
    Function("subscript", (ANY_ARRAY, INTEGER), _element, pending),
    *(Function(name, (ANY_ARRAY, INTEGER), INTEGER, pending) for name in ("array_length", "array_upper",
                                                                         "array_lower")),
    *(Function(name, (ANY_ARRAY,), INTEGER, pending) for name in ("cardinality", "array_ndims")),
    *(Function(name, (ANY_ARRAY, ANY_ARRAY), _first, pending) for name in ("||", "array_cat")),
    *(Function(name, (ANY_ARRAY, ANY_ELEMENT), _first, pending) for name in ("||", "array_append", "array_remove")),
    *(Function(name, (ANY_ELEMENT, ANY_ARRAY), _second, pending) for name in ("||", "array_prepend")),
    Function("array_position", (ANY_ARRAY, ANY_ELEMENT), INTEGER, pending),
    Function("array_replace", (ANY_ARRAY, ANY_ELEMENT, ANY_ELEMENT), _first, pending),
    Function("array_to_string", (ANY_ARRAY, TEXT), TEXT, pending),
    Function("array_to_string", (ANY_ARRAY, TEXT, TEXT), TEXT, pending),
    Function("string_to_array", (TEXT, TEXT), array_of(TEXT), pending),
    Function("string_to_array", (TEXT, TEXT, TEXT), array_of(TEXT), pending),
    *(Function(op, (ANY_ARRAY, ANY_ARRAY), BOOLEAN, pending) for op in ("@>", "<@", "&&")),
    *(Function(f"{op} {way}", (ANY_ELEMENT, ANY_ARRAY), BOOLEAN, pending)
      for op in COMPARISONS for way in ("any", "all")),
)  # fmt: skip
