"""A client's state in the protocol, without I/O: requests become texts, texts become results and steps.

number, text = conversation.ask(call)       send the text
conversation.receive(text)                  for each text that arrives
conversation.result(number, call)           NOT_YET, or the result; raises the server's refusal
conversation.outgoing()                     acknowledgements to send
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from kpg.client.change_feed import ChangeFeed, Step
from kpg.errors import ProtocolError
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
from kpg.protocol.requests import AckRequest, AnyRequest

Result = TypeVar("Result")
NOT_YET: Final = object()
FROM_SERVER: Final[MessageKinds[AnyReply]] = REPLIES | PUSHED


@dataclass(frozen=True, slots=True)
class Call(Generic[Result]):
    """A request without its id, and the function that makes a result from its replies."""

    make: Callable[[int], AnyRequest]
    finish: Callable[[Sequence[Any]], Result]


class Conversation:
    """The open requests, their replies, and the feeds of a client."""

    def __init__(self) -> None:
        self.feeds: dict[int, ChangeFeed] = {}  # by the number of the interest
        self._numbers = itertools.count()
        self._replies: dict[int, list[AnyReply]] = {}
        self._complete: set[int] = set()
        self._acknowledgements: list[str] = []

    def ask(self, call: Call[Any]) -> tuple[int, str]:
        """Open a request; return its number and its text."""
        number = next(self._numbers)
        text = encode(call.make(number))
        self._replies[number] = []
        return number, text

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
            self.feeds[message.interest] = ChangeFeed(message)
        if not (isinstance(message, RowsReply) and message.more):
            self._complete.add(message.id)

    def result(self, number: int, call: Call[Result]) -> Result | object:
        """Return the result of a request, once, or NOT_YET; raise the error that the server replied."""
        if number not in self._complete:
            return NOT_YET
        self._complete.discard(number)
        replies = self._replies.pop(number)
        last = replies[-1]
        if isinstance(last, ErrorReply):
            raise error_of(last.failure)
        return call.finish(replies)

    def give_up(self, number: int) -> None:
        """Close a request; its reply will be ignored."""
        self._replies.pop(number, None)
        self._complete.discard(number)

    def read(self, feed: ChangeFeed) -> Step:
        """Read the next step of an answer and acknowledge it, so that the server may send one more."""
        step = feed.read()
        self._acknowledgements.append(encode(AckRequest(feed.interest)))
        return step

    def drop(self, feed: ChangeFeed) -> None:
        """Remove a feed; its further messages are ignored."""
        self.feeds.pop(feed.interest, None)

    def outgoing(self) -> list[str]:
        """Take the acknowledgements to send."""
        texts, self._acknowledgements = self._acknowledgements, []
        return texts
