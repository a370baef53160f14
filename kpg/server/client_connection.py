"""A connected client: its session, its outgoing messages and its interests.

The session decides, this class performs: it runs requests on the engine, queues messages, and continues interests of a
connection that was lost. All code here runs on the event loop's thread except the functions passed to `engine.run`.
"""

from __future__ import annotations

import itertools
import logging
import time
from collections import deque
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from kpg.errors import Closed, KpgError, Lagging, OverLimit, Stopped, TooManyRounds
from kpg.protocol import replies, requests
from kpg.protocol.error_messages import failure_of
from kpg.protocol.table_messages import columns_of
from kpg.server.change_payload import ChangePayload, QueryRows, row_messages
from kpg.server.flow_control import SendBudget
from kpg.server.outbox import Outbox, QueuedMessages
from kpg.server.request_handlers import NewInterest, RequestResult, canceled
from kpg.server.served_interests import ServedInterest
from kpg.server.server_log import log
from kpg.server.session import Action, AllowChanges, CloseConnection, ForgetSteps, RunRequest, SendMessage, Session
from kpg.server.step_history import HeldBytes, NumberedStep
from kpg.service import Service
from kpg.service.base_relations import ROWS_PER_PART, len_of

if TYPE_CHECKING:
    from kpg.server.hub import Hub

PERMANENT_FAILURES: Final = (Lagging, OverLimit, TooManyRounds, Stopped)  # an answer does not recover from these


class ClientConnection:
    """A connected client: its session, its outgoing messages and its interests."""

    def __init__(self, hub: Hub, session: Session) -> None:
        self.hub = hub
        self.session = session
        self.budget = SendBudget(hub.limits.waiting_bytes)
        self.outbox = Outbox(hub.limits.waiting_messages, self.budget)
        self._held: deque[requests.AnyRequest] = deque()  # a query that has to wait, and requests behind it
        self._reading = False  # whether a query is running
        self._writing = False  # whether a large transaction is running: while it pauses, later requests wait
        self.held = HeldBytes(hub.limits.hold_bytes)
        self.interests: dict[int, ServedInterest] = {}
        self.closing: CloseConnection | None = None

    def execute(self, actions: list[Action]) -> None:
        """Execute the actions that the session decided on."""
        for action in actions:
            match action:
                case SendMessage(message):
                    self.send(message)
                case RunRequest(request) if self.hub.is_ending:
                    self._finish(request, time.perf_counter(), Closed("the server is shutting down"))
                case RunRequest(requests.CancelCallRequest() as request):  # does not wait for what it cancels
                    self._run(request)
                case RunRequest(request):
                    self._held.append(request)
                    self._run_held()
                case AllowChanges(interest) if interest in self.interests:
                    self.hub.engine.take_when_changed(self.interests[interest].interest)
                case ForgetSteps(interest, step) if interest in self.interests:
                    self.interests[interest].history.forget(step)
                case CloseConnection():
                    self.closing = action
                    self.outbox.put(QueuedMessages(()))  # wakes the writer

    @property
    def has_requests(self) -> bool:
        """Whether a request has no reply yet, or a reply is not sent."""
        return bool(self.session.pending) or len(self.outbox) > 0

    def send(self, message: replies.AnyReply) -> None:
        """Queue one message."""
        self.outbox.put(QueuedMessages((message,)))

    def send_changes(self, served: ServedInterest, payload: ChangePayload) -> None:
        """Queue changes; the engine takes the interest's next ones after these are sent."""
        if isinstance(payload.failed, PERMANENT_FAILURES):
            self.finish_sending(payload.nbytes)
            self._end_interest(served, payload.failed)
        else:
            self._send_steps(served, [served.append(payload, self.hub.loop.time())])

    def _send_steps(self, served: ServedInterest, steps: list[NumberedStep]) -> None:
        """Queue steps of an interest as one group of messages; its budget counts them already."""
        number, nbytes = served.interest.id, sum(step.payload.nbytes for step in steps)
        self.session.mark_queued(number, len(steps))
        self.hub.metrics.add_change_rows(sum(len(step.payload.times) for step in steps))
        max_rows, began = self.hub.limits.message_rows, time.perf_counter()
        messages = itertools.chain.from_iterable(
            step.payload.messages(max_rows, step.number, served.is_reset(step)) for step in steps
        )

        def sent() -> None:
            self.hub.metrics.add_change(time.perf_counter() - began)
            self.finish_sending(nbytes)
            self.execute(self.session.mark_sent(number))

        self.outbox.put(QueuedMessages(messages, sent))

    def finish_sending(self, nbytes: int) -> None:
        """Count bytes that are no longer on their way; go on with what has waited for that."""
        if self.budget.remove(nbytes):
            self.hub.engine.wake()
        self.outbox.update_room()
        self._run_held()

    def _run_held(self) -> None:
        """Run requests in order. A query waits until the one before is finished and the budget is not full."""
        while self._held and not self._writing:
            is_read = returns_rows(self._held[0])
            if is_read and (self._reading or self.budget.is_full):
                return
            self._reading |= is_read
            self._writing = is_large_write(self._held[0])
            self._run(self._held.popleft())

    def _end_interest(self, served: ServedInterest, reason: KpgError) -> None:
        """Drop an interest that can get no further changes, and send the reason."""
        self.leave(served)
        self.send(replies.EndedMessage(served.interest.id, failure_of(reason)))
        self.hub.lost.end([served])

    def leave(self, served: ServedInterest) -> None:
        """Forget an interest that has ended, or that another connection continues."""
        self.interests.pop(served.interest.id, None)
        self.session.remove_interest(served.interest.id)

    def _run(self, request: requests.AnyRequest) -> None:
        """Run a request on the engine, and finish it on the event loop."""
        began = time.perf_counter()
        if isinstance(request, requests.CancelCallRequest):
            self._cancel_held(request.request)
        if isinstance(request, requests.UninterestRequest):  # changes that arrive after this are not sent
            self.interests.pop(request.interest, None)
            self.hub.served.remove(request.interest)
        try:
            if isinstance(request, requests.InterestRequest) and self._resume(request):
                self.hub.metrics.add_request(request.kind, "ok", time.perf_counter() - began)
                return
            future = self.hub.run_request(self.session.number, request, self.session.holder)
        except KpgError as error:
            self._finish(request, began, error)
            return
        future.add_done_callback(lambda done: self.hub.call_soon(self._finish, request, began, outcome(done)))

    def _cancel_held(self, number: int) -> None:
        """Refuse a query that has not begun, because another one of the session is not finished."""
        for request in [request for request in self._held if request_id(request) == number]:
            self._held.remove(request)
            self.execute(self.session.finish_request(request, canceled()))

    def _finish(self, request: requests.AnyRequest, began: float, result: RequestResult | BaseException) -> None:
        """Send the result of a request, unless the client has disconnected meanwhile."""
        if returns_rows(request):
            self._reading = False
        if is_large_write(request):
            self._writing = False
        failed, seconds = isinstance(result, BaseException), time.perf_counter() - began
        shown = type(result).__name__ if failed else "ok"
        self.hub.metrics.add_request(request.kind, shown, seconds)
        log(
            logging.INFO if failed else logging.DEBUG, "request",
            request=f"{self.session.number}-{request_id(request)}", type=request.kind,
            outcome=shown, seconds=round(seconds, 6),
        )  # fmt: skip
        if isinstance(result, ChangePayload):  # also after the end of the connection: a new one may continue
            self.hub.send_changes(result)
        if self.session.state == "closed":
            return
        match result:
            case QueryRows():
                self._send_rows(request, result)
            case NewInterest():
                self._add_interest(request, result)
            case ChangePayload():
                self.execute(
                    self.session.finish_request(request, replies.DoneReply(request_id(request), result.upto - 1))
                )
            case _:
                self.execute(self.session.finish_request(request, as_reply(result)))
        if isinstance(request, requests.ShutdownRequest) and not failed:
            self.hub.shutdown()
        self._run_held()

    def _send_rows(self, request: requests.AnyRequest, rows: QueryRows) -> None:
        """Queue the rows of a query as several messages, which finish the request; the budget counts them already."""
        self.session.finish_request(request, replies.DoneReply(request_id(request)))
        columns, max_rows = columns_of(rows.table.schema), self.hub.limits.message_rows
        pages = row_messages(request_id(request), rows, columns, max_rows)
        nbytes = rows.table.nbytes
        self.outbox.put(QueuedMessages(pages, lambda: self.finish_sending(nbytes)))

    def _add_interest(self, request: requests.AnyRequest, new: NewInterest) -> None:
        assert isinstance(request, requests.InterestRequest)
        served = self.hub.served.add(new.interest, request, new.reply, self, self.hub.limits.hold_seconds)
        self.interests[new.interest.id] = served
        self.execute(self.session.finish_request(request, new.reply))
        self.execute(self.session.add_interest(request, new.interest.id, request.sink is None))

    def _resume(self, request: requests.InterestRequest) -> bool:
        """Continue an interest that another connection has lost; return False if it is not held any more."""
        served = self.hub.served.find(request, self.session.holder)
        if served is None:
            return False
        if served.latest_session > self.session.number:  # the request was late: its client has given up on it
            raise Closed("a newer connection of the client has continued the interest")
        if served.client is not None:  # the server has not noticed yet that the connection is lost
            served.client.leave(served)
        self.hub.lost.release(served)
        steps = served.history.after(request.step)
        if steps is None:
            self.hub.lost.end([served])
            return False
        number = served.interest.id
        served.client, self.interests[number] = self, served
        served.latest_session = self.session.number
        served.history.move_to(self.held)

        def adopt(service: Service) -> None:
            service.adopt(served.interest, self.session.number)
            self.hub.engine.include_writes(service, self.session.number)

        self.hub.engine.run(adopt)
        self.hub.metrics.add("kpg_resumed_total")
        self.execute(self.session.finish_request(request, replace(served.reply, id=request.id, resumed=True)))
        allowed = self.session.add_interest(request, number, followed=True)
        if steps:
            self.budget.add(sum(step.payload.nbytes for step in steps))
            self._send_steps(served, steps)
        else:
            self.execute(allowed)
        return True

    def close(self, lost: bool = False) -> None:
        """Drop everything of a client that has disconnected. If its connection was lost, hold interests with a key."""
        log(logging.INFO, "session ends", session=self.session.number, interests=len(self.interests))
        lost = lost and self.session.state == "open"
        self.session.close()
        self.hub.clients.pop(self.session.number, None)
        kept = [served for served in self.interests.values() if lost and served.key is not None]
        ended = [served.interest.id for served in self.interests.values() if served not in kept]
        self.interests.clear()
        self._held.clear()
        for interest in ended:
            self.hub.served.remove(interest)
        with suppress(Closed):
            self.hub.lost.hold(kept, self.held)
        self.hub.drop_owner(self.session.number, ended)


def is_large_write(request: requests.AnyRequest) -> bool:
    """Return whether a request pauses in the middle of a write."""
    return isinstance(request, requests.TransactRequest) and len_of(request.changes) > ROWS_PER_PART


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
