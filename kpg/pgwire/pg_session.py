"""The conversation with one authenticated client: simple and extended queries, COPY, cursors and transactions.

Each request gets its replies in PostgreSQL's order, then ReadyForQuery for a simple query or Sync. After an error in an
extended query, messages are skipped until Sync. A message that makes no sense ends the connection with an error. Each
statement is a transaction of its own unless BEGIN opened one, also within one simple query.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final

from kpg.errors import KpgError, NotSupported, ParseError, ProgramError, ProtocolError, ResourceError
from kpg.pgwire import wire_format as wire
from kpg.pgwire.copy_transfer import copy_in, copy_out
from kpg.pgwire.data_rows import data_rows, encode_table
from kpg.pgwire.parameter_fields import read_parameter
from kpg.pgwire.prepared_statements import Portal, PreparedStatement, StatementStore, formats_for
from kpg.pgwire.session_parameters import REPORTED
from kpg.pgwire.statement_runner import StatementRunner
from kpg.pgwire.wire_channel import ConnectionEnded, WireChannel
from kpg.pgwire.wire_errors import error_response, warning
from kpg.pgwire.wire_types import oid_of, type_of, wire_column
from kpg.sql.parse.sql_statements import CopyStatement, DiscardStatement, SqlStatement, TransactionStatement
from kpg.sql.session.describe_statements import StatementShape
from kpg.sql.session.query_result import QueryResult, ResultColumn
from kpg.sql.sql_states import with_sqlstate

ROWS_PER_CHUNK: Final = 2_000  # encoded at a time; other connections run between two chunks
LOGGER = logging.getLogger("kpg.server")
TRANSACTION_NOTES: Final = {  # by kind of statement: the warning if it has nothing to do, and its tag
    "begin": ("25001", "there is already a transaction in progress", "BEGIN"),
    "commit": ("25P01", "there is no transaction in progress", "COMMIT"),
    "rollback": ("25P01", "there is no transaction in progress", "ROLLBACK"),
}


class PgSession:
    """One connection after its login."""

    def __init__(self, channel: WireChannel, runner: StatementRunner, result_rows: int, waiting_bytes: int,
                 copy_bytes: int) -> None:  # fmt: skip
        self.channel = channel
        self.runner = runner
        self.store = StatementStore(waiting_bytes)
        self.copy_bytes = copy_bytes
        self._result_rows = result_rows
        self._skipping = False  # until Sync, after an error
        self.is_busy = False  # with messages whose replies are not complete
        self._reported: dict[str, str] = {}
        self._handlers: dict[bytes, Callable[[wire.MessageFields], Awaitable[None]]] = {
            b"Q": self._query, b"P": self._parse, b"B": self._bind, b"D": self._describe, b"E": self._execute,
            b"C": self._close, b"H": self._flush, b"S": self._sync, b"F": self._function_call,
        }  # fmt: skip

    async def serve(self, key: bytes) -> None:
        """Send the settings and the key for cancel requests, then answer messages until the client goes."""
        self.report_settings()
        self.channel.send(key)
        self._ready()
        await self.channel.flush()
        while True:
            kind, body = await self.channel.read_message()
            if kind == b"X":
                return
            if not self.is_busy:  # this is the first message of a statement
                self.runner.require_accepting()
            self.is_busy = True
            if kind in b"dcf":  # COPY data after an error of COPY
                continue
            handler = self._handlers.get(kind)
            if handler is None:
                raise ProtocolError(f"invalid frontend message type {kind[0]}")
            if self._skipping and kind != b"S":
                continue
            await handler(wire.MessageFields(body))

    # Replies

    def _ready(self) -> None:
        if self.runner.status == "I":
            self.store.close_portals()
        self.channel.send(wire.ready_for_query(self.runner.status))
        self.is_busy = False

    def report_settings(self) -> None:
        """Send the settings that clients follow and that have changed."""
        for name, shown in REPORTED.items():
            value = self.runner.settings.get(name)
            if value is not None and self._reported.get(name) != value:
                self._reported[name] = value
                self.channel.send(wire.parameter_status(shown, value))

    def _fail(self, error: Exception, text: str) -> None:
        if not isinstance(error, KpgError):  # a bug: its client gets an error, and the connection continues
            LOGGER.error("a statement failed", exc_info=error)
        self.channel.send(error_response(error, text))

    # Simple queries

    async def _query(self, fields: wire.MessageFields) -> None:
        text = self.runner.text = fields.text()
        fields.finish()
        try:
            statements = await self.runner.call(lambda session: session.parse(text))
            if not statements:
                self.channel.send(wire.EMPTY_QUERY)
            for statement in statements:
                await self._perform(statement)
        except ConnectionEnded:
            raise
        except Exception as error:
            self._fail(error, text)
        self._ready()
        await self.channel.flush()

    async def _perform(self, statement: SqlStatement) -> None:
        """Carry out one statement of a simple query, and send its rows and its tag."""
        if isinstance(statement, CopyStatement) and statement.path is None:
            await self._copy(statement, {})
            return
        result = await self._result(statement, {})
        if result.has_rows:
            formats = (wire.TEXT_FORMAT,) * len(result.columns)
            self._describe_columns(result.columns, formats)
            await self._send_rows(result, formats, 0, len(result))
        self._complete(result.tag)

    async def _result(self, statement: SqlStatement, parameters: dict[str, Any]) -> QueryResult:
        """Return the result of a statement."""
        if isinstance(statement, TransactionStatement) and statement.kind in TRANSACTION_NOTES:
            is_idle = self.runner.status == "I"
            if is_idle != (statement.kind == "begin") and (is_idle or self.runner.status == "T"):
                if is_idle or statement.kind == "begin":
                    sqlstate, note, tag = TRANSACTION_NOTES[statement.kind]
                    self.channel.send(warning(sqlstate, note))
                    return QueryResult(tag)
        if isinstance(statement, DiscardStatement) and self.runner.status != "E":
            self._discard(statement)
        result = await self.runner.execute(statement, parameters)
        if len(result) > self._result_rows:
            what = f"the result has {len(result):,} rows: this session may have {self._result_rows:,}"
            raise ResourceError(what, hint="Ask for fewer rows with LIMIT, or raise the limit: kpg serve --max-rows N.")
        return result

    def _discard(self, statement: DiscardStatement) -> None:
        if statement.what == ("deallocate",):
            self.store.deallocate(statement.name)
        elif statement.what == ("discard", "all"):
            self.store.deallocate(None)
            self.store.close_portals()

    def _complete(self, tag: str) -> None:
        self.report_settings()
        self.channel.send(wire.command_complete(tag))

    def _describe_columns(self, columns: tuple[ResultColumn, ...], formats: tuple[int, ...]) -> None:
        described = [wire_column(column.name, column.type) for column in columns]
        self.channel.send(wire.row_description(described, formats))

    async def _send_rows(self, result: QueryResult, formats: tuple[int, ...], begin: int, end: int) -> None:
        """Send some rows of a result."""
        types = [column.type for column in result.columns]
        assert result.schema is not None
        for at in range(begin, end, ROWS_PER_CHUNK):
            part = result.table.slice(at, min(ROWS_PER_CHUNK, end - at))
            fields = encode_table(part, result.schema, types, formats)
            await self.channel.send_much(data_rows(fields, part.num_rows))
            await asyncio.sleep(0)

    async def _copy(self, statement: CopyStatement, parameters: dict[str, Any]) -> None:
        """Carry out COPY FROM STDIN or TO STDOUT."""
        transfer = copy_in if statement.direction == "from" else copy_out
        self._complete(await transfer(self.channel, self.runner, statement, parameters, self.copy_bytes))

    # Extended queries

    async def _guard(self, text: str, work: Awaitable[None]) -> None:
        """Do a part of an extended query; after an error, skip to Sync."""
        self.runner.text = text or self.runner.text
        try:
            await work
        except ConnectionEnded:
            raise
        except Exception as error:
            self._fail(error, text)
            self._skipping = True
            if self.runner.status == "T":
                await self.runner.call(fail_transaction)
            await self.channel.flush()  # a client may wait for it before it sends Sync

    async def _parse(self, fields: wire.MessageFields) -> None:
        name, text = fields.text(), fields.text()
        oids = [fields.int32() & 0xFFFFFFFF for _ in range(fields.count16())]
        fields.finish()
        await self._guard(text, self._prepare(name, text, oids))

    async def _prepare(self, name: str, text: str, oids: list[int]) -> None:
        types = [type_of(oid) for oid in oids]
        if not name:
            self.store.close(b"S", "")

        def prepare(session: Any) -> PreparedStatement:
            statements = session.parse(text)
            if not statements:
                return PreparedStatement(text, None, StatementShape((), None))
            if len(statements) > 1:
                what = "cannot insert multiple commands into a prepared statement"
                raise with_sqlstate("42601", ParseError(what))
            return PreparedStatement(text, statements[0], session.describe(statements[0], types))

        self.store.add_statement(name, await self.runner.call(prepare))
        self.channel.send(wire.PARSE_COMPLETE)

    async def _bind(self, fields: wire.MessageFields) -> None:
        name, source = fields.text(), fields.text()
        codes = [fields.int16() for _ in range(fields.count16())]
        values = [fields.value() for _ in range(fields.count16())]
        result_codes = [fields.int16() for _ in range(fields.count16())]
        fields.finish()
        await self._guard("", self._open_portal(name, source, codes, values, result_codes))

    async def _open_portal(
        self, name: str, source: str, codes: list[int], values: list[bytes | None], result_codes: list[int]
    ) -> None:
        prepared = self.store.statement(source)
        types = prepared.shape.parameters
        if len(values) != len(types):
            what = f"bind message supplies {len(values)} parameters, but the prepared statement requires {len(types)}"
            raise ProtocolError(what)
        formats = formats_for(codes, len(values))
        parameters = {
            str(number): read_parameter(value, form, type_)
            for number, (value, form, type_) in enumerate(zip(values, formats, types, strict=True), 1)
        }
        columns = prepared.shape.columns
        if not name:
            self.store.close(b"P", "")
        portal = Portal(prepared, parameters, formats_for(result_codes, len(columns)) if columns is not None else ())
        self.store.add_portal(name, portal)
        self.channel.send(wire.BIND_COMPLETE)

    async def _describe(self, fields: wire.MessageFields) -> None:
        kind, name = fields.take(1), fields.text()
        fields.finish()
        await self._guard("", self._describe_named(kind, name))

    async def _describe_named(self, kind: bytes, name: str) -> None:
        if kind == b"S":
            shape = self.store.statement(name).shape
            self.channel.send(wire.parameter_description([oid_of(type_) for type_ in shape.parameters]))
            columns, formats = shape.columns, (0,) * len(shape.columns or ())
        elif kind != b"P":
            raise ProtocolError("only statements and portals can be described")
        elif not self.store.has_portal(name) and name:
            columns = await self.runner.call(lambda session: session.cursors.columns(name))
            formats = (0,) * len(columns)
        else:
            portal = self.store.portal(name)
            columns, formats = portal.prepared.shape.columns, portal.formats
        if columns is None:
            self.channel.send(wire.NO_DATA)
        else:
            self._describe_columns(columns, formats)

    async def _execute(self, fields: wire.MessageFields) -> None:
        name, count = fields.text(), fields.int32()
        fields.finish()
        text = self.store.portal(name).prepared.text if self.store.has_portal(name) else ""
        await self._guard(text, self._run_portal(name, count))

    async def _run_portal(self, name: str, count: int) -> None:
        portal = self.store.portal(name)
        statement = portal.prepared.statement
        if statement is None:
            self.channel.send(wire.EMPTY_QUERY)
            return
        if isinstance(statement, CopyStatement) and statement.path is None:
            await self._copy(statement, dict(portal.parameters))
            return
        if portal.result is None:
            portal.result = await self._result(statement, dict(portal.parameters))
            check_columns(portal)
            self.store.check_bytes()
        result = portal.result
        if not result.has_rows:
            self._complete(result.tag)
            return
        end = len(result) if count <= 0 else min(len(result), portal.at + count)
        await self._send_rows(result, portal.formats, portal.at, end)
        sent, portal.at = end - portal.at, end
        if count > 0 and sent == count:  # as PostgreSQL, which does not look whether this was the last row
            self.channel.send(wire.PORTAL_SUSPENDED)
            return
        self._complete(result.tag if not portal_continued(portal, sent) else f"SELECT {sent}")

    async def _close(self, fields: wire.MessageFields) -> None:
        kind, name = fields.take(1), fields.text()
        fields.finish()
        if kind not in (b"S", b"P"):
            raise ProtocolError("only statements and portals can be closed")
        self.store.close(kind, name)
        self.channel.send(wire.CLOSE_COMPLETE)

    async def _flush(self, fields: wire.MessageFields) -> None:
        fields.finish()
        await self.channel.flush()

    async def _sync(self, fields: wire.MessageFields) -> None:
        fields.finish()
        self._skipping = False
        self._ready()
        await self.channel.flush()

    async def _function_call(self, fields: wire.MessageFields) -> None:
        error = with_sqlstate("0A000", NotSupported("function call messages are not supported", hint="Use SELECT."))
        self._fail(error, "")
        self._ready()
        await self.channel.flush()


def portal_continued(portal: Portal, sent: int) -> bool:
    """Return whether earlier executions have sent rows of a query; its last tag then counts its own rows."""
    return sent < portal.at and portal.result is not None and portal.result.tag.startswith("SELECT")


def check_columns(portal: Portal) -> None:
    """Raise if a relation has changed since the statement was prepared, so that it returns other columns."""
    assert portal.result is not None
    columns = portal.prepared.shape.columns or ()
    if [column.type.name for column in columns] != [column.type.name for column in portal.result.columns]:
        hint = "Prepare the statement again."
        raise with_sqlstate("0A000", ProgramError("cached plan must not change result type", hint=hint))


def fail_transaction(session: Any) -> None:
    """Make the open transaction fail."""
    if session.transaction is not None:
        session.transaction.failed = True
