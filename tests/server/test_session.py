"""Sessions without sockets: which requests are accepted when and from which role; no input breaks a session."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kpg.errors import KpgError, UndefinedName
from kpg.protocol import parts, replies, requests
from kpg.protocol.message_codec import encode
from kpg.protocol.messages import VERSION
from kpg.server.session import AllowChanges, CloseConnection, RunRequest, SendMessage, Session
from kpg.server.session_limits import SessionLimits
from kpg.server.tokens import Tokens, tokens_of

TOKENS = tokens_of([("admin", "an-admin-token"), ("user", "a-user-token")])
SMALL = SessionLimits(message_bytes=2_000, queries=2, pending=3)


def opened(token: str = "a-user-token", allowance: SessionLimits = SMALL) -> Session:
    session = Session(7, TOKENS, allowance)
    (said,) = session.receive(encode(requests.HelloRequest(0, VERSION, token)))
    assert isinstance(said.message, replies.WelcomeReply)
    return session


def refusal(steps) -> parts.FailureSpec:
    """The error that was sent, alone or before the connection is closed."""
    assert isinstance(steps[0], SendMessage) and isinstance(steps[0].message, replies.ErrorReply)
    return steps[0].message.failure


def test_a_good_token_opens_a_session_with_its_role():
    assert opened("an-admin-token").role == "admin"
    assert opened("a-user-token").role == "user"


@pytest.mark.parametrize("token", [None, "a-user-toke", "an-admin-token ", "x"])
def test_a_wrong_token_is_refused_and_the_connection_ends(token):
    session = Session(1, TOKENS, SMALL)
    steps = session.receive(encode(requests.HelloRequest(3, VERSION, token)))
    assert refusal(steps).error == "NotAuthorised" and steps[0].message.id == 3
    assert isinstance(steps[1], CloseConnection) and session.state == "closed"
    assert session.receive(encode(requests.HelloRequest(4, VERSION, "a-user-token"))) == []


@pytest.mark.parametrize(
    "first", [encode(requests.PingRequest(1)), "{", '{"type": "hello", "id": 1, "version": 2}', b"hello", "x" * 3_000]
)
def test_the_first_message_must_be_hello_and_there_is_no_second_try(first):
    session = Session(1, Tokens(), SMALL)
    steps = session.receive(first)
    assert refusal(steps) and isinstance(steps[-1], CloseConnection) and session.state == "closed"


def test_pending_requests_are_limited_in_bytes_too():
    session = opened(allowance=SessionLimits(message_bytes=2_000, pending_bytes=2_500))
    large = [requests.QueryRequest(number, "x" * 1_500) for number in (1, 2)]
    assert session.receive(encode(large[0])) == [RunRequest(large[0])]
    assert refusal(session.receive(encode(large[1]))).error == "ResourceError"
    assert session.receive(encode(requests.PingRequest(3))) == [RunRequest(requests.PingRequest(3))]
    session.finish_request(large[0], replies.DoneReply(1))
    assert session.receive(encode(large[1])) == [RunRequest(large[1])]


def test_a_bad_message_is_refused_with_its_id_and_the_session_continues():
    session = opened()
    steps = session.receive('{"type": "query", "id": 9, "txt": "edge"}')
    assert steps[0].message.id == 9 and refusal(steps).hint == "Did you mean 'text'?"
    assert refusal(steps).position == parts.PositionSpec(path="$.txt")
    assert session.receive(encode(requests.PingRequest(10))) == [RunRequest(requests.PingRequest(10))]


@pytest.mark.parametrize("data", [b"\x00", "x" * 2_001])
def test_binary_and_oversize_messages_end_the_connection_with_a_reason(data):
    steps = opened().receive(data)
    assert refusal(steps).hint and steps[1].code in (1003, 1009)


@pytest.mark.parametrize(
    "request_", [requests.AdvanceRequest(1), requests.CloseInputRequest(1, "edge"), requests.ShutdownRequest(1)]
)
def test_only_admins_move_the_clock_close_inputs_and_end_the_server(request_):
    """A14.3: advance, close input and shutdown."""
    assert refusal(opened("a-user-token").receive(encode(request_))).error == "NotAuthorised"
    assert opened("an-admin-token").receive(encode(request_)) == [RunRequest(request_)]


def test_only_admins_have_sinks():
    asked = encode(requests.InterestRequest(1, "path", sink=parts.SinkSpec("file", "x")))
    assert refusal(opened().receive(asked)).error == "NotAuthorised"


@pytest.mark.parametrize("kind", [requests.UninterestRequest, requests.TakeRequest])
def test_a_session_cannot_name_an_interest_of_another(kind):
    """A12.4: an interest belongs to the session that made it."""
    assert refusal(opened().receive(encode(kind(1, 42)))).error == "UndefinedName"


def test_a_reached_limit_is_named_in_the_error():
    session = opened()
    for number in range(3):
        assert session.receive(encode(requests.PingRequest(number))) == [RunRequest(requests.PingRequest(number))]
    full = refusal(session.receive(encode(requests.PingRequest(3))))
    assert full.error == "ResourceError" and "may have 3" in full.what
    session.finish_request(requests.PingRequest(0), replies.DoneReply(0))
    assert session.receive(encode(requests.PingRequest(3))) == [RunRequest(requests.PingRequest(3))]


def test_pending_interests_count_towards_the_limit():
    session = opened()
    first = requests.InterestRequest(1, "a")
    session.receive(encode(first))
    session.finish_request(first, replies.InterestedReply(1, 11, "a", ()))
    session.add_interest(first, 11, True)
    session.receive(encode(requests.InterestRequest(2, "b")))
    assert "too many interests" in refusal(session.receive(encode(requests.InterestRequest(3, "c")))).what


def test_an_id_is_not_used_again_before_its_reply():
    session = opened()
    session.receive(encode(requests.PingRequest(1)))
    assert "still waits" in refusal(session.receive(encode(requests.PingRequest(1)))).what


def test_changes_are_taken_once_for_each_credit():
    """A14.1: changes are pushed, no more of them than the client can take."""
    session = opened()
    asked = requests.InterestRequest(1, "path", credit=2)
    session.receive(encode(asked))
    assert session.add_interest(asked, 5, True) == [AllowChanges(5)]
    session.mark_queued(5)
    assert session.mark_sent(5) == [AllowChanges(5)]  # one credit is left
    session.mark_queued(5)
    assert session.mark_sent(5) == []  # none is
    assert session.receive(encode(requests.AckRequest(5))) == [AllowChanges(5)]
    assert session.receive(encode(requests.AckRequest(5))) == []  # it is allowed already
    assert session.receive(encode(requests.AckRequest(99))) == []  # ended while it was on its way


def test_without_credit_the_next_changes_wait_until_the_last_are_sent():
    session = opened()
    asked = requests.InterestRequest(1, "path")
    session.receive(encode(asked))
    session.add_interest(asked, 5, True)
    session.mark_queued(5)
    assert not session.flows[5].is_open()
    assert session.mark_sent(5) == [AllowChanges(5)]


def test_a_plan_or_a_text_is_registered_and_not_both():
    session = opened()
    assert "either text or plan" in refusal(session.receive(encode(requests.RegisterRequest(1)))).what
    plan = {"rules": []}
    registered = requests.RegisterRequest(1, None, plan, "plan")
    assert session.receive(encode(registered)) == [RunRequest(registered)]


GIVEN = [None, "a-user-token", "an-admin-token"]
REQUESTS = st.one_of(
    st.builds(requests.HelloRequest, st.integers(0, 5), st.integers(0, 2), st.sampled_from(GIVEN)),
    st.builds(requests.PingRequest, st.integers(0, 5)),
    st.builds(requests.InterestRequest, st.integers(0, 5), st.sampled_from("ab"), credit=st.none() | st.integers(1, 2)),
    st.builds(requests.UninterestRequest, st.integers(0, 5), st.integers(0, 5)),
    st.builds(requests.TakeRequest, st.integers(0, 5), st.integers(0, 5)),
    st.builds(requests.AckRequest, st.integers(0, 5), st.integers(1, 3)),
    st.builds(requests.RegisterRequest, st.integers(0, 5), st.none() | st.just("a(1).")),
    st.builds(requests.QueryRequest, st.integers(0, 5), st.text(max_size=3)),
    st.builds(requests.AdvanceRequest, st.integers(0, 5)),
    st.builds(requests.ShutdownRequest, st.integers(0, 5)),
)
GARBAGE = st.text(max_size=20) | st.binary(max_size=5) | st.just("x" * 3_000)
COMES = REQUESTS.map(encode) | REQUESTS.map(encode) | REQUESTS.map(lambda request: encode(request)[:-2]) | GARBAGE


@settings(max_examples=200)
@given(st.booleans(), st.lists(COMES, max_size=12), st.randoms(use_true_random=False))
def test_each_request_gets_one_reply_for_any_sequence_of_messages(greets, comes, chance):
    """Bad input: a session's guarantees hold for any messages and any order of the engine's results."""
    session = Session(1, TOKENS, SMALL)
    asked, answered, hung = [], [], False
    for data in [encode(requests.HelloRequest(0, VERSION, "a-user-token"))] * greets + comes:
        was_open, was_closed = session.state == "open", session.state == "closed"
        for step in session.receive(data):
            assert not was_closed
            match step:
                case RunRequest(request):
                    assert was_open
                    assert session.role == "admin" or not isinstance(
                        request, requests.AdvanceRequest | requests.ShutdownRequest
                    )
                    asked.append(request)
                case CloseConnection():
                    hung = True
                case SendMessage(message):
                    json.loads(encode(message))
        while asked and chance.random() < 0.5 and session.state == "open":
            request = asked.pop(chance.randrange(len(asked)))
            answered += finish(session, request, chance)
    assert hung == (session.state == "closed")
    if session.state == "open":
        for request in list(asked):
            answered += finish(session, request, chance)
        assert not session.pending
    session.close()
    assert session.receive(encode(requests.PingRequest(1))) == []
    assert all(
        isinstance(reply, replies.ErrorReply | replies.DoneReply | replies.InterestedReply) for reply in answered
    )


def finish(session: Session, request, chance) -> list:
    """Finish a request with a random result."""
    if chance.random() < 0.3:
        result: replies.AnyReply | KpgError = UndefinedName("there is nothing of that name")
    elif isinstance(request, requests.InterestRequest):
        result = replies.InterestedReply(request.id, chance.randrange(6), "a", ())
    else:
        result = replies.DoneReply(request.id, 1)
    said = [step.message for step in session.finish_request(request, result)]
    assert [reply.id for reply in said] == [request.id]
    if isinstance(result, replies.InterestedReply):
        session.add_interest(request, result.interest, True)
    return said
