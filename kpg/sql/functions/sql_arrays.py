"""Functions of arrays. `ARRAY[…]` is "array", `a[i]` is "subscript", `x = ANY (a)` is "= any"."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from kpg.errors import NotSupported
from kpg.sql.functions import array_values
from kpg.sql.functions.building import distinct, values
from kpg.sql.functions.cast_rules import ANY_ARRAY, ANY_COMPATIBLE, ANY_ELEMENT
from kpg.sql.functions.function import Function
from kpg.sql.functions.sql_comparison import COMPARISONS
from kpg.sql.sql_states import with_sqlstate
from kpg.sql.sql_types import BOOLEAN, INTEGER, TEXT, SqlType, array_of


def _first(types: Sequence[SqlType]) -> SqlType:
    return types[0]


def _second(types: Sequence[SqlType]) -> SqlType:
    return types[1]


def _element(types: Sequence[SqlType]) -> SqlType:
    return types[0].element or TEXT


def _array(types: Sequence[SqlType]) -> SqlType:
    if types[0].element is not None:
        raise with_sqlstate("0A000", NotSupported("arrays of several dimensions are not supported"))
    return array_of(types[0])


def _element_name(types: Sequence[SqlType], result: SqlType) -> tuple[Any, ...]:
    return ((types[0].element or TEXT).name,)


FUNCTIONS: Final = (
    Function("array", (ANY_COMPATIBLE,), _array, values(array_values.make), variadic=True),
    Function("subscript", (ANY_ARRAY, INTEGER), _element, distinct(array_values.subscript, null=True)),
    *(Function(name, (ANY_ARRAY, INTEGER), INTEGER, distinct(array_values.length, null=True))
      for name in ("array_length", "array_upper")),
    Function("array_lower", (ANY_ARRAY, INTEGER), INTEGER, distinct(array_values.lower_bound, null=True)),
    Function("cardinality", (ANY_ARRAY,), INTEGER, distinct(array_values.cardinality)),
    Function("array_ndims", (ANY_ARRAY,), INTEGER, distinct(array_values.dimensions, null=True)),
    *(Function(name, (ANY_ARRAY, ANY_ARRAY), _first, values(array_values.joined)) for name in ("||", "array_cat")),
    *(Function(name, (ANY_ARRAY, ANY_ELEMENT), _first, values(array_values.appended))
      for name in ("||", "array_append")),
    *(Function(name, (ANY_ELEMENT, ANY_ARRAY), _second, values(array_values.prepended))
      for name in ("||", "array_prepend")),
    Function("array_remove", (ANY_ARRAY, ANY_ELEMENT), _first, values(array_values.removed)),
    Function("array_position", (ANY_ARRAY, ANY_ELEMENT), INTEGER, values(array_values.position)),
    Function("array_replace", (ANY_ARRAY, ANY_ELEMENT, ANY_ELEMENT), _first, values(array_values.replaced)),
    Function("array_to_string", (ANY_ARRAY, TEXT), TEXT, values(array_values.to_text, by_types=_element_name)),
    Function("array_to_string", (ANY_ARRAY, TEXT, TEXT), TEXT, values(array_values.to_text, by_types=_element_name)),
    Function("string_to_array", (TEXT, TEXT), array_of(TEXT), values(array_values.from_text)),
    Function("string_to_array", (TEXT, TEXT, TEXT), array_of(TEXT), values(array_values.from_text)),
    Function("@>", (ANY_ARRAY, ANY_ARRAY), BOOLEAN, distinct(array_values.contains)),
    Function("<@", (ANY_ARRAY, ANY_ARRAY), BOOLEAN, distinct(array_values.is_contained)),
    Function("&&", (ANY_ARRAY, ANY_ARRAY), BOOLEAN, distinct(array_values.overlaps)),
    *(Function(op, (ANY_ARRAY, ANY_ARRAY), BOOLEAN, distinct(array_values.compares, op)) for op in COMPARISONS),
    *(Function(f"{op} any", (ANY_ELEMENT, ANY_ARRAY), BOOLEAN, values(array_values.compares_any, op))
      for op in COMPARISONS),
    *(Function(f"{op} all", (ANY_ELEMENT, ANY_ARRAY), BOOLEAN, values(array_values.compares_all, op))
      for op in COMPARISONS),
)  # fmt: skip
