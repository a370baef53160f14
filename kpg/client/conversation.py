"""A client's state in the protocol, without I/O: requests become texts, texts become results and steps.

number, text = conversation.ask(call)       send the text
conversation.receive(text)                  for each text that arrives
conversation.result(number, call)           NOT_YET, or the result; raises the server's refusal
conversation.outgoing()                     acknowledgements to send
conversation.disconnect()                   the connection is lost: no request gets its reply any more

After `disconnect`, the driver connects again and performs `kpg.client.procedures.open_session`, which continues the
feeds. A request whose reply was lost raises `ReplyLost`; `kpg.client.procedures.ask` sends it again if that cannot
change anything twice.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Generic, TypeVar

from kpg.client.change_feed import ChangeFeed, Step
from kpg.client.end_reasons import ReplyLost, transaction_lost
from kpg.errors import InputError, ProtocolError, ResourceError
from kpg.protocol.definitions import MessageKinds
from kpg.protocol.error_messages import error_of
from kpg.protocol.message_codec import decode, encode
from kpg.protocol.replies import (
    PUSHED,
    REPLIES,
    AnyReply,
    ChangesMessage,
    EndedMessage,
    ErrorReply,
    InterestedReply,
    RowsReply,
)
from kpg.protocol.requests import (
    AckRequest,
    AnyRequest,
    CancelCallRequest,
    ExplainRequest,
    InterestRequest,
    QueryRequest,
    SqlRequest,
)

Result = TypeVar("Result")
NOT_YET: Final = object()
CANCELED: Final = (QueryRequest, SqlRequest, InterestRequest, ExplainRequest)  # if the caller waits no longer
BYTES_OF_CHARACTER: Final = 4  # at most, in UTF-8
FROM_SERVER: Final[MessageKinds[AnyReply]] = REPLIES | PUSHED


@dataclass(frozen=True, slots=True)
class Call(Generic[Result]):
    """A request without its id, and the function that makes a result from its replies.

    One that is `repeatable` has the same effect if the server runs it twice.
    """

    make: Callable[[int], AnyRequest]
    finish: Callable[[Sequence[Any]], Result]
    repeatable: bool = False


class Conversation:
    """The open requests, their replies, and the feeds of a client."""

    def __init__(self, resumes: bool = True) -> None:
        self.connected = True  # False between `disconnect` and the end of `open_session`
        self.resumes = resumes  # whether interests outlive a connection
        self.max_bytes: int | None = None  # of a message, as the server has said; it ends the connection beyond that
        self.feeds: dict[int, ChangeFeed] = {}  # by the number of the interest
        self._numbers = itertools.count()
        self._requests: dict[int, AnyRequest] = {}
        self._replies: dict[int, list[AnyReply]] = {}
        self._complete: set[int] = set()
        self._lost: set[int] = set()
        self._acknowledgements: list[ChangeFeed] = []
        self._resuming: dict[int, ChangeFeed] = {}  # by the number of the request
        self._in_transaction = False  # of SQL
        self._transaction_lost = False

    def ask(self, call: Call[Any]) -> tuple[int, str]:
        """Open a request; return its number and its text."""
        number = next(self._numbers)
        request = call.make(number)
        if isinstance(request, SqlRequest) and self._transaction_lost:
            self._transaction_lost = False
            raise transaction_lost()
        if isinstance(request, InterestRequest) and not self.resumes:
            request = replace(request, key=None)
        return number, self._open(number, request)

    def resume(self, feed: ChangeFeed) -> tuple[int, str]:
        """Open the request that continues a feed; return its number and its text."""
        number = next(self._numbers)
        # The request says how many steps are unread, so it acknowledges those that were read so far.
        self._acknowledgements = [other for other in self._acknowledgements if other is not feed]
        self._resuming[number] = feed
        return number, self._open(number, feed.resumption(number))

    def _open(self, number: int, request: AnyRequest) -> str:
        text = encode(request)
        if not text.isascii():
            check_unicode(text)
        if self.max_bytes is not None and len(text) > self.max_bytes // BYTES_OF_CHARACTER:
            check_size(len(text.encode()), self.max_bytes)
        self._requests[number], self._replies[number] = request, []
        return text

    def disconnect(self) -> None:
        """Record that the connection is lost."""
        self.connected = False
        self._lost |= self._replies.keys() - self._complete
        self._resuming.clear()
        self._acknowledgements.clear()
        self._transaction_lost |= self._in_transaction
        self._in_transaction = False

    def receive(self, text: str | bytes) -> None:
        """Take in a message of the server."""
        if isinstance(text, bytes):
            raise ProtocolError(
                "the server sent a binary message", hint="Check that both ends run the same version of kpg."
            )
        message = decode(text, FROM_SERVER)
        if isinstance(message, ChangesMessage | EndedMessage):
            feed = self.feeds.get(message.interest)
            if feed is not None:  # else it was sent before the server learned that the interest has ended
                feed.receive(message)
            return
        if message.id is None:
            assert isinstance(message, ErrorReply)
            raise error_of(message.failure)
        if message.id not in self._replies:
            return  # the caller has given up
        self._replies[message.id].append(message)
        if isinstance(message, InterestedReply):  # its changes may follow immediately
            self._follow(message)
        if not (isinstance(message, RowsReply) and message.more):
            self._complete.add(message.id)

    def _follow(self, reply: InterestedReply) -> None:
        """Begin a feed, or continue the one that the request was about."""
        feed, request = self._resuming.pop(reply.id, None), self._requests[reply.id]
        if feed is None:
            assert isinstance(request, InterestRequest)
            self.feeds[reply.interest] = ChangeFeed(reply, request)
        elif self.feeds.get(feed.interest) is feed:  # else the caller has ended it meanwhile
            del self.feeds[feed.interest]
            feed.resume(reply)
            self.feeds[feed.interest] = feed

    def result(self, number: int, call: Call[Result]) -> Result | object:
        """Return the result of a request, once, or NOT_YET; raise the error that the server replied, or ReplyLost."""
        if number in self._lost:
            if isinstance(self._requests[number], SqlRequest):
                self._transaction_lost = False  # the caller learns of it now
            self.give_up(number)
            raise ReplyLost(
                "the connection was lost before the reply", hint="The request may have taken effect: look, and repeat."
            )
        if number not in self._complete:
            return NOT_YET
        replies = self._replies[number]
        self.give_up(number)
        last = replies[-1]
        if isinstance(last, RowsReply):
            self._in_transaction = last.in_transaction
        if isinstance(last, ErrorReply):
            raise error_of(last.failure)
        return call.finish(replies)

    def cancellation(self, number: int) -> str | None:
        """Return the text that stops a request which only reads or may be undone; None if there is none to stop."""
        request = self._requests.get(number)
        if not self.connected or not isinstance(request, CANCELED) or number in self._complete | self._lost:
            return None
        return encode(CancelCallRequest(next(self._numbers), number))

    def give_up(self, number: int) -> None:
        """Close a request; its reply will be ignored."""
        self._requests.pop(number, None)
        self._replies.pop(number, None)
        self._complete.discard(number)
        self._lost.discard(number)

    def read(self, feed: ChangeFeed) -> Step:
        """Read the next step of an answer and acknowledge it, so that the server may send one more."""
        step = feed.read()
        self._acknowledgements.append(feed)
        return step

    def drop(self, feed: ChangeFeed) -> None:
        """Remove a feed; its further messages are ignored."""
        self.feeds.pop(feed.interest, None)

    def outgoing(self) -> list[str]:
        """Take the acknowledgements to send; without a connection, they wait for the next one."""
        if not self.connected:
            return []
        feeds, self._acknowledgements = self._acknowledgements, []
        return [encode(AckRequest(feed.interest, step=feed.received)) for feed in feeds]


def check_size(nbytes: int, max_bytes: int) -> None:
    """Raise if the server refuses a message of this size: it would end the connection."""
    if nbytes > max_bytes:
        raise ResourceError(
            f"the request has {nbytes:,} bytes, more than {max_bytes:,}",
            detail="The limit of the server is message_bytes.",
            hint="Send fewer rows or a shorter text in one request, or raise the limit: "
            "kpg serve --max-message-bytes N.",
        )


def check_unicode(text: str) -> None:
    """Raise if UTF-8 cannot encode a text: sending it would end the connection."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InputError(
            "the request holds half of a surrogate pair, which is no character",
            detail=f"It is {text[error.start]!r}.",
            hint="Decode the text as UTF-16, or replace such halves.",
        ) from None
