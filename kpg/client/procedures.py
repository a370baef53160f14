"""The procedures of a client, without I/O: generators that yield instructions to send and to wait.

    procedure = ask(conversation, calls.ping())
    for each instruction: perform it, then resume the procedure          the result is what it returns

A procedure yields `Send(text)` and `Receive(deadline)`. A driver performs them on its socket: `kpg.client.connection`
by blocking, `kpg.client.async_connection` by awaiting. If an instruction fails, the driver throws the error into the
procedure, which cleans up. Everything else that both connections do is here, once.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, TypeVar

from kpg.client import calls
from kpg.client.change_feed import ChangeFeed, Step
from kpg.client.conversation import NOT_YET, Call, Conversation
from kpg.client.end_reasons import ended
from kpg.errors import UndefinedName

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Send:
    """Send a text."""

    text: str


@dataclass(frozen=True, slots=True)
class Receive:
    """Wait until the conversation has received something; TimeNotReached at the deadline, by time.monotonic()."""

    deadline: float | None = None


Procedure = Generator[Send | Receive, None, Result]


def ask(conversation: Conversation, call: Call[Result]) -> Procedure[Result]:
    """Send a request and wait for its result."""
    number, text = conversation.ask(call)
    try:
        yield Send(text)
        while (result := conversation.result(number, call)) is NOT_YET:
            yield Receive()
    except BaseException:
        conversation.give_up(number)
        raise
    return result  # type: ignore[return-value]


def next_step(conversation: Conversation, feed: ChangeFeed, timeout: float | None) -> Procedure[Step]:
    """Wait for the next step of an answer and read it."""
    deadline = None if timeout is None else time.monotonic() + timeout
    while not feed.waiting:
        if feed.ended:
            raise ended(feed)
        yield Receive(deadline)
    return (yield from read_step(conversation, feed))


def catch_up(conversation: Conversation, feed: ChangeFeed) -> Procedure[None]:
    """Read all steps of an answer up to now."""
    yield from ask_about(conversation, feed, calls.take(feed.interest))
    while feed.waiting:
        yield from read_step(conversation, feed)


def unfollow(conversation: Conversation, feed: ChangeFeed) -> Procedure[None]:
    """End an interest; may be repeated."""
    if conversation.feeds.get(feed.interest) is feed:
        yield from ask_about(conversation, feed, calls.uninterest(feed.interest))
        conversation.drop(feed)
    feed.ended = feed.ended or True


def ask_about(conversation: Conversation, feed: ChangeFeed, call: Call[Any]) -> Procedure[None]:
    """Send a request about an interest, unless it has ended; it may end while the request is on its way."""
    if feed.ended:
        return
    try:
        yield from ask(conversation, call)
    except UndefinedName:
        if not feed.ended:
            raise


def read_step(conversation: Conversation, feed: ChangeFeed) -> Procedure[Step]:
    """Read a step that has arrived, and acknowledge it."""
    step = conversation.read(feed)
    for text in conversation.outgoing():
        yield Send(text)
    return step
