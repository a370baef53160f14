"""Where sessions meet the engine: requests go to its thread, results and changes come back to the event loop.

One `Hub` a server, one `Connected` a client. Everything here runs on the event loop's thread except what is inside
`engine.run(...)`. When a client goes, whatever it asked for and followed is dropped; nobody else notices.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any, Final

from kpg.errors import Closed, KpgError, OverLimit, TooManyRounds
from kpg.observe.metrics import as_prometheus, snapshot
from kpg.protocol import replies, requests
from kpg.protocol.error_messages import failure_of
from kpg.protocol.table_messages import columns_of
from kpg.server.change_payload import ChangePayload, pages
from kpg.server.engine_thread import EngineThread
from kpg.server.metrics import Metrics
from kpg.server.outbox import Outbox, QueuedMessages
from kpg.server.request_handlers import Following, Found, Result, perform
from kpg.server.session import Allow, Ask, Hang, Say, Session, Step
from kpg.server.session_limits import SessionLimits
from kpg.server.tokens import Tokens
from kpg.service import Interest, Service

FINAL: Final = (OverLimit, TooManyRounds)  # failures of an answer that never heal


class Hub:
    """The engine, and who is connected."""

    def __init__(
        self,
        make: Callable[[], Service],
        tokens: Tokens,
        allowance: SessionLimits,
        loop: asyncio.AbstractEventLoop,
        shutdown: Callable[[], None],
    ) -> None:
        self.tokens = tokens
        self.allowance = allowance
        self.metrics = Metrics()
        self.connected: dict[int, Connected] = {}
        self.shutdown = shutdown
        self.loop = loop
        self._numbers = itertools.count(1)
        self.engine = EngineThread(make, lambda parcels: self.soon(self._hand_on, parcels))

    def soon(self, function: Callable[..., object], *arguments: Any) -> None:
        """Have something called on the event loop's thread."""
        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(function, *arguments)

    def connect(self) -> Connected:
        """A new client."""
        made = Connected(self, Session(next(self._numbers), self.tokens, self.allowance))
        self.connected[made.session.number] = made
        self.metrics.add("kpg_sessions_total")
        return made

    def _hand_on(self, parcels: list[ChangePayload]) -> None:
        """Give changes to the clients they are for; of those who have gone nothing is left."""
        for parcel in parcels:
            client = self.connected.get(parcel.owner)
            if client is not None:
                client.changed(parcel)

    async def query(self, request: requests.QueryRequest) -> Found:
        """An answer for somebody without a session, whose connection is cut when `greeting_seconds` have passed."""
        patience = min(self.allowance.wait_seconds, self.allowance.greeting_seconds / 2)
        found = await asyncio.wrap_future(self.run_query(0, request, patience))
        assert isinstance(found, Found)
        return found

    def run_query(self, owner: int, request: requests.QueryRequest, patience: float) -> Future[Result]:
        """Ask; a read as of a time waits for it, so many seconds."""
        work = partial(perform, owner=owner, request=request, rows=self.allowance.rows)
        if request.as_of is not None:
            return self.engine.run_at(request.as_of, patience, work)
        return self.engine.run(work)

    async def figures(self) -> str:
        """What the server counts and what the engine holds, for a monitor."""
        gauges = await self.gauges()
        held = await asyncio.wrap_future(self.engine.run(lambda service: as_prometheus(snapshot(service.db))))
        return self.metrics.text(gauges) + held

    async def gauges(self) -> dict[str, float]:
        """What is measured now."""
        found = await asyncio.wrap_future(self.engine.run(counted))
        waiting = sum(len(client.outbox) for client in self.connected.values())
        return found | {
            "kpg_sessions": len(self.connected),
            "kpg_waiting_messages": waiting,
        }


def counted(service: Service) -> dict[str, float]:
    """What the service holds."""
    rules = len(service.rules.names())
    return {
        "kpg_interests": len(service.interests),
        "kpg_rules": rules,
        "kpg_relations": len(service.known()) - rules,
    }


class Connected:
    """A client: its session, what waits to be sent to it, and the interests it has."""

    def __init__(self, hub: Hub, session: Session) -> None:
        self.hub = hub
        self.session = session
        self.outbox = Outbox(hub.allowance.waiting_messages)
        self.interests: dict[int, Interest] = {}
        self.hanging: Hang | None = None

    def do(self, steps: list[Step]) -> None:
        """Take the steps that the session decided on."""
        for step in steps:
            match step:
                case Say(message):
                    self.say(message)
                case Ask(request):
                    self._ask(request)
                case Allow(interest) if interest in self.interests:
                    self.hub.engine.allow(self.interests[interest])
                case Hang():
                    self.hanging = step
                    self.outbox.put(QueuedMessages(()))

    def say(self, message: replies.AnyReply) -> None:
        """Send one message."""
        self.outbox.put(QueuedMessages((message,)))

    def changed(self, parcel: ChangePayload) -> None:
        """Send changes; the interest is taken again when they are on their way."""
        if parcel.interest not in self.interests:
            return
        if isinstance(parcel.failed, FINAL):
            self._end(parcel.interest, parcel.failed)
            return
        self.session.queued(parcel.interest)
        self.hub.metrics.add("kpg_change_rows_total", len(parcel.times))
        batch = QueuedMessages(parcel.messages(self.hub.allowance.message_rows), partial(self._sent, parcel.interest))
        self.outbox.put(batch)

    def _end(self, number: int, reason: KpgError) -> None:
        """No more will come of an interest: drop it and say why."""
        interest = self.interests.pop(number)
        self.session.ended(number)
        self.say(replies.EndedMessage(number, failure_of(reason)))

        def drop(service: Service) -> None:
            self.hub.engine.forget(number)
            service.uninterest(interest)

        self.hub.engine.run(drop)

    def _sent(self, interest: int) -> None:
        self.do(self.session.sent(interest))

    def _ask(self, request: requests.AnyRequest) -> None:
        began = time.perf_counter()
        try:
            future = self._submit(request)
        except KpgError as error:
            self._answer(request, began, error)
            return
        future.add_done_callback(lambda done: self.hub.soon(self._answer, request, began, outcome(done)))

    def _submit(self, request: requests.AnyRequest) -> Future[Any]:
        owner, engine = self.session.number, self.hub.engine
        if isinstance(request, requests.QueryRequest):
            return self.hub.run_query(owner, request, self.hub.allowance.wait_seconds)
        if isinstance(request, requests.TakeRequest) and request.interest in self.interests:
            interest = self.interests[request.interest]
            return engine.run(lambda service: engine.take(interest))
        if isinstance(request, requests.UninterestRequest):
            self.interests.pop(request.interest, None)
            engine.run(lambda service: engine.forget(request.interest))
        return engine.run(partial(perform, owner=owner, request=request, rows=self.hub.allowance.rows))

    def _answer(
        self, request: requests.AnyRequest, began: float, result: Result | ChangePayload | BaseException
    ) -> None:
        """A request is done; the client may have gone meanwhile."""
        failed = isinstance(result, BaseException)
        self.hub.metrics.took(request.kind, time.perf_counter() - began)
        self.hub.metrics.add(
            "kpg_requests_total", type=request.kind, outcome=type(result).__name__ if failed else "ok"
        )  # fmt: skip
        if self.session.state == "closed":
            return
        if isinstance(result, Found):
            self._page(request, result)
        elif isinstance(result, Following):
            self._follow(request, result)
        elif isinstance(result, ChangePayload):
            self.changed(result)
            self.do(self.session.answered(request, replies.DoneReply(request_id(request), result.upto - 1)))
        else:
            self.do(self.session.answered(request, as_reply(result)))
        if isinstance(request, requests.ShutdownRequest) and not failed:
            self.hub.shutdown()

    def _page(self, request: requests.AnyRequest, found: Found) -> None:
        """Send rows, page by page; the request is done with the last."""
        self.session.answered(request, replies.DoneReply(request_id(request)))
        columns, rows = columns_of(found.table.schema), self.hub.allowance.message_rows
        self.outbox.put(QueuedMessages(pages(request_id(request), found.table, columns, found.time, rows, found.cut)))

    def _follow(self, request: requests.AnyRequest, following: Following) -> None:
        assert isinstance(request, requests.InterestRequest)
        self.interests[following.interest.id] = following.interest
        self.do(self.session.answered(request, following.reply))
        self.do(self.session.interested(request, following.interest.id, request.sink is None))

    def close(self) -> None:
        """The client has gone: drop all that was its."""
        self.session.close()
        self.hub.connected.pop(self.session.number, None)
        gone = list(self.interests)
        self.interests.clear()

        def drop(service: Service) -> None:
            service.drop_owner(self.session.number)
            for interest in gone:
                self.hub.engine.forget(interest)

        try:
            self.hub.engine.run(drop)
        except Closed:
            return


def outcome(done: Future[Any]) -> Any:
    """The result of a future, or its error."""
    return done.exception() or done.result()


def as_reply(result: Any) -> replies.AnyReply | KpgError:
    """A result as the session takes it; an error that is not kpg's says only what kind it is."""
    if isinstance(result, BaseException) and not isinstance(result, KpgError):
        return KpgError(f"the server failed ({type(result).__name__})", hint="Its log says more.")
    return result  # type: ignore[no-any-return]


def request_id(request: requests.AnyRequest) -> int:
    """The id of a request that has one."""
    return int(getattr(request, "id", 0))
