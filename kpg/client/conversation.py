"""A client's side of the protocol without any I/O: requests become text, texts become replies and steps.

number, text = conversation.ask(call)       send the text
conversation.receive(text)                  for whatever comes
conversation.result(number, call)           NOT_YET, or the result; raises what the server refused
conversation.outgoing()                     acknowledgements to send
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from kpg.client.change_feed import Feed, Step
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
    """A request to be, and what its replies come to."""

    make: Callable[[int], AnyRequest]
    finish: Callable[[Sequence[Any]], Result]


class Conversation:
    """What was asked, what came, what is followed."""

    def __init__(self) -> None:
        self.feeds: dict[int, Feed] = {}
        self._numbers = itertools.count()
        self._replies: dict[int, list[AnyReply]] = {}
        self._complete: set[int] = set()
        self._acks: list[str] = []

    def ask(self, call: Call[Any]) -> tuple[int, str]:
        """The number of a request and its text."""
        number = next(self._numbers)
        text = encode(call.make(number))
        self._replies[number] = []
        return number, text

    def receive(self, text: str | bytes) -> None:
        """Something came."""
        if isinstance(text, bytes):
            raise ProtocolError("the server sent a binary message", hint="The same version of kpg at both ends?")
        message = decode(text, FROM_SERVER)
        if isinstance(message, ChangesMessage | EndedMessage):
            feed = self.feeds.get(message.interest)
            if feed is not None:  # else it was on its way when the interest ended
                feed.receive(message)
            return
        if message.id is None:
            assert isinstance(message, ErrorReply)
            raise error_of(message.failure)
        if message.id not in self._replies:
            return  # whoever asked has given up
        self._replies[message.id].append(message)
        if isinstance(message, InterestedReply):  # its changes may follow at once
            self.feeds[message.interest] = Feed(message)
        if not (isinstance(message, RowsReply) and message.more):
            self._complete.add(message.id)

    def result(self, number: int, call: Call[Result]) -> Result | object:
        """What a request came to, once."""
        if number not in self._complete:
            return NOT_YET
        self._complete.discard(number)
        replies = self._replies.pop(number)
        last = replies[-1]
        if isinstance(last, ErrorReply):
            raise error_of(last.failure)
        return call.finish(replies)

    def give_up(self, number: int) -> None:
        """Nobody waits for this reply any more."""
        self._replies.pop(number, None)
        self._complete.discard(number)

    def read(self, feed: Feed) -> Step:
        """The next step of an answer; the server may send one more."""
        step = feed.read()
        self._acks.append(encode(AckRequest(feed.interest)))
        return step

    def drop(self, feed: Feed) -> None:
        """Follow no longer."""
        self.feeds.pop(feed.interest, None)

    def outgoing(self) -> list[str]:
        """What is to be sent beside requests."""
        found, self._acks = self._acks, []
        return found
