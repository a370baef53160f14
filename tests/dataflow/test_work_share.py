"""Work gets its share of the time beside requests without a pause, and delays none of them for long."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpg.api.waiting_requests import WaitingRequests
from kpg.dataflow.work_share import MAX_SLICE_SECONDS, WORK_SHARE, WorkShare


@given(st.lists(st.floats(1e-5, 0.003), min_size=1, max_size=200))
def test_slices_between_short_requests_get_their_share(requests):
    share, worked = WorkShare(), 0.0
    for seconds in requests:
        share.requests_took(seconds)
        slice_seconds = share.least_seconds
        assert slice_seconds <= MAX_SLICE_SECONDS
        share.slice_took(slice_seconds)
        worked += slice_seconds
    assert worked == pytest.approx((sum(requests) + worked) * WORK_SHARE)


def test_a_long_request_owes_one_slice_and_work_that_ends_is_owed_nothing():
    share = WorkShare()
    share.requests_took(10.0)
    assert share.least_seconds == MAX_SLICE_SECONDS
    share.slice_took(1.0)
    assert share.least_seconds == 0.0
    share.requests_took(10.0)
    share.forgive()
    assert share.least_seconds == 0.0


def test_a_slice_after_a_long_request_is_not_ended_before_its_share(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr("kpg.api.waiting_requests.perf_counter", lambda: clock[0])
    requests = WaitingRequests(has_arrived=lambda: True)

    def work_for(seconds):
        clock[0] += seconds

    requests.start(lambda: work_for(0.004), session=1)
    with requests.during_slice():
        clock[0] += 0.001
        assert not requests.ends_slice()
        clock[0] += 0.001
        assert requests.ends_slice()
    with requests.during_slice():  # it had its share: now a request ends a slice soon
        clock[0] += 0.0006
        assert requests.ends_slice()
