"""Counts of any size in a service: exact in Python, and an error where a message cannot hold them."""

import pytest

import kpg
from kpg.errors import DataError, OverLimit, SchemaMismatch
from kpg.server.change_payload import take_payload
from kpg.service import Change, Limits, Service

MAX = 2**63 - 1


@pytest.fixture
def service():
    with kpg.open() as db:
        service = Service(db)
        service.create_attribute(":raw", int, semantics="raw")
        yield service


def test_changes_have_exact_counts_in_python(service):
    interest = service.interest(":raw")
    interest.take()
    time = service.transact([Change(":raw", (1, 2), -MAX), Change(":raw", (1, 2), -MAX)])
    changes = interest.take()
    assert list(changes) == [((1, 2), time, -2 * MAX)]
    with pytest.raises(DataError, match="the answer holds a row more often than 64 bits can count"):
        changes.to_arrow()


def test_an_interest_fails_once_a_message_cannot_hold_a_count(service):
    interest = service.interest(":raw", owner=7)
    assert take_payload(interest).failed is None
    service.transact([Change(":raw", (1, 2), -(2**53))])
    payload = take_payload(interest)
    assert isinstance(payload.failed, DataError) and payload.diffs == ()
    assert payload.failed.detail == f"Messages hold counts up to {2**53 - 1}; this one is {-(2**53)}."
    service.transact([Change(":raw", (1, 2), 2**53)])
    assert isinstance(take_payload(interest).failed, DataError), "the client has missed a change"


def test_a_count_beyond_the_limit_of_rows_is_refused(service):
    interest = service.interest(":raw")
    service.transact([Change(":raw", (1, 2), MAX), Change(":raw", (3, 4), MAX)])
    with pytest.raises(OverLimit):
        interest.take()


def test_a_diff_beyond_64_bits_is_refused(service):
    with pytest.raises(SchemaMismatch, match=f"change 1: the diff {2**63} does not fit 64 bits"):
        service.transact([Change(":raw", (1, 2)), Change(":raw", (1, 2), 2**63)])


def test_first_rows_beyond_the_unread_limit_are_sent_in_messages_as_numbers():
    with kpg.open() as db:
        service = Service(db, limits=Limits(waiting_rows=10))
        service.create_relation("node", {"x": int})
        began = service.put("node", [(row,) for row in range(25)])
        interest = service.interest("node", owner=7)
        later = service.transact([Change("node", (3,), -1), Change("node", (99,))])
        payload = take_payload(interest)
        messages = list(payload.messages(10, step=1))
        assert [message.more for message in messages] == [True] * (len(messages) - 1) + [False]
        assert all(type(number) is int for message in messages for number in (*message.times, *message.diffs))
        taken = [
            change
            for message in messages
            for change in zip((row for (row,) in message.rows), message.times, message.diffs, strict=True)
        ]
        first = [(row, began, 1) for row in range(25)]
        assert sorted(taken) == sorted([*first, (3, later, -1), (99, later, 1)])
