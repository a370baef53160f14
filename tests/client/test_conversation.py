"""The client without sockets: replies find their requests, steps are complete, and a session can be the other end."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kpg
from kpg.client import calls
from kpg.client.change_feed import ChangeFeed
from kpg.client.conversation import NOT_YET, Conversation
from kpg.client.server_address import address
from kpg.protocol import parts, replies, requests
from kpg.protocol.message_codec import decode, encode
from kpg.server.session import RunRequest, SendMessage, Session
from kpg.server.session_limits import SessionLimits
from kpg.server.tokens import Tokens

COLUMNS = (parts.ColumnSpec("x", "int64"),)


def test_replies_find_their_request_in_any_order():
    conversation = Conversation()
    first, second = calls.ping(), calls.explain("path")
    one, _ = conversation.ask(first)
    two, text = conversation.ask(second)
    assert json.loads(text) == {"type": "explain", "id": two, "name": "path"}
    conversation.receive(encode(replies.ExplainedReply(two, "so")))
    assert conversation.result(one, first) is NOT_YET and conversation.result(two, second) == "so"
    conversation.receive(encode(replies.DoneReply(one, 7)))
    assert conversation.result(one, first) == 7


def test_text_that_cannot_be_sent_is_refused_before_it_ends_the_connection():
    conversation = Conversation()
    with pytest.raises(kpg.InputError, match="surrogate") as refused:
        conversation.ask(calls.explain("a\ud800"))
    assert "ud800" in refused.value.detail
    number, text = conversation.ask(calls.explain("größe 😀"))
    assert json.loads(text) == {"type": "explain", "id": number, "name": "größe 😀"}


def test_pages_are_one_table():
    conversation, call = Conversation(), calls.query("path")
    number, _ = conversation.ask(call)
    conversation.receive(encode(replies.RowsReply(number, COLUMNS, ((1,), (2,)), 3, more=True)))
    assert conversation.result(number, call) is NOT_YET
    conversation.receive(encode(replies.RowsReply(number, COLUMNS, ((3,),), 3)))
    table = conversation.result(number, call)
    assert table.column("x").to_pylist() == [1, 2, 3] and table.schema.metadata[b"time"] == b"3"


def test_a_refusal_is_raised_to_its_caller_and_an_abandoned_reply_is_ignored():
    conversation, call = Conversation(), calls.ping()
    number, _ = conversation.ask(call)
    conversation.receive(
        encode(replies.ErrorReply(parts.FailureSpec("TimeTooEarly", "too early", hint="later"), number))
    )
    with pytest.raises(kpg.TimeTooEarly, match="too early"):
        conversation.result(number, call)
    other, _ = conversation.ask(call)
    conversation.give_up(other)
    conversation.receive(encode(replies.DoneReply(other)))
    with pytest.raises(kpg.ProtocolError):
        conversation.receive(encode(replies.ErrorReply(parts.FailureSpec("ProtocolError", "what was that"))))
    with pytest.raises(kpg.ProtocolError):
        conversation.receive(b"x")


STEPS = st.lists(st.lists(st.tuples(st.integers(0, 3), st.sampled_from([1, -1])), max_size=6), max_size=8)


@settings(max_examples=80)
@given(STEPS, st.randoms(use_true_random=False))
def test_steps_are_whole_and_rows_are_their_sum(steps, chance):
    """A14.4: however steps are cut into messages and whenever they are read, rows are the sum of whole steps."""
    conversation = Conversation()
    call = calls.interest("n")
    number, _ = conversation.ask(call)
    conversation.receive(encode(replies.InterestedReply(number, 5, "n", COLUMNS)))
    conversation.result(number, call)
    feed = conversation.feeds[5]
    want: dict[int, int] = {}
    for time, step in enumerate(steps):
        before = feed.waiting
        cuts = sorted(chance.randrange(len(step) + 1) for _ in range(2))
        parts = [step[: cuts[0]], step[cuts[0] : cuts[1]], step[cuts[1] :]]
        for index, part in enumerate(parts):
            assert feed.waiting == before  # half a step is never seen
            rows, diffs = tuple((x,) for x, _ in part), tuple(diff for _, diff in part)
            conversation.receive(
                encode(replies.ChangesMessage(5, time + 1, rows, (time,) * len(part), diffs, more=index < 2))
            )
        for x, diff in step:
            want[x] = want.get(x, 0) + diff
        if chance.random() < 0.5:
            while feed.waiting:
                conversation.read(feed)
            assert feed.upto == time + 1
            assert sorted(feed.rows()) == sorted((x,) for x, n in want.items() for _ in range(max(0, n)))
    while feed.waiting:
        conversation.read(feed)
    acks = [decode(text, requests.REQUESTS) for text in conversation.outgoing()]
    assert acks == [requests.AckRequest(5)] * len(steps)


def test_changes_of_a_dropped_interest_are_ignored():
    conversation = Conversation()
    feed = ChangeFeed(replies.InterestedReply(0, 5, "n", COLUMNS))
    conversation.feeds[5] = feed
    conversation.drop(feed)
    conversation.receive(encode(replies.ChangesMessage(5, 1, ((1,),), (0,), (1,))))
    assert not feed.waiting


def test_a_session_and_a_conversation_understand_each_other():
    """Both ends without a socket in between."""
    session, conversation = Session(1, Tokens(), SessionLimits()), Conversation()
    call = calls.hello(None)
    number, text = conversation.ask(call)
    (said,) = session.receive(text)
    conversation.receive(encode(said.message))
    assert conversation.result(number, call).role == "admin"
    asks = [
        calls.ping(), calls.create_relation("e", {"x": int, "y": "string?"}, key="x", semantics="cardinality-one"),
        calls.create_attribute(":a", float), calls.transact([("e", (1, "a")), ("e", (2, None), -1)], origin=("w", 1)),
        calls.insert("e", [(2**60, "ü")]), calls.register("p(x) :- e(x, _)."), calls.register({"rules": []}),
        calls.unregister("p"), calls.interest("p", arguments={"x": 1}, granularity=0.5), calls.query("p", as_of=3),
        calls.explain("p"), calls.catalog(), calls.advance(4), calls.close_input("e"), calls.shutdown(),
        calls.sink("p", "p.log", type="latency"), calls.drop_relation("e"),
    ]  # fmt: skip
    for call in asks:
        number, text = conversation.ask(call)
        (asked,) = session.receive(text)
        assert isinstance(asked, RunRequest) and encode(asked.request) == text
        (said,) = session.finish_request(asked.request, kpg.InUse("not now"))
        assert isinstance(said, SendMessage)
        conversation.receive(encode(said.message))
        with pytest.raises(kpg.InUse, match="not now"):
            conversation.result(number, call)


@pytest.mark.parametrize(
    ("given_url", "full"),
    [
        ("localhost", "ws://localhost:8340/"), ("localhost:1", "ws://localhost:1/"), ("https://h:9", "wss://h:9/"),
        ("wss://h", "wss://h:8340/"), ("ws://[::1]:5", "ws://[::1]:5/"),
    ],
)  # fmt: skip
def test_addresses_are_completed(given_url, full):
    assert address(given_url) == full


@pytest.mark.parametrize("wrong", ["ftp://x", "ws://", "ws://h:port", ""])
def test_text_that_is_not_an_address_is_refused(wrong):
    with pytest.raises(kpg.InputError):
        address(wrong)
