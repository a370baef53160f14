"""Runs the statements of one connection on the service, and keeps what the connection must know of its session.

    runner.status                     I outside a transaction, T inside, E if it has failed
    await runner.call(function)       run a function of the SQL session, until the client disconnects or cancels
    await runner.fetch(statement)     FETCH: waits for the next change of a subscription, up to its timeout

A call that fails inside a transaction makes the transaction fail, as in PostgreSQL.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

from kpg.errors import Closed, KpgError, TimeNotReached
from kpg.pgwire.sql_backend import SqlBackend
from kpg.pgwire.wire_channel import ConnectionEnded
from kpg.service import Service
from kpg.sql.parse.sql_statements import FetchStatement
from kpg.sql.session.query_result import QueryResult
from kpg.sql.session.sql_session import SqlSession
from kpg.sql.sql_states import QUERY_CANCELED, with_sqlstate

Result = TypeVar("Result")
MAX_TIMEOUT_SECONDS: Final = 86_400.0
ADMIN_SHUTDOWN: Final = "57P01"
SHUTTING_DOWN: Final = "terminating connection because the server is shutting down"


class StatementRunner:
    """The SQL session of one connection."""

    def __init__(self, backend: SqlBackend, number: int, holder: Any, lost: asyncio.Event) -> None:
        self._backend = backend
        self._number = number
        self._holder = holder
        self._lost = lost
        self._cancelled = asyncio.Event()
        self._running = False
        self.status = "I"
        self.text = ""  # of the last statement
        self.settings: dict[str, str] = {}  # as SHOW prints them
        self.statement_seconds: float | None = None

    def require_accepting(self) -> None:
        """Raise if the server shuts down: it accepts no statement any more."""
        if self._backend.is_ending:
            raise with_sqlstate(ADMIN_SHUTDOWN, Closed(SHUTTING_DOWN))

    def cancel(self) -> None:
        """Cancel the statement that runs now, if there is one."""
        if self._running:
            self._cancelled.set()
            self._backend.cancel(self._number)

    async def call(self, function: Callable[[SqlSession], Result]) -> Result:
        """Run a function of the session."""
        return await self._guarded(self._backend.run(self._number, self._holder, self.text, self._work(function)))

    async def execute(self, statement: Any, parameters: dict[str, Any]) -> QueryResult:
        """Execute one statement."""
        if isinstance(statement, FetchStatement):
            return await self.fetch(statement)
        result = await self.call(lambda session: session.execute_one(statement, parameters))
        assert isinstance(result, QueryResult)
        return result

    async def fetch(self, statement: FetchStatement) -> QueryResult:
        """Execute FETCH; wait for the first row up to its timeout."""

        def take(session: SqlSession) -> tuple[QueryResult, int]:
            result = session.execute_one(statement, {})
            assert isinstance(result, QueryResult)
            return result, session.db.epoch

        deadline = time.monotonic() + min(statement.timeout, MAX_TIMEOUT_SECONDS)
        result, epoch = await self.call(take)
        while not len(result) and not result.tag.startswith("MOVE") and (wait := deadline - time.monotonic()) > 0:
            waiting = self._backend.run_after_epoch(
                self._number, self._holder, self.text, epoch, wait, self._work(take)
            )
            try:
                result, epoch = await self._guarded(waiting, interrupts_wait=True)
            except TimeNotReached:
                break
        return result

    def _work(self, function: Callable[[SqlSession], Result]) -> Callable[[Service], Result]:
        """Return a function of the service that keeps the state of the session up to date."""

        def within(session: SqlSession) -> Result:
            try:
                return function(session)
            except KpgError:
                if session.transaction is not None:
                    session.transaction.failed = True
                raise
            finally:
                transaction = session.transaction
                self.status = "I" if transaction is None else "E" if transaction.failed else "T"
                self.settings = session.client_settings.shown()
                self.statement_seconds = session.client_settings.statement_seconds

        return lambda service: service.within_sql(self._number, within)

    async def _guarded(self, work: Coroutine[Any, Any, Result], *, interrupts_wait: bool = False) -> Result:
        """Wait for work; end it if the client disconnects or cancels, or its time is over.

        Work that waits for an epoch is dropped at once. Other work ends where the engine can stop it.
        """
        self._cancelled.clear()
        self._running = True
        task = asyncio.ensure_future(work)
        watchers = [asyncio.ensure_future(self._lost.wait())]
        if interrupts_wait:
            watchers.append(asyncio.ensure_future(self._cancelled.wait()))
        try:
            await asyncio.wait([task, *watchers], timeout=self.statement_seconds, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return task.result()
            if self._lost.is_set():
                raise ConnectionEnded
            reason = "user request" if self._cancelled.is_set() else "statement timeout"
            if not interrupts_wait:
                self._backend.cancel(self._number)
                await asyncio.wait([task])
                if task.exception() is None:
                    return task.result()
            raise with_sqlstate(QUERY_CANCELED, Closed(f"canceling statement due to {reason}"))
        finally:
            self._running = False
            for waiter in (task, *watchers):
                waiter.cancel()
