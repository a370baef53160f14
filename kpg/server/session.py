"""One client's side of the conversation as a state machine: messages in, actions out; no sockets, clock or engine.

    handshake  --hello with a good token-->  open  --close-->  closed

`receive` takes a message and returns the actions it requires: send a message, run a request, close the connection. The
engine's results come back through `finish_request`. The session guarantees, for any input in any order:

    - it requests nothing of the engine before a good hello, nor after it has closed the connection;
    - each request gets exactly one final reply with its own id (`rows` with `more` are not final);
    - only an admin's session runs an admin's requests, and no session uses another session's interest;
    - bad input leads to an error message to the client, and never to an exception.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Final, Literal

from kpg.errors import InputError, KpgError, NotAuthorised, ProtocolError, ResourceError, UndefinedName
from kpg.protocol.error_messages import failure_of
from kpg.protocol.message_codec import decode, identify
from kpg.protocol.messages import VERSION
from kpg.protocol.replies import AnyReply, ErrorReply, RowsReply, WelcomeReply
from kpg.protocol.requests import (
    REQUESTS,
    AckRequest,
    AnyRequest,
    HelloRequest,
    InterestRequest,
    RegisterRequest,
    Request,
    UninterestRequest,
)
from kpg.server.flow_control import FlowControl
from kpg.server.session_limits import SessionLimits, over_limit
from kpg.server.tokens import Role, TokenHolder, Tokens
from kpg.version import __version__

MAX_HELLO_CHARACTERS: Final = 10_000  # limit before authentication
MAX_LOOP_CHARACTERS: Final = 1 << 16  # of a message that the event loop decodes: a few milliseconds without other work
WAIT_HINT: Final = "Wait for replies first."
WRONG_DATA, POLICY, TOO_BIG = 1003, 1008, 1009  # close codes of WebSocket


@dataclass(frozen=True, slots=True)
class SendMessage:
    """Send a message to the client."""

    message: AnyReply


@dataclass(frozen=True, slots=True)
class RunRequest:
    """Run a request on the engine, and pass its result to `finish_request`."""

    request: AnyRequest


@dataclass(frozen=True, slots=True)
class AllowChanges:
    """Take the next changes of this interest when there are any."""

    interest: int


@dataclass(frozen=True, slots=True)
class CloseConnection:
    """Close the connection after all queued messages are sent."""

    code: int
    reason: str


@dataclass(frozen=True, slots=True)
class ForgetSteps:
    """Forget the steps of an interest up to this one: the client has received them."""

    interest: int
    step: int


Action = SendMessage | RunRequest | AllowChanges | ForgetSteps | CloseConnection


@dataclass(frozen=True, slots=True)
class RefusedMessage:
    """A message that holds no request."""

    error: ProtocolError
    id: int | None  # of the message, if it has one


def decode_request(data: str) -> AnyRequest | RefusedMessage:
    """Return the request that a message holds, or why it holds none. Any thread may call this."""
    try:
        return decode(data, REQUESTS)
    except ProtocolError as error:
        return RefusedMessage(error, identify(data))


class Session:
    """The state of one connection."""

    def __init__(self, number: int, tokens: Tokens, limits: SessionLimits) -> None:
        self.number = number
        self.holder = TokenHolder("user")
        self.state: Literal["handshake", "open", "closed"] = "handshake"
        self.flows: dict[int, FlowControl] = {}  # by interest
        self.pending: dict[int, AnyRequest] = {}  # requests without a reply
        self._pending_characters: dict[int, int] = {}
        self._tokens = tokens
        self._limits = limits

    @property
    def role(self) -> Role:
        """The role of its token."""
        return self.holder.role

    def receive(self, data: str | bytes, decoded: AnyRequest | RefusedMessage | None = None) -> list[Action]:
        """Return the actions that an incoming message requires; `decoded` is its request, if it is known already."""
        if self.state == "closed":
            return []
        if isinstance(data, bytes):
            return self._close(WRONG_DATA, ProtocolError("binary messages are not supported", hint="Send JSON text."))
        limit = self._limits.message_bytes
        limit = min(MAX_HELLO_CHARACTERS, limit) if self.state == "handshake" else limit
        if len(data) > limit:
            what = f"a message of {len(data):,} characters"
            error = over_limit(what, "message_bytes", limit, "Send smaller messages.")
            if self.state == "handshake":
                error = ResourceError(
                    f"{what}: a hello may have {limit:,}", hint="Connect with a token of this server."
                )
            return self._close(TOO_BIG, error)
        request = decode_request(data) if decoded is None else decoded
        if isinstance(request, RefusedMessage):
            return self._refuse(request.id, request.error)
        try:
            return self._authenticate(request) if self.state == "handshake" else self._accept(request, len(data))
        except KpgError as error:
            return self._refuse(getattr(request, "id", None), error)

    def admit(self, holder: TokenHolder) -> None:
        """Open the session of a client that HTTP has authenticated."""
        self.holder, self.state = holder, "open"

    def submit(self, request: Request, size: int) -> list[Action]:
        """Return the actions that a request requires that came without a message, `size` characters long."""
        try:
            return self._accept(request, size)
        except KpgError as error:
            return self._refuse(request.id, error)

    def _refuse(self, request: int | None, error: KpgError) -> list[Action]:
        """Send an error; before authentication, also close the connection."""
        if self.state == "handshake":
            return self._close(POLICY, error, request)
        return [SendMessage(ErrorReply(failure_of(error), request))]

    def _close(self, code: int, error: KpgError, request: int | None = None) -> list[Action]:
        self.state = "closed"
        return [SendMessage(ErrorReply(failure_of(error), request)), CloseConnection(code, error.what)]

    def _authenticate(self, request: AnyRequest) -> list[Action]:
        if not isinstance(request, HelloRequest):
            hint = f'{{"type": "hello", "id": 0, "version": {VERSION}}}'
            raise ProtocolError("the first message must be hello", hint=hint)
        if request.version != VERSION:
            raise ProtocolError(
                f"version {request.version} of the protocol is not supported",
                detail=f"This server supports version {VERSION}.",
                hint="Use a client of the same release.",
            )
        holder = self._tokens.holder(request.token)
        if holder is None:
            what = "the token is wrong" if request.token else "a token is needed"
            raise NotAuthorised(what, hint="The server printed a token when it started, or reads a token file.")
        self.holder, self.state = holder, "open"
        limits = self._limits.as_numbers()
        return [SendMessage(WelcomeReply(request.id, VERSION, f"kpg {__version__}", holder.role, self.number, limits))]

    def _accept(self, request: AnyRequest, size: int) -> list[Action]:
        """Check a request as far as the engine is not needed, and record it as pending."""
        if isinstance(request, AckRequest):
            return self._acknowledge(request)
        if isinstance(request, HelloRequest):
            raise ProtocolError("hello was sent already")
        if request.id in self.pending:
            raise ProtocolError(f"request {request.id} still waits for its reply", hint="Give each request its own id.")
        if len(self.pending) >= self._limits.pending:
            raise over_limit("too many requests wait for their reply", "pending", self._limits.pending, WAIT_HINT)
        if self.pending and sum(self._pending_characters.values()) + size > self._limits.pending_bytes:
            what = "requests that wait for their reply are too large"
            raise over_limit(what, "pending_bytes", self._limits.pending_bytes, WAIT_HINT)
        self._authorise(request)
        self._check_limits(request)
        self.pending[request.id] = request
        self._pending_characters[request.id] = size
        return [RunRequest(request)]

    def _authorise(self, request: Request) -> None:
        """Raise if the session's role or interests do not permit a request."""
        sink = isinstance(request, InterestRequest) and request.sink is not None
        if self.role != "admin" and (request.needs_admin or sink):
            what = "a sink of the server" if sink else request.kind
            raise NotAuthorised(f"{what} needs the role admin", detail=f"This session's role is {self.role}.")
        interest = getattr(request, "interest", None)  # a request that names an interest has this field
        if interest is not None and interest not in self.flows:
            raise UndefinedName(
                f"this session has no interest {interest}", detail=f"It has {sorted(self.flows) or 'none'}."
            )

    def _check_limits(self, request: Request) -> None:
        pending = Counter(map(type, self.pending.values()))
        if isinstance(request, InterestRequest) and len(self.flows) + pending[InterestRequest] >= self._limits.queries:
            hint = "End interests that are no longer read, with uninterest."
            raise over_limit("too many interests", "queries", self._limits.queries, hint)
        if isinstance(request, RegisterRequest) and (request.text is None) == (request.plan is None):
            raise InputError("either text or plan must be given", hint="Datalog and EDN are text.")

    def _acknowledge(self, request: AckRequest) -> list[Action]:
        flow = self.flows.get(request.interest)  # unknown if it ended while the message was in transit
        if flow is None:
            return []
        was_open = flow.is_open()
        flow.add_credit(request.credit)
        received: list[Action] = [ForgetSteps(request.interest, request.step)] if request.step else []
        return [*received, AllowChanges(request.interest)] if flow.is_open() and not was_open else received

    # Results of the engine

    def finish_request(self, request: AnyRequest, result: AnyReply | KpgError) -> list[Action]:
        """Return the actions that the result of a request requires."""
        if self.state == "closed":
            return []
        if not (isinstance(result, RowsReply) and result.more):
            self.pending.pop(getattr(request, "id", -1), None)
            self._pending_characters.pop(getattr(request, "id", -1), None)
        if isinstance(result, KpgError):
            return [SendMessage(ErrorReply(failure_of(result), getattr(request, "id", None)))]
        if isinstance(request, UninterestRequest):
            self.flows.pop(request.interest, None)
        return [SendMessage(result)]

    def add_interest(self, request: InterestRequest, interest: int, followed: bool) -> list[Action]:
        """Record a new interest; unless a sink reads it or it has no credit, allow its changes."""
        self.flows[interest] = FlowControl(request.credit)
        return [AllowChanges(interest)] if followed and self.state == "open" and self.flows[interest].is_open() else []

    def mark_queued(self, interest: int, steps: int = 1) -> None:
        """Record that steps of an interest are queued for sending."""
        if interest in self.flows:
            self.flows[interest].mark_queued(steps)

    def mark_sent(self, interest: int) -> list[Action]:
        """Record that the changes of an interest were sent; allow more if there is credit."""
        flow = self.flows.get(interest)
        if flow is None or self.state == "closed":
            return []
        flow.mark_sent()
        return [AllowChanges(interest)] if flow.is_open() else []

    def remove_interest(self, interest: int) -> None:
        """Forget an interest that the server has ended."""
        self.flows.pop(interest, None)

    def close(self) -> None:
        """Record that the connection is closed."""
        self.state = "closed"
        self.flows.clear()
        self.pending.clear()
        self._pending_characters.clear()
