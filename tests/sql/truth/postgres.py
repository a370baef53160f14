"""PostgreSQL as the judge of SQL: it runs a statement and gives the rows, or the SQLSTATE of its refusal.

Rows come as Python values that keep all that PostgreSQL says: numerics as Decimals with their scale, intervals as
(months, days, microseconds), JSONB as parsed objects. The session has time zone UTC, and text orders by code point.
"""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg.adapt import Loader
from psycopg.pq import Format

Row = tuple[Any, ...]


@dataclass(frozen=True)
class Answer:
    """The rows of a statement, with the names and types of their columns; no columns if it gives no rows."""

    names: tuple[str, ...]
    types: tuple[str, ...]
    rows: list[Row]


@dataclass(frozen=True)
class Refusal:
    """The error of a statement."""

    sqlstate: str
    message: str


@dataclass(frozen=True)
class Span:
    """An interval as PostgreSQL keeps it."""

    months: int
    days: int
    microseconds: int


class SpanLoader(Loader):
    """Read an interval without turning months into days."""

    format = Format.BINARY

    def load(self, data: Any) -> Span:
        microseconds, days, months = struct.unpack("!qii", bytes(data))
        return Span(months, days, microseconds)


class JsonLoader(Loader):
    """Read JSONB with exact numbers."""

    format = Format.BINARY

    def load(self, data: Any) -> Any:
        return exact_json(bytes(data)[1:].decode())


def exact_json(text: str) -> Any:
    """Parse JSON; numbers stay as written."""
    return json.loads(text, parse_int=str, parse_float=str)


class Postgres:
    """A connection on which every statement is its own transaction, unless a statement begins one."""

    def __init__(self, dsn: str) -> None:
        self.connection = psycopg.connect(dsn, autocommit=True, prepare_threshold=None)
        self.connection.adapters.register_loader("interval", SpanLoader)
        self.connection.adapters.register_loader("jsonb", JsonLoader)
        self.sql("SET timezone = 'UTC'")
        self.sql("SET client_min_messages = error")
        self.sql("SET search_path = test, pg_catalog")
        self.reset()

    def reset(self) -> None:
        """Drop all tables and views."""
        self.sql("DROP SCHEMA IF EXISTS test CASCADE")
        self.sql("CREATE SCHEMA test")

    def sql(self, text: str) -> Answer | Refusal:
        """Run one statement."""
        with self.connection.cursor(binary=True) as cursor:
            try:
                cursor.execute(text.encode(), prepare=False)
            except psycopg.Error as error:
                return Refusal(error.sqlstate or "", str(error))
            if cursor.description is None:
                return Answer((), (), [])
            columns = cursor.description
            types = tuple(str(column.type_display) for column in columns)
            return Answer(tuple(column.name for column in columns), types, list(cursor.fetchall()))

    def rows(self, text: str) -> Answer:
        """Run a statement that must succeed."""
        answer = self.sql(text)
        assert isinstance(answer, Answer), f"PostgreSQL refuses {text}\n{answer.message}"
        return answer

    def checked(self, query: str) -> Refusal | None:
        """Parse and type a query without running it; return the refusal, if any.

        EXPLAIN folds constants, so an error of a constant expression is one here as well.
        """
        answer = self.sql(f"EXPLAIN {query}")
        return answer if isinstance(answer, Refusal) else None

    def close(self) -> None:
        """End the connection."""
        self.connection.close()
