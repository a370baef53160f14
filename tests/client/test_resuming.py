"""A conversation whose connection is lost: what continues, what is sent again, and what fails."""

import json

import pytest

import kpg
from kpg.client import calls, procedures
from kpg.client.backoff import Backoff
from kpg.client.conversation import Conversation
from kpg.client.procedures import Receive, Send
from kpg.protocol import parts, replies
from kpg.protocol.message_codec import encode

COLUMNS = (parts.ColumnSpec("x", "int64"),)
WELCOME = {"version": 1, "server": "kpg", "role": "user", "session": 2, "limits": {}}


def following(credit: int = 8) -> tuple[Conversation, object]:
    """A conversation with one interest, number 5, that has received step 1 and half of step 2."""
    conversation = Conversation()
    procedure = procedures.ask(conversation, calls.interest("n", credit=credit))
    next(procedure)
    conversation.receive(encode(replies.InterestedReply(0, 5, "n", COLUMNS)))
    with pytest.raises(StopIteration):
        next(procedure)
    conversation.receive(encode(replies.ChangesMessage(5, 1, ((1,),), (0,), (1,), step=1)))
    conversation.receive(encode(replies.ChangesMessage(5, 2, ((2,),), (1,), (1,), more=True, step=2)))
    return conversation, conversation.feeds[5]


def reopen(conversation: Conversation, *answers) -> list[dict]:
    """Open a session on a new connection; return the requests sent. `answers` are made from the last request's id."""
    procedure = procedures.open_session(conversation, None)
    sent, left = [], [lambda id: replies.WelcomeReply(id, **WELCOME), *answers]
    try:
        step = next(procedure)
        while True:
            if isinstance(step, Send):
                sent.append(json.loads(step.text))
            else:
                conversation.receive(encode(left.pop(0)(sent[-1]["id"])))
            step = next(procedure)
    except StopIteration:
        return sent


def test_a_feed_continues_after_the_last_whole_step():
    conversation, feed = following()
    key = feed.request.key
    conversation.disconnect()
    _, request = reopen(conversation, lambda id: replies.InterestedReply(id, 5, "n", COLUMNS, resumed=True))
    assert request["step"] == 1 and request["key"] == key and request["credit"] == 7  # one step is unread
    for step in (1, 2):  # one that was received already is ignored
        conversation.receive(encode(replies.ChangesMessage(5, step, ((step,),), (step - 1,), (1,), step=step)))
    while feed.waiting:
        conversation.read(feed)
    assert feed.rows() == [(1,), (2,)]


def test_a_reset_voids_the_rows_before():
    conversation, feed = following()
    conversation.disconnect()
    reopen(conversation, lambda id: replies.InterestedReply(id, 9, "n", COLUMNS))
    assert feed.interest == 9 and conversation.feeds == {9: feed}
    conversation.receive(encode(replies.ChangesMessage(9, 7, ((3,),), (6,), (1,), step=1, reset=True)))
    first, second = conversation.read(feed), conversation.read(feed)
    assert not first.reset and second.reset and feed.rows() == [(3,)]


def test_steps_read_without_a_connection_are_acknowledged_on_the_next_one_and_once():
    conversation, feed = following(credit=1)
    conversation.disconnect()
    conversation.read(feed)
    assert conversation.outgoing() == []
    sent = reopen(conversation, lambda id: replies.InterestedReply(id, 5, "n", COLUMNS, resumed=True))
    assert [request["type"] for request in sent] == ["hello", "interest"] and sent[1]["credit"] == 1


def test_a_step_read_while_the_session_opens_is_acknowledged_after_it():
    conversation, feed = following(credit=1)
    conversation.disconnect()

    def interested(id: int) -> replies.InterestedReply:
        conversation.read(feed)  # another task does
        return replies.InterestedReply(id, 5, "n", COLUMNS, resumed=True)

    sent = reopen(conversation, interested)
    assert [request["type"] for request in sent] == ["hello", "interest", "ack"]
    assert sent[1].get("credit") == 0 and sent[2] == {"type": "ack", "interest": 5, "step": 1}


def test_a_refused_feed_ends_with_the_reason_and_the_others_continue():
    conversation, feed = following()
    conversation.disconnect()
    failure = parts.FailureSpec("UndefinedName", "no relation is called 'n'")
    reopen(conversation, lambda id: replies.ErrorReply(failure, id))
    assert conversation.connected and not conversation.feeds
    with pytest.raises(kpg.UndefinedName):
        feed.rows()


@pytest.mark.parametrize("origin", [None, ("writer", 1)])
def test_a_transaction_is_sent_again_only_with_its_origin(origin):
    conversation = Conversation()
    procedure = procedures.ask(conversation, calls.insert("n", [(1,)], origin=origin))
    assert isinstance(next(procedure), Send) and next(procedure) == Receive()
    conversation.disconnect()
    if origin is None:
        with pytest.raises(kpg.Unreachable):
            next(procedure)
        return
    assert next(procedure) == Receive()  # until there is a connection
    reopen(conversation)
    again = json.loads(next(procedure).text)
    assert again["origin"] == {"writer": "writer", "batch": 1}


def test_a_repeatable_request_is_not_sent_forever():
    conversation = Conversation()
    procedure = procedures.ask(conversation, calls.ping())
    with pytest.raises(kpg.Unreachable):
        for _ in range(10 * procedures.MAX_ATTEMPTS):
            if isinstance(next(procedure), Send):
                conversation.disconnect()
                conversation.connected = True


def test_pauses_grow_to_a_limit_and_end():
    now = [0.0]
    pauses = Backoff(30.0, lambda: now[0])
    lengths = []
    while (pause := pauses.next_pause()) is not None:
        lengths.append(pause)
        now[0] += pause
    assert lengths[0] <= 0.05 and max(lengths) <= 2.0 and now[0] == pytest.approx(30.0)
