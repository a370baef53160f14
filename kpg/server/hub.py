"""Connects sessions with the engine: requests go to its thread, results and changes come back to the event loop.

A server has one `Hub` and one `ClientConnection` per client. All code here runs on the event loop's thread except the
functions passed to `engine.run`. When a client disconnects, its pending requests are dropped, and its interests too;
those with a key are held for a while if the connection was lost. Other clients are not affected.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

from kpg.errors import Closed
from kpg.observe.metrics import as_prometheus, snapshot
from kpg.protocol import requests
from kpg.protocol.message_codec import encode_result
from kpg.protocol.replies import AnyReply, CatalogReply
from kpg.server.change_payload import ChangePayload, QueryRows
from kpg.server.client_connection import PERMANENT_FAILURES, ClientConnection
from kpg.server.engine_thread import EngineThread
from kpg.server.flow_control import SendBudget
from kpg.server.lost_sessions import LostSessions
from kpg.server.request_handlers import RequestContext, RequestResult, handle_request, label_of
from kpg.server.served_interests import ServedInterest, ServedInterests
from kpg.server.server_log import log
from kpg.server.server_metrics import ServerMetrics
from kpg.server.server_tables import RunningRequests, ServerTables
from kpg.server.session import Session
from kpg.server.session_limits import SessionLimits
from kpg.server.tokens import TokenHolder, Tokens
from kpg.service import Service

HTTP_OWNER: Final = 0  # in the ids of HTTP requests
RELATIONS_PER_PART: Final = 100  # of a catalogue that the event loop writes as text: less than a millisecond
DRAIN_POLL_SECONDS: Final = 0.01  # between two looks at the requests under way when the server ends


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
        self.running = RunningRequests()
        self.tables = ServerTables(self)
        self.clients: dict[int, ClientConnection] = {}  # by session number
        self.sql_sessions: dict[int, TokenHolder] = {}  # the connections of PostgreSQL's protocol
        self.shutdown = shutdown
        self.is_ending = False  # requests under way are finished, others refused
        self.loop = loop
        self.decoder = ThreadPoolExecutor(1, "kpg-decoder")  # decodes large messages, while the loop serves others
        self._session_numbers = itertools.count(1)
        self._http_numbers = itertools.count(1)
        self.served = ServedInterests()
        self.engine = EngineThread(make, lambda payloads: self.call_soon(self._send_changes, payloads), self._budget_of)
        self.lost = LostSessions(self.engine, self.served, limits, loop)

    def call_soon(self, function: Callable[..., object], *arguments: Any) -> None:
        """Call a function on the event loop's thread."""
        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(function, *arguments)

    async def written(self, write: Callable[[AnyReply], str], message: AnyReply) -> str:
        """Return a message as text; a long catalogue is written in parts, between which the loop serves others."""
        if not (isinstance(message, CatalogReply) and len(message.relations) > RELATIONS_PER_PART):
            return write(message)
        parts = []
        for first in range(0, len(message.relations), RELATIONS_PER_PART):
            parts.append(encode_result(message.relations[first : first + RELATIONS_PER_PART])[1:-1])
            await asyncio.sleep(0)
        return write(replace(message, relations=())).replace("[]", f"[{','.join(parts)}]", 1)

    def connect(self) -> ClientConnection:
        """Add a client. It takes the place of the oldest lost session if there are too many."""
        if self.lost and self.session_count + len(self.lost) >= self.limits.sessions:
            self.lost.drop_oldest()
        client = ClientConnection(self, Session(next(self._session_numbers), self.tokens, self.limits))
        self.clients[client.session.number] = client
        self.metrics.add("kpg_sessions_total")
        log(logging.INFO, "session begins", session=client.session.number)
        return client

    def next_http_id(self) -> str:
        """Return the id of an HTTP request."""
        return f"{HTTP_OWNER}-{next(self._http_numbers)}"

    async def finish_requests(self, timeout_seconds: float) -> None:
        """Refuse new requests, and wait until those under way are finished and sent, or a timeout has passed.

        Requests that wait for an answer to be computed fail at once: that may take any time.
        """
        self.is_ending = True
        self.engine.end_work()
        end = time.monotonic() + timeout_seconds
        while time.monotonic() < end and any(client.has_requests for client in self.clients.values()):
            await asyncio.sleep(DRAIN_POLL_SECONDS)
        unfinished = sum(client.has_requests for client in self.clients.values())
        if unfinished:
            log(logging.WARNING, "the server ends before all requests are finished", sessions=unfinished)

    @property
    def session_count(self) -> int:
        """The number of sessions, of all protocols."""
        return len(self.clients) + len(self.sql_sessions)

    def open_sql_session(self, holder: TokenHolder | None) -> int:
        """Return the number of a new connection of PostgreSQL's protocol."""
        number = next(self._session_numbers)
        self.sql_sessions[number] = holder or TokenHolder("admin")  # no token is needed
        self.metrics.add("kpg_sessions_total")
        log(logging.INFO, "session begins", session=number, protocol="pg")
        return number

    def close_sql_session(self, number: int) -> None:
        """Drop everything of a connection of PostgreSQL's protocol."""
        self.sql_sessions.pop(number, None)
        log(logging.INFO, "session ends", session=number, protocol="pg")
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
        """Pass changes to their clients."""
        for payload in payloads:
            self.send_changes(payload)

    def send_changes(self, payload: ChangePayload) -> None:
        """Pass a step to its client, or keep it if the client has lost its connection."""
        taken_for = self.clients.get(payload.owner)  # its budget counts the step
        served = self.served.by_number.get(payload.interest)
        client = None if served is None else served.client
        if taken_for is not None and taken_for is not client:  # it has ended the interest, or another connection has it
            taken_for.finish_sending(payload.nbytes)
        if served is None:
            return
        if client is None:
            self._keep_changes(served, payload)
            return
        if taken_for is not client:
            client.budget.add(payload.nbytes)
        client.send_changes(served, payload)

    def _keep_changes(self, served: ServedInterest, payload: ChangePayload) -> None:
        """Keep a step of a client that has lost its connection."""
        if isinstance(payload.failed, PERMANENT_FAILURES):  # the client asks again, and gets the reason then
            self.lost.release(served)
            self.lost.end([served])
        else:
            served.append(payload, self.loop.time())

    def run_request(self, owner: int, request: requests.AnyRequest, holder: TokenHolder) -> Future[RequestResult]:
        """Run a request on the engine; one with `as_of` waits until that time is complete."""

        def work(service: Service) -> RequestResult:
            context = RequestContext(service, self.engine, owner, self.limits.rows, holder, self.tables)
            result = handle_request(context, request)
            budget = self._budget_of(owner) if isinstance(result, QueryRows) else None
            if budget is not None and isinstance(result, QueryRows):  # before another read of the client begins
                budget.add(result.table.nbytes)
            return result

        number = getattr(request, "id", 0)
        label, moment = label_of(owner, number), getattr(request, "as_of", None)
        if moment is None:
            future = self.engine.run(work, owner, label)
        else:
            future = self.engine.run_as_of(moment, self.limits.wait_seconds, work, owner, label)
        text = getattr(request, "text", None) or getattr(request, "name", None) or ""
        running = self.running.begin(owner, number, request.kind, text)
        future.add_done_callback(lambda done: self.running.end(running))
        return future

    async def prometheus_text(self) -> str:
        """Return the metrics of the server and the engine in Prometheus' text format."""
        gauges, engine_metrics = await asyncio.wrap_future(
            self.engine.run(lambda service: (service_gauges(service), snapshot(service.db)))
        )
        gauges["kpg_sessions"] = self.session_count
        gauges["kpg_lost_sessions"] = len(self.lost)
        gauges["kpg_waiting_messages"] = sum(len(client.outbox) for client in self.clients.values())
        metrics = [*self.metrics.snapshot(gauges), *engine_metrics]
        return await asyncio.to_thread(as_prometheus, metrics)  # takes milliseconds if there are many dataflows


def service_gauges(service: Service) -> dict[str, float]:
    """Return the gauges of a service."""
    return {
        "kpg_interests": len(service.interests),
        "kpg_rules": len(service.rules.names()),
        "kpg_relations": len(service.catalog.relations),
    }
