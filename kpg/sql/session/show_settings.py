"""SHOW: the tables, views, indexes, sequences and columns of the db, definitions, and settings. SET and RESET.

The settings of plans (kpg/sql/lower/plan_settings.py) can be changed; the others are fixed, and clients ask for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kpg.columns.schema import Schema
from kpg.errors import ProgramError, UndefinedName
from kpg.sql.lower.plan_settings import CHOICES, DEFAULT_SETTINGS
from kpg.sql.parse.sql_statements import SetStatement, ShowStatement
from kpg.sql.session import sql_errors
from kpg.sql.session.client_settings import SPOKEN_NAMES
from kpg.sql.session.query_result import QueryResult, ResultColumn
from kpg.sql.session.sql_errors import sql_error
from kpg.sql.sql_types import TEXT

if TYPE_CHECKING:
    from kpg.sql.catalog.database_catalog import DatabaseCatalog
    from kpg.sql.session.sql_session import SqlSession


def show(session: SqlSession, statement: ShowStatement) -> QueryResult:
    """Carry out SHOW."""
    what, of = " ".join(statement.what), None if statement.of is None else str(statement.of)
    catalog = session.catalog
    if what == "tables":
        return texts(["name"], [(name,) for name in catalog.table_names()])
    if what in ("views", "materialized views"):
        chosen = [*catalog.installed] if what == "materialized views" else [*catalog.views, *catalog.installed]
        return texts(["name"], [(name,) for name in chosen])
    if what == "indexes":
        return texts(["name", "on", "columns"], index_rows(catalog, of))
    if what == "sequences":
        return texts(["name"], [(name,) for name in catalog.sequences])
    if what == "columns" and of is not None:
        return texts(["name", "type", "nullable"], column_rows(catalog, of))
    if what.startswith("create") and of is not None:
        return texts(["name", "definition"], [(of, definition_of(catalog, of))])
    settings = session.client_settings.shown() | session.settings.shown()
    what = SPOKEN_NAMES.get(what, what)
    if what == "all":
        return texts(["name", "setting"], sorted(settings.items()))
    if what in settings:
        return texts([what], [(settings[what],)])
    raise sql_error(
        UndefinedName,
        "42704",
        f"nothing to show is called {what!r}",
        hint="SHOW TABLES, VIEWS, MATERIALIZED VIEWS, INDEXES, SEQUENCES, COLUMNS FROM name, CREATE TABLE name, ALL.",
    )


def change_setting(session: SqlSession, statement: SetStatement) -> QueryResult:
    """Carry out SET and RESET."""
    name = None if statement.name is None else str(statement.name)
    if name is None:
        session.settings = DEFAULT_SETTINGS
        session.client_settings.reset()
    elif name in CHOICES:
        value = DEFAULT_SETTINGS.shown()[name] if statement.value is None else setting_value(name, statement.value)
        session.settings = session.settings.with_value(name, value)
    elif not session.client_settings.change(name, statement.value):
        hint = f"SET changes {' and '.join(CHOICES)}; SHOW ALL lists all settings."
        raise sql_error(UndefinedName, "42704", f"there is no setting {name!r}", hint=hint)
    return QueryResult("RESET" if statement.value is None else "SET")


def setting_value(name: str, given: str) -> str:
    """Return a value of a setting as it is written in CHOICES; raise if it is none."""
    value = {"true": "on", "yes": "on", "1": "on", "false": "off", "no": "off", "0": "off"}.get(
        given.lower(), given.lower()
    )
    if value not in CHOICES[name]:
        raise sql_error(
            ProgramError,
            sql_errors.INVALID_PARAMETER,
            f"the setting {name} has no value {given!r}",
            hint=f"Values: {', '.join(CHOICES[name])}.",
        )
    return value


def index_rows(catalog: DatabaseCatalog, of: str | None) -> list[tuple[str, str, str]]:
    """Return the indexes, of one relation or all."""
    indexes = catalog.indexes.values()
    return [(index.name, index.table, ", ".join(index.columns)) for index in indexes if of in (None, index.table)]


def column_rows(catalog: DatabaseCatalog, name: str) -> list[tuple[str, str, str]]:
    """Return the columns of a table or view."""
    entry = catalog.entry(name)
    if entry is None:
        raise sql_error(UndefinedName, sql_errors.UNDEFINED_TABLE, f"there is no relation {name!r}")
    return [(column.name, str(column.type), "no" if column.not_null else "yes") for column in entry.columns]


def definition_of(catalog: DatabaseCatalog, name: str) -> str:
    """Return the statement that created a name."""
    definition = catalog.store.definitions.get(name)
    if definition is None:
        raise sql_error(UndefinedName, sql_errors.UNDEFINED_TABLE, f"no statement defines {name!r}")
    return definition.text


def texts(names: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> QueryResult:
    """Return a result whose columns are texts."""
    schema = Schema.of(dict.fromkeys(names, str | None))
    table = pa.table({name: pa.array([row[at] for row in rows], pa.string()) for at, name in enumerate(names)})
    return QueryResult("SHOW", tuple(ResultColumn(name, TEXT) for name in names), table, schema)
