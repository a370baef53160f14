"""The port of PostgreSQL's protocol: accepts connections, and runs one task for each.

A connection that does not authenticate in time is closed. Too many sessions are refused (53300). A cancel request names
a session and its secret, which only its client knows; a wrong one is ignored, as in PostgreSQL.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import socket
import ssl
import time
from dataclasses import dataclass
from typing import Any, Final

from kpg.errors import Closed, KpgError, Unavailable
from kpg.pgwire.pg_login import Login, log_in
from kpg.pgwire.pg_session import PgSession
from kpg.pgwire.session_parameters import apply_settings, settings_in
from kpg.pgwire.sql_backend import SqlBackend
from kpg.pgwire.startup_packets import CancelRequest
from kpg.pgwire.statement_runner import ADMIN_SHUTDOWN, SHUTTING_DOWN, StatementRunner
from kpg.pgwire.wire_channel import ConnectionEnded, DroppedProtocol, WireChannel
from kpg.pgwire.wire_errors import error_response, warning
from kpg.pgwire.wire_format import key_data
from kpg.sql.sql_states import with_sqlstate

READ_BUFFER_BYTES: Final = 1 << 16
CLOSE_SECONDS: Final = 2.0  # to end connections when the server shuts down
DRAIN_POLL_SECONDS: Final = 0.01  # between two looks at busy sessions when the server shuts down
LOGGER = logging.getLogger("kpg.server")


@dataclass(slots=True)
class RunningSession:
    """A session that a cancel request may name."""

    secret: int
    runner: StatementRunner
    session: PgSession
    task: asyncio.Task[Any] | None  # that serves its connection


class PgListener:
    """Accepts clients of PostgreSQL's protocol."""

    def __init__(self, backend: SqlBackend, host: str, port: int, context: ssl.SSLContext | None) -> None:
        self._backend = backend
        self._host, self._port = host, port
        self._context = context
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._sessions: dict[int, RunningSession] = {}

    async def open(self) -> int:
        """Listen, and return the port."""
        loop = asyncio.get_running_loop()
        try:
            self._server = await loop.create_server(self._protocol, self._host, self._port)
        except OSError as error:
            hint = "Choose another --pg, or 0 for any free port."
            raise Unavailable(f"cannot listen on {self._host}:{self._port}", detail=str(error), hint=hint) from None
        return int(self._server.sockets[0].getsockname()[1])

    async def drain(self, timeout_seconds: float) -> int:
        """Stop accepting clients, end each connection after the statement that it runs now, and wait for that.

        Return the number of sessions that are still busy when the timeout has passed.
        """
        if self._server is None:
            return 0
        self._server.close()
        end = time.monotonic() + timeout_seconds
        while True:
            busy = [session for session in self._sessions.values() if session.session.is_busy]
            for session in self._sessions.values():
                if session not in busy and session.task is not None:
                    session.task.cancel()
            if not busy or time.monotonic() >= end:
                return len(busy)
            await asyncio.sleep(DRAIN_POLL_SECONDS)

    async def close(self) -> None:
        """Stop accepting clients, and end all connections."""
        if self._server is None:
            return
        self._server.close()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=CLOSE_SECONDS)

    def _protocol(self) -> DroppedProtocol:
        reader = asyncio.StreamReader(READ_BUFFER_BYTES)
        protocol: DroppedProtocol = DroppedProtocol(reader, lambda _, writer: self._accept(reader, writer, protocol))
        return protocol

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, protocol: DroppedProtocol) -> None:
        task = asyncio.ensure_future(self._serve(WireChannel(reader, writer, protocol.lost), writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, channel: WireChannel, writer: asyncio.StreamWriter) -> None:
        """Serve one connection until it ends."""
        keep_alive(writer)
        try:
            login = await asyncio.wait_for(
                log_in(channel, self._backend, self._context, self._cancel), self._backend.greeting_seconds
            )
            if login is not None:
                await self._serve_login(channel, login)
        except (ConnectionEnded, TimeoutError):
            pass
        except asyncio.CancelledError:
            ended = with_sqlstate(ADMIN_SHUTDOWN, Closed(SHUTTING_DOWN))
            channel.send(error_response(ended, severity="FATAL"))
        except KpgError as error:
            channel.send(error_response(error, severity="FATAL"))
        except Exception as error:  # a bug ends one connection, not the server
            LOGGER.exception("a connection failed")
            channel.send(error_response(error, severity="FATAL"))
        finally:
            with contextlib.suppress(asyncio.CancelledError):
                await channel.close()

    async def _serve_login(self, channel: WireChannel, login: Login) -> None:
        """Serve an authenticated client."""
        settings = settings_in(login.parameters)
        number = self._backend.open_session(login.holder)
        runner = StatementRunner(self._backend, number, login.holder, channel.lost)
        limits = (self._backend.result_rows, self._backend.waiting_bytes, self._backend.copy_bytes)
        session = RunningSession(
            secrets.randbits(32), runner, PgSession(channel, runner, *limits), asyncio.current_task()
        )
        self._sessions[number] = session
        try:
            for note in await runner.call(lambda sql: apply_settings(sql, settings)):
                channel.send(warning("01000", note))
            channel.max_bytes = self._backend.message_bytes
            await session.session.serve(key_data(number, session.secret))
        finally:
            del self._sessions[number]
            self._backend.close_session(number)

    def _cancel(self, request: CancelRequest) -> None:
        """Cancel the statement of a session, if the secret is right."""
        session = self._sessions.get(request.number)
        if session is not None and secrets.compare_digest(
            session.secret.to_bytes(4, "big"), request.secret.to_bytes(4, "big")
        ):
            session.runner.cancel()


def keep_alive(writer: asyncio.StreamWriter) -> None:
    """Let the system find out about clients whose machine has gone."""
    with contextlib.suppress(OSError, AttributeError):
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
