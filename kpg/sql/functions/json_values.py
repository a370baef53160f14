"""Functions of jsonb on Python values. A value of jsonb is its canonical text (kpg.columns.column_types.jsonb_type)."""

from __future__ import annotations

import datetime
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final

from kpg.columns.column_types.jsonb_type import canonical_json, parse_json
from kpg.sql.functions.text_output import write_any

_MISSING: Final = object()
_parse = lru_cache(1000)(parse_json)  # a function is called for each distinct value, several on the same values


def read_jsonb(text: str) -> str:
    """Return the canonical text of JSON."""
    try:
        return canonical_json(parse_json(text))
    except (ValueError, RecursionError):
        raise ValueError(f'invalid input syntax for type json: "{text}"') from None


def _member(value: Any, key: Any) -> Any:
    if isinstance(key, str) and isinstance(value, dict):
        return value.get(key, _MISSING)
    if isinstance(key, int) and not isinstance(value, dict):  # a scalar counts as an array of one element
        value = value if isinstance(value, list) else [value]
        return value[key] if -len(value) <= key < len(value) else _MISSING
    return _MISSING


def _as_json(value: Any) -> str | None:
    return None if value is _MISSING else canonical_json(value)


def _as_text(value: Any) -> str | None:
    if value is _MISSING or value is None:
        return None
    return value if isinstance(value, str) else canonical_json(value)


def member(text: str, key: Any) -> str | None:
    """Return the member of an object by name, or of an array by number, as jsonb."""
    return _as_json(_member(_parse(text), key))


def member_text(text: str, key: Any) -> str | None:
    """Return a member as text."""
    return _as_text(_member(_parse(text), key))


def _follow(text: str, path: tuple[str | None, ...]) -> Any:
    value = _parse(text)
    for step in path:
        if step is None:
            return _MISSING
        key: Any = step
        if isinstance(value, list):
            try:
                key = int(step)
            except ValueError:
                return _MISSING
        value = _member(value, key)
        if value is _MISSING:
            break
    return value


def at_path(text: str, path: tuple[str | None, ...]) -> str | None:
    """Return the value at a path of names and numbers, as jsonb."""
    return _as_json(_follow(text, path))


def text_at_path(text: str, path: tuple[str | None, ...]) -> str | None:
    """Return the value at a path, as text."""
    return _as_text(_follow(text, path))


def at_steps(text: str, *path: str) -> str | None:
    """Return the value at a path given as arguments, as jsonb."""
    return at_path(text, path)


def text_at_steps(text: str, *path: str) -> str | None:
    """Return the value at a path given as arguments, as text."""
    return text_at_path(text, path)


def contains(text: str, other: str) -> bool:
    """Return whether a value contains another: its members, or elements in any order."""
    a, b = _parse(text), _parse(other)
    if isinstance(a, list) and not isinstance(b, (list, dict)):
        return any(_same(element, b) for element in a)
    return _contains(a, b)


def is_contained(text: str, other: str) -> bool:
    """Return whether a value is contained in another."""
    return contains(other, text)


def _same(a: Any, b: Any) -> bool:
    return isinstance(a, bool) == isinstance(b, bool) and type(a) is type(b) and a == b


def _contains(a: Any, b: Any) -> bool:
    if isinstance(a, dict) and isinstance(b, dict):
        return all(key in a and _contains(a[key], value) for key, value in b.items())
    if isinstance(a, list) and isinstance(b, list):
        return all(any(_contains(mine, value) for mine in a) for value in b)
    return not isinstance(a, (dict, list)) and _same(a, b)


def has_key(text: str, key: str) -> bool:
    """Return whether a text is a name of an object, or a string in an array."""
    value = _parse(text)
    return key in value if isinstance(value, (dict, list)) else value == key


def has_any_key(text: str, keys: tuple[str | None, ...]) -> bool:
    """Return whether some of the texts is a name or string."""
    return any(has_key(text, key) for key in keys if key is not None)


def has_all_keys(text: str, keys: tuple[str | None, ...]) -> bool:
    """Return whether all of the texts are names or strings."""
    return all(has_key(text, key) for key in keys if key is not None)


def joined(text: str, other: str) -> str:
    """Return two objects with the members of both, or two arrays with the elements of both; others count as arrays."""
    a, b = _parse(text), _parse(other)
    if isinstance(a, dict) and isinstance(b, dict):
        return canonical_json({**a, **b})
    return canonical_json([*(a if isinstance(a, list) else [a]), *(b if isinstance(b, list) else [b])])


def without(text: str, key: Any) -> str:
    """Return a value without a member, by name or number; an array without the strings of a name."""
    value = _parse(text)
    if not isinstance(value, (dict, list)):
        raise ValueError("cannot delete from scalar")
    if isinstance(key, int):
        if isinstance(value, dict):
            raise ValueError("cannot delete from object using integer index")
        index = key if key >= 0 else len(value) + key
        return canonical_json([v for at, v in enumerate(value) if at != index])
    if isinstance(value, dict):
        return canonical_json({name: v for name, v in value.items() if name != key})
    return canonical_json([v for v in value if v != key])


def kind_of(text: str) -> str:
    """Return object, array, string, number, boolean or null."""
    value = _parse(text)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    kinds: dict[type, str] = {dict: "object", list: "array", str: "string"}
    return kinds.get(type(value), "number")


def length_of(text: str) -> int:
    """Return the number of elements of an array."""
    value = _parse(text)
    if not isinstance(value, list):
        raise ValueError(f"cannot get array length of a {'non-array' if isinstance(value, dict) else 'scalar'}")
    return len(value)


def without_nulls(text: str) -> str:
    """Return a value without the members of objects that are null."""
    return canonical_json(_stripped(_parse(text)))


def _stripped(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _stripped(member) for name, member in value.items() if member is not None}
    return list(map(_stripped, value)) if isinstance(value, list) else value


def json_of(type_name: str, value: Any) -> Any:
    """Return a value of a type as a value of JSON."""
    if value is None or type_name == "boolean":
        return value
    if type_name.endswith("[]"):
        return [json_of(type_name[:-2], element) for element in value]
    if type_name == "jsonb":
        return _parse(value)
    if type_name in ("smallint", "integer", "bigint", "numeric"):
        return Decimal(value)
    if type_name in ("real", "double precision"):
        shown = write_any(type_name, value)
        return Decimal(shown) if shown[-1].isdigit() else shown
    if isinstance(value, datetime.datetime):
        shown = write_any(type_name, value).replace(" ", "T")
        return f"{shown}:00" if shown.endswith("+00") else shown
    return write_any(type_name, value)


def to_jsonb(type_name: str, value: Any) -> str:
    """Return a value of a type as jsonb."""
    return canonical_json(json_of(type_name, value))


def build_array(type_names: str, *values: Any) -> str:
    """Return an array of values. `type_names` has the type of each, one a line."""
    return canonical_json([json_of(name, value) for name, value in zip(type_names.split("\n"), values, strict=True)])


def build_object(type_names: str, *values: Any) -> str:
    """Return an object of names and values, given in turn."""
    if len(values) % 2:
        raise ValueError("argument list must have even number of elements")
    names = type_names.split("\n")
    members = {}
    for at in range(0, len(values), 2):
        if values[at] is None:
            raise ValueError(f"argument {at + 1} cannot be null: null value not allowed for object key")
        members[write_any(names[at], values[at])] = json_of(names[at + 1], values[at + 1])
    return canonical_json(members)


def scalar_of(type_name: str, text: str) -> Any:
    """Return a number or truth value as a Python value of an SQL type; the cast of its text does the rest."""
    value = _parse(text)
    wanted = "boolean" if type_name == "boolean" else "number"
    if kind_of(text) != wanted:
        kind = kind_of(text) if isinstance(value, (dict, list)) or value is None else kind_of(text)
        raise ValueError(f"cannot cast jsonb {kind} to type {type_name}")
    return text
