"""Requests that compute in turns, and queues of requests: order, fairness, limits and cancellation."""

import pytest

from kpg.api import waiting_requests
from kpg.api.request_queue import RequestQueue
from kpg.api.waiting_requests import WaitingRequests
from kpg.columns.memory_budget import budget, reserve
from kpg.columns.pause_points import can_pause, pause
from kpg.errors import Closed


@pytest.fixture
def requests(monkeypatch):
    """Requests that are left at each pause."""
    monkeypatch.setattr(waiting_requests, "TURN_SECONDS", 0.0)
    return WaitingRequests()


def computing(requests, log, name, parts):
    """Return a request that computes in some parts."""

    def run():
        with requests.in_turns():
            for part in range(parts):
                log.append((name, part))
                pause()

    return run


def test_requests_that_compute_take_turns(requests):
    log = []
    for name in "abc":
        requests.start(computing(requests, log, name, 3), name)
    assert log == [("a", 0), ("b", 0), ("c", 0)] and requests.some_in_turns
    while requests:
        before = len(log)
        requests.resume(idle=False)
        assert len(log) <= before + 1, "one of them continues in each round"
    assert log == [(name, part) for part in range(3) for name in "abc"]


def test_a_request_that_is_left_takes_its_turns_and_its_budget_with_it(requests):
    checks = []

    def run():
        with requests.in_turns(), budget(checks.append):
            pause()
            assert can_pause()
            reserve()

    requests.start(run, "a")
    assert not can_pause()
    reserve()
    assert checks == [0]
    requests.resume(idle=False)
    assert checks == [0, 0] and not requests


def test_nothing_is_left_in_an_uninterrupted_block(requests):
    def run():
        with requests.in_turns(), requests.uninterrupted():
            assert not can_pause()
            pause()
        log.append("end")

    log = []
    requests.start(run, "a")
    assert log == ["end"]


def test_a_request_that_computes_is_cancelled_at_its_pause(requests):
    log = []

    def run():
        try:
            computing(requests, log, "a", 3)()
        except Closed:
            log.append("cancelled")

    requests.start(run, "a")
    requests.cancel_all(Closed("the server is shutting down"))
    assert log == [("a", 0), "cancelled"] and not requests


def test_cpu_time_of_other_requests_does_not_count(requests):
    used = []

    def run():
        with requests.in_turns():
            pause()
            used.append(requests.used_seconds)

    requests.start(run, "a")
    requests.start(lambda: sum(range(3_000_000)), "b")
    requests.resume(idle=False)
    assert used[0] < 0.01


def test_a_queue_lets_one_request_in_at_a_time_in_the_order_of_arrival(requests):
    log, queue = [], RequestQueue(requests.wait_for_future)

    def entering(name):
        def run():
            with queue.turn():
                computing(requests, log, name, 2)()

        return run

    for name in "abcd":
        requests.start(entering(name), name)
    for _ in range(20):
        requests.resume(idle=False)
    assert log == [(name, part) for name in "abcd" for part in range(2)]
    assert not queue


def test_a_request_that_is_cancelled_leaves_the_queue(requests):
    log, queue = [], RequestQueue(requests.wait_for_future)

    def entering(name):
        def run():
            try:
                with queue.turn():
                    computing(requests, log, name, 2)()
            except Closed:
                log.append((name, "cancelled"))

        return run

    for name in "abcd":
        requests.start(entering(name), name)
    requests.stop("c", Closed("the client has disconnected"))
    requests.stop("a", Closed("the client has disconnected"))
    for _ in range(20):
        requests.resume(idle=False)
    assert log == [("a", 0), ("c", "cancelled"), ("a", "cancelled"), ("b", 0), ("b", 1), ("d", 0), ("d", 1)]
    assert not queue
