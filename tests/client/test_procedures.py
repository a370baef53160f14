"""Procedures without a socket: what they send, when they wait, and what a failure leaves behind."""

import inspect
import time

import pytest

import kpg
from kpg.client import calls, procedures
from kpg.client.async_connection import AsyncConnection
from kpg.client.change_feed import ChangeFeed
from kpg.client.connection import Connection
from kpg.client.conversation import Conversation
from kpg.client.procedures import Receive, Send
from kpg.protocol import parts, replies
from kpg.protocol.message_codec import encode

COLUMNS = (parts.ColumnSpec("x", "int64"),)


def followed(conversation: Conversation) -> ChangeFeed:
    feed = conversation.feeds[5] = ChangeFeed(replies.InterestedReply(0, 5, "n", COLUMNS))
    return feed


def test_a_request_is_sent_and_its_reply_is_awaited():
    conversation = Conversation()
    procedure = procedures.ask(conversation, calls.ping())
    assert next(procedure) == Send('{"type":"ping","id":0}')
    assert next(procedure) == Receive() and next(procedure) == Receive()  # something else arrived
    conversation.receive(encode(replies.DoneReply(0, 7)))
    with pytest.raises(StopIteration) as end:
        next(procedure)
    assert end.value.value == 7


def test_a_failure_of_the_driver_abandons_the_request():
    conversation = Conversation()
    procedure = procedures.ask(conversation, calls.ping())
    next(procedure)
    with pytest.raises(kpg.Unreachable):
        procedure.throw(kpg.Unreachable("gone"))
    conversation.receive(encode(replies.DoneReply(0, 7)))  # too late: ignored
    assert conversation.result(0, calls.ping()) is not None and not conversation._replies


def test_waiting_for_a_step_has_a_deadline_and_reading_it_is_acknowledged():
    conversation = Conversation()
    feed = followed(conversation)
    procedure = procedures.next_step(conversation, feed, 5.0)
    wait = next(procedure)
    assert isinstance(wait, Receive) and 0 < wait.deadline - time.monotonic() <= 5.0
    conversation.receive(encode(replies.ChangesMessage(5, 1, ((1,),), (0,), (1,))))
    assert next(procedure) == Send('{"type":"ack","interest":5}')
    with pytest.raises(StopIteration) as end:
        next(procedure)
    assert list(end.value.value) == [((1,), 0, 1)] and feed.rows() == [(1,)]


def test_an_interest_that_ends_while_it_is_asked_about_is_no_error():
    conversation = Conversation()
    feed = followed(conversation)
    procedure = procedures.unfollow(conversation, feed)
    assert next(procedure) == Send('{"type":"uninterest","id":0,"interest":5}')
    conversation.receive(encode(replies.EndedMessage(5)))
    conversation.receive(encode(replies.ErrorReply(parts.FailureSpec("UndefinedName", "no interest 5"), 0)))
    with pytest.raises(StopIteration):
        next(procedure)
    assert feed.ended and 5 not in conversation.feeds


def test_the_methods_of_both_connections_are_the_same_functions_with_docstrings():
    for name, call in inspect.getmembers(calls, inspect.isfunction):
        method = getattr(Connection, name, None)
        if method is not None and name != "interest":
            assert method is getattr(AsyncConnection, name)
            assert method.__doc__ == call.__doc__ and inspect.signature(method) == inspect.signature(call)
