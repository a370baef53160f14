"""One client's side of the conversation, as a state machine: messages in, steps out, no sockets, no clock, no engine.

    greeting  --hello with a good token-->  open  --hang up-->  closed

`receive` takes what came and returns what to do: Say a message, Ask the engine, Hang up. The engine's results come
back through `answered`. Guarantees, whatever comes in and in whatever order:

    - nothing is asked of the engine before a good hello, nor after a hang-up;
    - each request gets exactly one answer that ends it (`rows` with `more` do not), with its own id;
    - only an admin's session asks for what is an admin's; nobody names another session's interest;
    - nothing but KpgError is made of bad input, and it is said to the client, never raised.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from kpg.errors import InputError, KpgError, NotAuthorised, ProtocolError, UndefinedName
from kpg.protocol.error_messages import failure_of
from kpg.protocol.message_codec import decode, identify
from kpg.protocol.messages import VERSION
from kpg.protocol.replies import AnyReply, ErrorReply, RegisteredReply, RowsReply, WelcomeReply
from kpg.protocol.requests import (
    REQUESTS,
    AckRequest,
    AddArgumentsRequest,
    AdvanceRequest,
    AnyRequest,
    CloseInputRequest,
    HelloRequest,
    InterestRequest,
    ObserveRequest,
    RegisterRequest,
    RemoveArgumentsRequest,
    ShutdownRequest,
    TakeRequest,
    UninterestRequest,
    UnregisterRequest,
)
from kpg.server.flow_control import FlowControl
from kpg.server.session_limits import SessionLimits, over
from kpg.server.tokens import Role, Tokens
from kpg.version import __version__

ADMINS: Final = (ObserveRequest, AdvanceRequest, CloseInputRequest, ShutdownRequest)
OWN: Final = (UninterestRequest, TakeRequest, AddArgumentsRequest, RemoveArgumentsRequest)  # they name an interest
GREETING: Final = 10_000  # characters of hello: of strangers nothing large is read
WAIT: Final = "Wait for replies first."
NORMAL, WRONG_DATA, POLICY, TOO_BIG = 1000, 1003, 1008, 1009  # why a WebSocket is closed


@dataclass(frozen=True, slots=True)
class Say:
    """Send a message."""

    message: AnyReply


@dataclass(frozen=True, slots=True)
class Ask:
    """Have the engine do something; its result is given back to `answered`."""

    request: AnyRequest


@dataclass(frozen=True, slots=True)
class Allow:
    """Changes of this interest may be taken again."""

    interest: int


@dataclass(frozen=True, slots=True)
class Hang:
    """End the connection."""

    code: int
    reason: str


Step = Say | Ask | Allow | Hang


class Session:
    """The state of a connection."""

    def __init__(self, number: int, tokens: Tokens, allowance: SessionLimits) -> None:
        self.number = number
        self.role: Role = "user"
        self.state: Literal["greeting", "open", "closed"] = "greeting"
        self.flows: dict[int, FlowControl] = {}
        self.pending: dict[int, AnyRequest] = {}
        self.rules = 0
        self._sizes: dict[int, int] = {}  # characters of what is pending
        self._tokens = tokens
        self._allowance = allowance

    def receive(self, data: str | bytes) -> list[Step]:
        """What to do about a message that came."""
        if self.state == "closed":
            return []
        if isinstance(data, bytes):
            return self._hang(WRONG_DATA, ProtocolError("binary messages have no meaning here", hint="Send JSON text."))
        most = self._allowance.message_bytes
        most = min(GREETING, most) if self.state == "greeting" else most
        if len(data) > most:
            return self._hang(TOO_BIG, over(f"a message of {len(data):,} characters", most, "Send less at once."))
        try:
            request = decode(data, REQUESTS)
        except ProtocolError as error:
            return self._refuse(identify(data), error)
        try:
            return self._greet(request) if self.state == "greeting" else self._consider(request, len(data))
        except KpgError as error:
            return self._refuse(getattr(request, "id", None), error)

    def _refuse(self, request: int | None, error: KpgError) -> list[Step]:
        """Say no; strangers get no second try."""
        if self.state == "greeting":
            return self._hang(POLICY, error, request)
        return [Say(ErrorReply(failure_of(error), request))]

    def _hang(self, code: int, error: KpgError, request: int | None = None) -> list[Step]:
        self.state = "closed"
        return [Say(ErrorReply(failure_of(error), request)), Hang(code, error.what)]

    def _greet(self, request: AnyRequest) -> list[Step]:
        if not isinstance(request, HelloRequest):
            hint = f'{{"type": "hello", "id": 0, "version": {VERSION}}}'
            raise ProtocolError("the first message must be hello", hint=hint)
        if request.version != VERSION:
            raise ProtocolError(
                f"version {request.version} of the protocol is not spoken here",
                detail=f"This server speaks version {VERSION}.",
                hint="Use a client of the same release.",
            )
        role = self._tokens.role(request.token)
        if role is None:
            what = "the token is wrong" if request.token else "a token is needed"
            raise NotAuthorised(what, hint="The server printed one when it began, or has a file of them.")
        self.role, self.state = role, "open"
        limits = self._allowance.shown()
        return [Say(WelcomeReply(request.id, VERSION, f"kpg {__version__}", role, self.number, limits))]

    def _consider(self, request: AnyRequest, size: int) -> list[Step]:
        """Check what the engine need not be asked about."""
        if isinstance(request, AckRequest):
            return self._acknowledge(request)
        if isinstance(request, HelloRequest):
            raise ProtocolError("hello was said already")
        if request.id in self.pending:
            raise ProtocolError(f"request {request.id} still waits for its reply", hint="Give each request its own id.")
        if len(self.pending) >= self._allowance.pending:
            raise over("too many requests wait for their reply", self._allowance.pending, WAIT)
        if self.pending and sum(self._sizes.values()) + size > self._allowance.pending_bytes:
            raise over("requests that wait for their reply are too large", self._allowance.pending_bytes, WAIT)
        self._authorise(request)
        self._limit(request)
        self.pending[request.id] = request
        self._sizes[request.id] = size
        return [Ask(request)]

    def _authorise(self, request: AnyRequest) -> None:
        sink = isinstance(request, InterestRequest) and request.sink is not None
        if self.role != "admin" and (isinstance(request, ADMINS) or sink):
            what = "a sink of the server" if sink else request.kind
            raise NotAuthorised(f"{what} needs the role admin", detail=f"This session's role is {self.role}.")
        if isinstance(request, OWN) and request.interest not in self.flows:
            raise UndefinedName(
                f"this session has no interest {request.interest}", detail=f"It has {sorted(self.flows) or 'none'}."
            )

    def _limit(self, request: AnyRequest) -> None:
        asked = sum(isinstance(each, InterestRequest) for each in self.pending.values())
        if isinstance(request, InterestRequest) and len(self.flows) + asked >= self._allowance.queries:
            raise over("too many interests", self._allowance.queries, "Uninterest what is no longer read.")
        if isinstance(request, RegisterRequest):
            if (request.text is None) == (request.plan is None):
                raise InputError("either text or plan must be given", hint="Datalog and EDN are text.")
            if self.rules >= self._allowance.rules:
                raise over("too many rules", self._allowance.rules, "Unregister what is no longer asked for.")

    def _acknowledge(self, request: AckRequest) -> list[Step]:
        flow = self.flows.get(request.interest)  # unknown: it may have ended while this was on its way
        if flow is None:
            return []
        was_open = flow.open()
        flow.acknowledge(request.credit)
        return [Allow(request.interest)] if flow.open() and not was_open else []

    # What the engine says

    def answered(self, request: AnyRequest, result: AnyReply | KpgError) -> list[Step]:
        """What to do when a request is done, or failed."""
        if self.state == "closed":
            return []
        if not (isinstance(result, RowsReply) and result.more):
            self.pending.pop(getattr(request, "id", -1), None)
            self._sizes.pop(getattr(request, "id", -1), None)
        if isinstance(result, KpgError):
            return [Say(ErrorReply(failure_of(result), getattr(request, "id", None)))]
        if isinstance(request, UninterestRequest):
            self.flows.pop(request.interest, None)
        if isinstance(result, RegisteredReply):
            self.rules += 1
        if isinstance(request, UnregisterRequest):
            self.rules = max(0, self.rules - 1)
        return [Say(result)]

    def interested(self, request: InterestRequest, interest: int, followed: bool) -> list[Step]:
        """An interest was made; its changes may be taken unless a sink takes them."""
        self.flows[interest] = FlowControl(request.credit)
        return [Allow(interest)] if followed and self.state == "open" else []

    def queued(self, interest: int) -> None:
        """Changes of an interest wait to be sent."""
        if interest in self.flows:
            self.flows[interest].queue()

    def sent(self, interest: int) -> list[Step]:
        """Changes of an interest were sent."""
        flow = self.flows.get(interest)
        if flow is None or self.state == "closed":
            return []
        flow.sent()
        return [Allow(interest)] if flow.open() else []

    def ended(self, interest: int) -> None:
        """No more will come of an interest."""
        self.flows.pop(interest, None)

    def close(self) -> None:
        """The connection is gone."""
        self.state = "closed"
        self.flows.clear()
        self.pending.clear()
        self._sizes.clear()
