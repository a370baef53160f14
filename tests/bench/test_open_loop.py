"""The open loop measures latencies from when work was due."""

import time as clock

from kpg.bench.open_loop import WallTime, open_loop


class ManualClock:
    """A clock that advances when the loop waits, or when work adds to it."""

    def __init__(self):
        self.at = 100.0

    def now(self):
        return self.at

    def wait(self, seconds):
        self.at += seconds


def test_quick_work_is_done_tick_by_tick():
    time, pieces = ManualClock(), []

    def work(first, last):
        pieces.append((first, last))
        time.at += 0.001

    served = open_loop(work, ticks=5, tick_seconds=0.01, time=time)
    assert pieces == [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)] and not served.saturated and served.calls == 5
    assert all(abs(seconds - 0.001) < 1e-6 for seconds in served.latencies)


def test_ticks_that_came_due_during_a_stall_are_charged_for_it():
    time = ManualClock()

    def work(first, last):
        time.at += 0.05 if first == 0 else 0.001

    served = open_loop(work, ticks=10, tick_seconds=0.01, patience=10, time=time)
    assert len(served.latencies) == 10
    assert abs(served.latencies[0] - 0.05) < 1e-6
    assert abs(served.latencies[1] - 0.041) < 1e-6 and abs(served.latencies[5] - 0.001) < 1e-6


def test_a_system_that_cannot_keep_up_is_stopped_and_its_waiting_work_counts():
    time = ManualClock()

    def work(first, last):
        time.at += 0.05 * (last - first)

    served = open_loop(work, ticks=100, tick_seconds=0.01, time=time)
    assert served.saturated and len(served.latencies) == 100
    assert max(served.latencies) > 1.0


def test_waiting_for_a_tick_ends_in_time_and_leaves_the_core_to_others():
    real, began, spent = WallTime(), clock.perf_counter(), clock.thread_time()
    for _ in range(100):
        real.wait(0.001)
    assert clock.perf_counter() - began >= 0.1
    assert clock.thread_time() - spent < 0.05  # spinning alone would be 0.1


def test_a_load_that_is_never_served_counts_with_the_time_it_has_waited():
    time = ManualClock()

    def work(first, last):
        time.at += 10.0

    served = open_loop(work, ticks=100, tick_seconds=0.01, time=time)
    assert served.saturated and served.calls == 1 and len(served.latencies) == 100
    assert all(abs(seconds - (10 - 0.01 * tick)) < 1e-6 for tick, seconds in enumerate(served.latencies))
