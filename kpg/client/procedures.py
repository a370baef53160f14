"""The procedures of a client, without I/O: generators that yield instructions to send and to wait.

    procedure = ask(conversation, calls.ping())
    for each instruction: perform it, then resume the procedure          the result is what it returns

A procedure yields `Send(text)` and `Receive(deadline)`. A driver performs them on its socket: `kpg.client.connection`
by blocking, `kpg.client.async_connection` by awaiting. If an instruction fails, the driver throws the error into the
procedure, which cleans up. Everything else that both connections do is here, once.

A driver that loses its connection calls `Conversation.disconnect`, connects again, and performs `open_session` on the
new socket. It then goes on with the procedures that were under way; they notice what they have lost.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from kpg.client import calls
from kpg.client.change_feed import ChangeFeed, Step
from kpg.client.conversation import NOT_YET, Call, Conversation
from kpg.client.end_reasons import ReplyLost, ended
from kpg.errors import KpgError, UndefinedName
from kpg.protocol.error_messages import failure_of
from kpg.protocol.replies import WelcomeReply

Result = TypeVar("Result")
MAX_ATTEMPTS = 20  # of one request; one that ends the connection each time must not be sent forever
MAX_UNANSWERED = 32  # requests that continue interests, sent before the first reply; servers allow 64


@dataclass(frozen=True, slots=True)
class Send:
    """Send a text."""

    text: str


@dataclass(frozen=True, slots=True)
class Receive:
    """Wait until the conversation has received something; TimeNotReached at the deadline, by time.monotonic()."""

    deadline: float | None = None


Procedure = Generator[Send | Receive, None, Result]


def within(instruction: Send | Receive, deadline: float) -> Send | Receive:
    """Return an instruction that does not wait beyond a deadline."""
    if isinstance(instruction, Send):
        return instruction
    return Receive(deadline if instruction.deadline is None else min(deadline, instruction.deadline))


def open_session(conversation: Conversation, token: str | None) -> Procedure[WelcomeReply]:
    """Say hello on a new connection, and continue the feeds of the one before."""
    welcome = yield from exchange(conversation, calls.hello(token))
    conversation.max_bytes = int(welcome.limits["message_bytes"]) if "message_bytes" in welcome.limits else None
    for feeds in in_groups(list(conversation.feeds.values())):
        numbers = []
        for feed in feeds:
            number, text = conversation.resume(feed)
            numbers.append(number)
            yield Send(text)
        for feed, number in zip(feeds, numbers, strict=True):
            yield from await_resumption(conversation, feed, number)
    conversation.connected = True
    for text in conversation.outgoing():
        yield Send(text)
    return welcome


def in_groups(feeds: list[ChangeFeed]) -> Iterator[list[ChangeFeed]]:
    """Split feeds into groups whose requests may be sent without waiting."""
    for start in range(0, len(feeds), MAX_UNANSWERED):
        yield feeds[start : start + MAX_UNANSWERED]


def await_resumption(conversation: Conversation, feed: ChangeFeed, number: int) -> Procedure[None]:
    """Wait until the server has continued a feed. If it refuses, the feed ends with its reason."""
    try:
        yield from await_result(conversation, number, Call(feed.resumption, calls.last_reply))
    except ReplyLost:
        raise
    except KpgError as error:
        feed.ended = failure_of(error)
        conversation.drop(feed)


def ask(conversation: Conversation, call: Call[Result]) -> Procedure[Result]:
    """Send a request and wait for its result. If the connection is lost, send it again if it is repeatable."""
    for attempt in range(1, MAX_ATTEMPTS + 1):
        while not conversation.connected:
            yield Receive()
        try:
            return (yield from exchange(conversation, call))
        except ReplyLost:
            if not call.repeatable or attempt == MAX_ATTEMPTS:
                raise
    raise AssertionError


def exchange(conversation: Conversation, call: Call[Result]) -> Procedure[Result]:
    """Send a request once, and wait for its result."""
    number, text = conversation.ask(call)
    try:
        yield Send(text)
    except BaseException:
        conversation.give_up(number)
        raise
    return (yield from await_result(conversation, number, call))


def await_result(conversation: Conversation, number: int, call: Call[Result]) -> Procedure[Result]:
    """Wait for the result of a request that was sent."""
    try:
        while (result := conversation.result(number, call)) is NOT_YET:
            yield Receive()
    except BaseException as error:
        text = None if isinstance(error, Exception | GeneratorExit) else conversation.cancellation(number)
        conversation.give_up(number)
        if text is not None:  # Ctrl-C, or a task that is canceled: no client waits for the answer
            yield Send(text)
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
    yield from ask_about(conversation, feed, calls.take(feed))
    while feed.waiting:
        yield from read_step(conversation, feed)


def unfollow(conversation: Conversation, feed: ChangeFeed) -> Procedure[None]:
    """End an interest; may be repeated."""
    if conversation.feeds.get(feed.interest) is feed:
        conversation.drop(feed)  # at once, so that a new connection does not continue it
        if conversation.connected and not feed.ended:
            with suppress(UndefinedName, ReplyLost):  # it has ended just now, or ends when its time is over
                yield from exchange(conversation, calls.uninterest(feed.interest))
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
