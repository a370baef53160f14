"""Functions of arrays on Python values. An array is a tuple of its elements, with None for null.

Arrays have one dimension, and their elements are numbered from 1.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable
from typing import Any, Final

from kpg.sql.functions.text_output import output_of

Elements = tuple[Any, ...]
COMPARE: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "=": operator.eq, "<>": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


def make(*values: Any) -> Elements:
    """Return an array of values."""
    return values


def subscript(array: Elements, position: int) -> Any:
    """Return an element, null beyond the ends."""
    return array[position - 1] if 1 <= position <= len(array) else None


def length(array: Elements, dimension: int) -> int | None:
    """Return the number of elements, null for no elements or another dimension than the first."""
    return len(array) if array and dimension == 1 else None


def lower_bound(array: Elements, dimension: int) -> int | None:
    """Return the number of the first element."""
    return 1 if array and dimension == 1 else None


def cardinality(array: Elements) -> int:
    """Return the number of elements."""
    return len(array)


def dimensions(array: Elements) -> int | None:
    """Return the number of dimensions, null for no elements."""
    return 1 if array else None


def joined(a: Elements | None, b: Elements | None) -> Elements | None:
    """Return the elements of both; null counts as no elements."""
    if a is None or b is None:
        return b if a is None else a
    return a + b


def appended(array: Elements | None, value: Any) -> Elements:
    """Return an array with an element at its end."""
    return (*(array or ()), value)


def prepended(value: Any, array: Elements | None) -> Elements:
    """Return an array with an element at its start."""
    return (value, *(array or ()))


def removed(array: Elements | None, value: Any) -> Elements | None:
    """Return an array without the elements equal to a value."""
    return None if array is None else tuple(element for element in array if element != value)


def replaced(array: Elements | None, old: Any, new: Any) -> Elements | None:
    """Return an array with all elements equal to a value replaced."""
    return None if array is None else tuple(new if element == old else element for element in array)


def position(array: Elements | None, value: Any) -> int | None:
    """Return the number of the first element equal to a value."""
    return array.index(value) + 1 if array is not None and value in array else None


def to_text(type_name: str, array: Elements | None, separator: str | None, null: str | None = None) -> str | None:
    """Return the elements as one text; nulls are left out unless a text stands for them."""
    if array is None or separator is None:
        return None
    shown = [null if value is None else output_of(type_name, value) for value in array]
    return separator.join(text for text in shown if text is not None)


def from_text(text: str | None, separator: str | None, null: str | None = None) -> tuple[str | None, ...] | None:
    """Return the parts of text between separators; its characters without one."""
    if text is None:
        return None
    if not text:
        return ()
    parts = list(text) if separator is None else [text] if not separator else text.split(separator)
    return tuple(None if part == null else part for part in parts)


def contains(a: Elements, b: Elements) -> bool:
    """Return whether an array has all elements of another; null equals nothing."""
    present = {value for value in a if value is not None}
    return all(value is not None and value in present for value in b)


def is_contained(a: Elements, b: Elements) -> bool:
    """Return whether all elements of an array are in another."""
    return contains(b, a)


def overlaps(a: Elements, b: Elements) -> bool:
    """Return whether two arrays have a common element."""
    return bool({value for value in a if value is not None} & {value for value in b if value is not None})


def compares(op: str, a: Elements, b: Elements) -> bool:
    """Return the comparison of two arrays, element by element; null is above all values and equals null."""
    return COMPARE[op](order_of_elements(a), order_of_elements(b))


def order_of_elements(array: Elements) -> list[tuple[int, Any]]:
    """Return a key that orders arrays: element by element, null above all values."""
    return [(2, 0) if value is None else _rank(value) for value in array]


def _rank(value: Any) -> tuple[int, Any]:
    """Return a key that sorts as values do: NaN equals itself and is above all other numbers."""
    return (1, 0) if isinstance(value, float) and math.isnan(value) else (0, value)


def compares_any(op: str, value: Any, array: Elements | None) -> bool | None:
    """Return whether a comparison holds for some element: true, else null if one is null, else false."""
    if array is None:
        return None
    if value is None:
        return None if array else False
    results = [None if element is None else COMPARE[op](_rank(value), _rank(element)) for element in array]
    return True if True in results else None if None in results else False


def compares_all(op: str, value: Any, array: Elements | None) -> bool | None:
    """Return whether a comparison holds for all elements: false, else null if one is null, else true."""
    if array is None:
        return None
    if value is None:
        return None if array else True
    results = [None if element is None else COMPARE[op](_rank(value), _rank(element)) for element in array]
    return False if False in results else None if None in results else True


_TOKEN: Final = re.compile(r'\s*(?:"((?:[^"\\]|\\.)*)"|((?:[^",{}\\]|\\.)+))\s*([,}])', re.DOTALL)


def split_literal(text: str) -> list[str | None]:
    """Return the texts of the elements of an array literal `{a,"b c",NULL}`."""
    written = text.strip()
    if not (written.startswith("{") and written.endswith("}")):
        raise ValueError(f'malformed array literal: "{text}"')
    if not written[1:-1].strip():
        return []
    elements: list[str | None] = []
    at = 1
    while at < len(written):
        match = _TOKEN.match(written, at)
        if match is None or (match[3] == "}") != (match.end() == len(written)):
            raise ValueError(f'malformed array literal: "{text}"')
        at = match.end()
        if match[1] is not None:
            elements.append(re.sub(r"\\(.)", r"\1", match[1], flags=re.DOTALL))
        else:
            bare = match[2].strip()
            elements.append(None if bare.upper() == "NULL" else re.sub(r"\\(.)", r"\1", bare, flags=re.DOTALL))
    return elements
