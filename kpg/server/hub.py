"""Connects sessions with the engine: requests go to its thread, results and changes come back to the event loop.

A server has one `Hub` and one `ClientConnection` per client. All code here runs on the event loop's thread except the
functions passed to `engine.run`. When a client disconnects, its interests and pending requests are dropped; other
clients are not affected.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Final

from kpg.errors import Closed, KpgError, Lagging, OverLimit, TooManyRounds
from kpg.observe.metrics import as_prometheus, snapshot
from kpg.protocol import replies, requests
from kpg.protocol.error_messages import failure_of
from kpg.protocol.table_messages import columns_of
from kpg.server.change_payload import ChangePayload, row_messages
from kpg.server.engine_thread import EngineThread
from kpg.server.flow_control import SendBudget
from kpg.server.outbox import Outbox, QueuedMessages
from kpg.server.request_handlers import NewInterest, QueryRows, RequestContext, RequestResult, handle_request
from kpg.server.server_metrics import ServerMetrics
from kpg.server.session import Action, AllowChanges, CloseConnection, RunRequest, SendMessage, Session
from kpg.server.session_limits import SessionLimits
from kpg.server.tokens import TokenHolder, Tokens
from kpg.service import Interest, Service

PERMANENT_FAILURES: Final = (Lagging, OverLimit, TooManyRounds)  # an answer does not recover from these
HTTP_OWNER: Final = 0  # HTTP requests have no session


class Hub:
    """The engine and the connected clients."""

    def __init__(
        self,
        make: Callable[[], Service],
        tokens: Tokens,
        limits: SessionLimits,
        loop: asyncio.AbstractEventLoop,
        shutdown: Callable[[], None],
    ) -> None:
        self.tokens = tokens
        self.limits = limits
        self.metrics = ServerMetrics()
        self.clients: dict[int, ClientConnection] = {}  # by session number
        self.sql_sessions: set[int] = set()  # numbers of the connections of PostgreSQL's protocol
        self.shutdown = shutdown
        self.loop = loop
        self._session_numbers = itertools.count(1)
        self.engine = EngineThread(make, lambda payloads: self.call_soon(self._send_changes, payloads), self._budget_of)

    def call_soon(self, function: Callable[..., object], *arguments: Any) -> None:
        """Call a function on the event loop's thread."""
        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(function, *arguments)

    def connect(self) -> ClientConnection:
        """Add a client."""
        client = ClientConnection(self, Session(next(self._session_numbers), self.tokens, self.limits))
        self.clients[client.session.number] = client
        self.metrics.add("kpg_sessions_total")
        return client

    @property
    def session_count(self) -> int:
        """The number of sessions, of all protocols."""
        return len(self.clients) + len(self.sql_sessions)

    def open_sql_session(self) -> int:
        """Return the number of a new connection of PostgreSQL's protocol."""
        number = next(self._session_numbers)
        self.sql_sessions.add(number)
        self.metrics.add("kpg_sessions_total")
        return number

    def close_sql_session(self, number: int) -> None:
        """Drop everything of a connection of PostgreSQL's protocol."""
        self.sql_sessions.discard(number)
        self.drop_owner(number, [])

    def drop_owner(self, number: int, interests: list[int]) -> None:
        """Drop what a session has on the engine."""

        def drop(service: Service) -> None:
            self.engine.cancel(number)
            service.drop_owner(number)
            for interest in interests:
                self.engine.forget(interest)

        with suppress(Closed):
            self.engine.run(drop)

    def _budget_of(self, owner: int) -> SendBudget | None:
        """Return the budget of a client; called on the engine's thread."""
        client = self.clients.get(owner)
        return None if client is None else client.budget

    def _send_changes(self, payloads: list[ChangePayload]) -> None:
        """Pass changes to their clients; those of disconnected clients are discarded."""
        for payload in payloads:
            client = self.clients.get(payload.owner)
            if client is not None:
                client.send_changes(payload)

    def run_request(
        self, owner: int, request: requests.AnyRequest, holder: TokenHolder, timeout_seconds: float | None = None
    ) -> Future[RequestResult]:
        """Run a request on the engine; one with `as_of` waits until that time is complete."""

        def work(service: Service) -> RequestResult:
            return handle_request(RequestContext(service, self.engine, owner, self.limits.rows, holder), request)

        moment = getattr(request, "as_of", None)
        if moment is None:
            return self.engine.run(work, owner)
        return self.engine.run_as_of(
            moment, self.limits.wait_seconds if timeout_seconds is None else timeout_seconds, work, owner
        )

    async def query(self, request: requests.QueryRequest, holder: TokenHolder) -> QueryRows:
        """Run a query over HTTP. It waits less than `greeting_seconds`: the listener then ends the connection."""
        timeout_seconds = min(self.limits.wait_seconds, self.limits.greeting_seconds / 2)
        rows = await asyncio.wrap_future(self.run_request(HTTP_OWNER, request, holder, timeout_seconds))
        assert isinstance(rows, QueryRows)
        return rows

    async def prometheus_text(self) -> str:
        """Return the metrics of the server and the engine in Prometheus' text format."""
        gauges, engine_metrics = await asyncio.wrap_future(
            self.engine.run(lambda service: (service_gauges(service), snapshot(service.db)))
        )
        gauges["kpg_sessions"] = self.session_count
        gauges["kpg_waiting_messages"] = sum(len(client.outbox) for client in self.clients.values())
        metrics = [*self.metrics.snapshot(gauges), *engine_metrics]
        return await asyncio.to_thread(as_prometheus, metrics)  # takes milliseconds if there are many dataflows


def service_gauges(service: Service) -> dict[str, float]:
    """Return the gauges of a service."""
    rules = len(service.rules.names())
    return {
        "kpg_interests": len(service.interests),
        "kpg_rules": rules,
        "kpg_relations": len(service.relations()) - rules,
    }


class ClientConnection:
    """A connected client: its session, its outgoing messages and its interests."""

    def __init__(self, hub: Hub, session: Session) -> None:
        self.hub = hub
        self.session = session
        self.budget = SendBudget(hub.limits.waiting_bytes)
        self.outbox = Outbox(hub.limits.waiting_messages, self.budget)
        self._held: deque[requests.AnyRequest] = deque()  # a query that has to wait, and requests behind it
        self._reading = False  # whether a query is running
        self.interests: dict[int, Interest] = {}
        self.closing: CloseConnection | None = None

    def execute(self, actions: list[Action]) -> None:
        """Execute the actions that the session decided on."""
        for action in actions:
            match action:
                case SendMessage(message):
                    self.send(message)
                case RunRequest(request):
                    self._held.append(request)
                    self._run_held()
                case AllowChanges(interest) if interest in self.interests:
                    self.hub.engine.take_when_changed(self.interests[interest])
                case CloseConnection():
                    self.closing = action
                    self.outbox.put(QueuedMessages(()))  # wakes the writer

    def send(self, message: replies.AnyReply) -> None:
        """Queue one message."""
        self.outbox.put(QueuedMessages((message,)))

    def send_changes(self, payload: ChangePayload) -> None:
        """Queue changes; the engine takes the interest's next ones after these are sent."""
        if payload.interest not in self.interests:
            self._finish_sending(payload.nbytes)
            return
        if isinstance(payload.failed, PERMANENT_FAILURES):
            self._finish_sending(payload.nbytes)
            self._end_interest(payload.interest, payload.failed)
            return
        self.session.mark_queued(payload.interest)
        self.hub.metrics.add("kpg_change_rows_total", len(payload.times))
        messages = payload.messages(self.hub.limits.message_rows)

        def sent() -> None:
            self._finish_sending(payload.nbytes)
            self.execute(self.session.mark_sent(payload.interest))

        self.outbox.put(QueuedMessages(messages, sent))

    def _finish_sending(self, nbytes: int) -> None:
        """Count bytes that are no longer on their way; go on with what has waited for that."""
        if self.budget.remove(nbytes):
            self.hub.engine.wake()
        self.outbox.update_room()
        self._run_held()

    def _run_held(self) -> None:
        """Run requests in order. A query waits until the one before is finished and the budget is not full."""
        while self._held:
            is_read = returns_rows(self._held[0])
            if is_read and (self._reading or self.budget.is_full):
                return
            self._reading |= is_read
            self._run(self._held.popleft())

    def _end_interest(self, number: int, reason: KpgError) -> None:
        """Drop an interest that can get no further changes, and send the reason."""
        interest = self.interests.pop(number)
        self.session.remove_interest(number)
        self.send(replies.EndedMessage(number, failure_of(reason)))

        def drop(service: Service) -> None:
            self.hub.engine.forget(number)
            service.uninterest(interest)

        self.hub.engine.run(drop)

    def _run(self, request: requests.AnyRequest) -> None:
        """Run a request on the engine, and finish it on the event loop."""
        began = time.perf_counter()
        if isinstance(request, requests.UninterestRequest):
            self.interests.pop(request.interest, None)  # changes that arrive after this are not sent
        try:
            future = self.hub.run_request(self.session.number, request, self.session.holder)
        except KpgError as error:
            self._finish(request, began, error)
            return
        future.add_done_callback(lambda done: self.hub.call_soon(self._finish, request, began, outcome(done)))

    def _finish(self, request: requests.AnyRequest, began: float, result: RequestResult | BaseException) -> None:
        """Send the result of a request, unless the client has disconnected meanwhile."""
        if returns_rows(request):
            self._reading = False
        failed = isinstance(result, BaseException)
        self.hub.metrics.add_request(
            request.kind, type(result).__name__ if failed else "ok", time.perf_counter() - began
        )
        if self.session.state == "closed":
            return
        match result:
            case QueryRows():
                self._send_rows(request, result)
            case NewInterest():
                self._add_interest(request, result)
            case ChangePayload():
                self.budget.add(result.nbytes)
                self.send_changes(result)
                self.execute(
                    self.session.finish_request(request, replies.DoneReply(request_id(request), result.upto - 1))
                )
            case _:
                self.execute(self.session.finish_request(request, as_reply(result)))
        if isinstance(request, requests.ShutdownRequest) and not failed:
            self.hub.shutdown()
        self._run_held()

    def _send_rows(self, request: requests.AnyRequest, rows: QueryRows) -> None:
        """Queue the rows of a query as several messages, which finish the request."""
        self.session.finish_request(request, replies.DoneReply(request_id(request)))
        columns, max_rows = columns_of(rows.table.schema), self.hub.limits.message_rows
        pages = row_messages(request_id(request), rows.table, columns, rows.time, max_rows, rows.cut, rows.tag)
        nbytes = rows.table.nbytes
        self.budget.add(nbytes)
        self.outbox.put(QueuedMessages(pages, lambda: self._finish_sending(nbytes)))

    def _add_interest(self, request: requests.AnyRequest, new: NewInterest) -> None:
        assert isinstance(request, requests.InterestRequest)
        self.interests[new.interest.id] = new.interest
        self.execute(self.session.finish_request(request, new.reply))
        self.execute(self.session.add_interest(request, new.interest.id, request.sink is None))

    def close(self) -> None:
        """Drop everything of a client that has disconnected."""
        self.session.close()
        self.hub.clients.pop(self.session.number, None)
        interests = list(self.interests)
        self.interests.clear()
        self._held.clear()
        self.hub.drop_owner(self.session.number, interests)


def returns_rows(request: requests.AnyRequest) -> bool:
    """Return whether the reply is rows as of now: many of them, computed before the client has read the last ones."""
    if isinstance(request, requests.QueryRequest):
        return request.as_of is None
    return isinstance(request, requests.SqlRequest)


def outcome(done: Future[Any]) -> Any:
    """Return the result of a future, or its exception."""
    return done.exception() or done.result()


def as_reply(result: Any) -> replies.AnyReply | KpgError:
    """Return a result as the session takes it; an internal error is reduced to the name of its class."""
    if isinstance(result, BaseException) and not isinstance(result, KpgError):
        return KpgError(f"the server failed ({type(result).__name__})", hint="See the server's log.")
    return result  # type: ignore[no-any-return]


def request_id(request: requests.AnyRequest) -> int:
    """Return the id of a request, or 0 if it has none."""
    return int(getattr(request, "id", 0))
