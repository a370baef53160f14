"""Prepared statements and portals of one connection: what Parse and Bind make, by name.

A prepared statement has its parsed statement and its shape. A portal is a prepared statement with values; its first
Execute runs it, and later ones continue with the rows that are left. Both are bounded, because they hold memory of the
server.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from kpg.errors import NameTaken, OverLimit, ProtocolError, UndefinedName
from kpg.sql.bind.parameter_values import TypedParameter
from kpg.sql.parse.sql_statements import SqlStatement
from kpg.sql.session.describe_statements import StatementShape
from kpg.sql.session.query_result import QueryResult
from kpg.sql.sql_states import with_sqlstate

MAX_STATEMENTS: Final = 1_000  # prepared by one connection; drivers keep some hundred
MAX_STATEMENT_CHARACTERS: Final = 8_000_000  # of the texts of all of them
MAX_PORTALS: Final = 1_000
UNDEFINED_STATEMENT: Final = "26000"
DUPLICATE_STATEMENT: Final = "42P05"
UNDEFINED_PORTAL: Final = "34000"
DUPLICATE_PORTAL: Final = "42P03"


@dataclass(frozen=True, slots=True)
class PreparedStatement:
    """A statement with its parameters' types and its columns; `statement` is None for an empty text."""

    text: str
    statement: SqlStatement | None
    shape: StatementShape


@dataclass(slots=True)
class Portal:
    """A prepared statement with values, and its rows once it has run."""

    prepared: PreparedStatement
    parameters: dict[str, TypedParameter]
    formats: tuple[int, ...]  # one for each column
    result: QueryResult | None = None
    at: int = 0  # rows that were sent

    @property
    def nbytes(self) -> int:
        """The bytes of the rows that it holds."""
        return 0 if self.result is None else int(self.result.table.nbytes)


def formats_for(codes: Sequence[int], count: int) -> tuple[int, ...]:
    """Return the format of each of some values: none given is text for all, one is for all."""
    if any(code not in (0, 1) for code in codes):
        raise ProtocolError("a format code is neither text nor binary")
    if len(codes) <= 1:
        return (codes[0] if codes else 0,) * count
    if len(codes) != count:
        raise ProtocolError(f"bind message has {len(codes)} formats but there are {count} values")
    return tuple(codes)


class StatementStore:
    """The prepared statements and portals of one connection."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._statements: dict[str, PreparedStatement] = {}
        self._portals: dict[str, Portal] = {}

    def add_statement(self, name: str, prepared: PreparedStatement) -> None:
        """Keep a prepared statement; only the one without a name is replaced."""
        if name and name in self._statements:
            what = f'prepared statement "{name}" already exists'
            raise with_sqlstate(DUPLICATE_STATEMENT, NameTaken(what, hint="DEALLOCATE it first."))
        characters = len(prepared.text) + sum(len(other.text) for other in self._statements.values())
        if len(self._statements) >= MAX_STATEMENTS or characters > MAX_STATEMENT_CHARACTERS:
            what = f"too many prepared statements: a connection has at most {MAX_STATEMENTS:,}"
            raise with_sqlstate("54000", OverLimit(what, hint="DEALLOCATE those that are no longer used."))
        self._statements[name] = prepared

    def statement(self, name: str) -> PreparedStatement:
        """Return a prepared statement."""
        if name not in self._statements:
            what = (
                f'prepared statement "{name}" does not exist' if name else "unnamed prepared statement does not exist"
            )
            raise with_sqlstate(UNDEFINED_STATEMENT, UndefinedName(what))
        return self._statements[name]

    def add_portal(self, name: str, portal: Portal) -> None:
        """Keep a portal; only the one without a name is replaced."""
        if name and name in self._portals:
            raise with_sqlstate(DUPLICATE_PORTAL, NameTaken(f'cursor "{name}" already exists'))
        if len(self._portals) >= MAX_PORTALS:
            what = f"too many portals: a connection has at most {MAX_PORTALS:,}"
            raise with_sqlstate("54000", OverLimit(what, hint="Close those that are no longer read."))
        self._portals[name] = portal

    def portal(self, name: str) -> Portal:
        """Return a portal."""
        if name not in self._portals:
            raise with_sqlstate(UNDEFINED_PORTAL, UndefinedName(f'portal "{name}" does not exist'))
        return self._portals[name]

    def has_portal(self, name: str) -> bool:
        """Return whether there is a portal of this name."""
        return name in self._portals

    def check_bytes(self) -> None:
        """Raise if portals hold too many rows."""
        if sum(portal.nbytes for portal in self._portals.values()) > self._max_bytes and len(self._portals) > 1:
            what = f"the rows of open portals are too large: a connection holds at most {self._max_bytes:,} bytes"
            raise with_sqlstate("54000", OverLimit(what, hint="Read or close portals before opening others."))

    def close(self, kind: bytes, name: str) -> None:
        """Forget a statement (S) or portal (P); one that does not exist is no error."""
        kept: dict[str, Any] = self._statements if kind == b"S" else self._portals
        kept.pop(name, None)

    def deallocate(self, name: str | None) -> None:
        """Forget a prepared statement, all if there is no name."""
        if name is None:
            self._statements.clear()
        else:
            self.statement(name)
            del self._statements[name]

    def close_portals(self) -> None:
        """Forget all portals: their transaction has ended."""
        self._portals.clear()
