"""Declaring an input: the forms of its columns, and a second declaration of the same name.

db.input("kv", key=str, value=int)                   columns that have the names of options
db.input("edges", exist_ok=True, src=int, dst=int)   the input of that name if it exists, else a new one
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from kpg.columns.schema import Schema
from kpg.columns.schema_forms import is_type, schema_of
from kpg.errors import InUse, SchemaMismatch

if TYPE_CHECKING:
    from kpg.api.contracts import Database

Method = TypeVar("Method", bound=Callable[..., Any])
OPTIONS: Final = ("key", "keep", "keep_on_disk", "exist_ok")  # of `Database.input`; the other keywords are columns


def any_column_name(method: Method) -> Method:
    """Let columns have the names of options: an option that is given as a type, such as `key=str`, is a column."""

    @wraps(method)
    def call(self: Database, name: str, schema: Any = None, /, **given: Any) -> Any:
        columns = [option for option in OPTIONS if option in given and is_type(given[option])]
        if columns:
            options = {option: given.pop(option) for option in OPTIONS if option in given and option not in columns}
            return method(self, name, schema_of(schema, given), **options)
        return method(self, name, schema, **given)

    return cast(Method, call)


def existing_input(
    db: Database, name: str, schema: Any, columns: dict[str, Any], key: str | Sequence[str] | None, exist_ok: bool
) -> Any:
    """Return the input of that name if the caller accepts it; None if there is none; else raise."""
    db.check()
    existing = db.inputs.get(name)
    if existing is None:
        return None
    if not exist_ok:
        raise InUse(
            f"there is an input {name!r} already",
            hint="Choose another name, drop() that one first, or pass exist_ok=True to get it.",
        )
    if schema is not None or columns:
        check_same(name, existing, schema_of(schema, columns), (key,) if isinstance(key, str) else tuple(key or ()))
    return existing


def check_same(name: str, existing: Any, schema: Schema, key: tuple[str, ...]) -> None:
    """Raise unless an input has these columns and this key."""
    if (schema, key) != (existing.schema, existing.key):
        raise SchemaMismatch(
            f"there is an input {name!r} with other columns or another key",
            detail=f"It has {existing.schema!r}, key {existing.key}; wanted: {schema!r}, key {key}.",
            hint="Choose another name, or drop() that one first.",
        )
