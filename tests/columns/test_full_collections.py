"""Full garbage collections: none while objects come and go, and a short one when the process has grown."""

import gc
import time
from collections import deque

import pytest

from kpg.columns import full_collections
from kpg.columns.full_collections import FullCollections, collect_all_when_due, collect_when_grown

OBJECTS = 40_000  # of which growth makes a full collection due
THRESHOLDS = (100, 5, 5)


@pytest.fixture
def collecting_when_grown(monkeypatch):
    """Collect when grown, in this process, for one test; return what decides."""
    before, frozen = gc.get_threshold(), gc.get_freeze_count()
    monkeypatch.setattr(full_collections, "GROWTH_BLOCKS", OBJECTS)
    monkeypatch.setattr(full_collections, "WHOLE_GROWTH", 0.0)
    monkeypatch.setattr(full_collections, "MIN_WHOLE_GROWTH_BLOCKS", 10 * OBJECTS)
    gc.collect()
    gc.freeze()  # so that the rule of the interpreter itself depends on the objects of the test only
    gc.collect()  # it compares with the objects that the last full collection left
    gc.set_threshold(*THRESHOLDS)
    collect_when_grown()
    collect_when_grown()
    (policy,) = [callback for callback in gc.callbacks if isinstance(callback, FullCollections)]
    try:
        yield policy
    finally:
        gc.callbacks[:] = [callback for callback in gc.callbacks if not isinstance(callback, FullCollections)]
        gc.set_threshold(*before)
        if not frozen:
            gc.unfreeze()


def full_collections_so_far():
    return gc.get_stats()[2]["collections"]


class Node:
    """An object that only a collection frees."""

    living = 0

    def __init__(self):
        Node.living += 1
        self.itself = self

    def __del__(self):
        Node.living -= 1


def come_and_go(make, waves=100, lifetime=10):
    """Make objects in waves, each of which lives for some waves. Return the number of full collections meanwhile."""
    before, living = full_collections_so_far(), deque(maxlen=lifetime)
    for _ in range(waves):
        living.append([make() for _ in range(OBJECTS // 20)])
    return full_collections_so_far() - before


def test_objects_that_become_old_and_go_begin_no_full_collection(collecting_when_grown):
    assert come_and_go(list) == 0


def test_the_interpreter_alone_would_begin_many(collecting_when_grown):
    gc.callbacks.remove(collecting_when_grown)
    gc.set_threshold(*THRESHOLDS)
    assert come_and_go(list) >= 5


def test_garbage_that_grows_is_collected(collecting_when_grown):
    assert come_and_go(Node, lifetime=2) > 0
    assert Node.living < 3 * OBJECTS, "of five times as many"


def longest_full_collection(make):
    """Return the CPU time of the longest full collection while something is made."""
    times, began = [0.0], [0.0]

    def measure(phase, info):
        if info["generation"] == 2:
            if phase == "start":
                began[0] = time.thread_time()
            else:
                times.append(time.thread_time() - began[0])

    gc.callbacks.insert(0, measure)
    try:
        made = make()
    finally:
        gc.callbacks.remove(measure)
    assert made
    return max(times)


def test_collections_stay_short_while_a_process_grows(collecting_when_grown, monkeypatch):
    """Objects that one collection has left are not walked by the next: each is as long as the first, not the last."""
    monkeypatch.setattr(full_collections, "BUSY_GROWTH", 100)  # it does not grow so much

    def grow():
        return [[number] for number in range(20 * OBJECTS)]

    before = full_collections_so_far()
    longest = longest_full_collection(grow)
    assert full_collections_so_far() - before > 10
    kept = grow()
    gc.unfreeze()
    began = time.thread_time()
    gc.collect()
    assert longest < (time.thread_time() - began) / 4, "of a collection of all objects"
    assert kept


def test_a_process_without_idle_moments_collects_garbage_that_was_frozen(collecting_when_grown):
    """Its memory does not grow with the objects that only a collection of all objects frees."""
    most = 0
    for _ in range(100):
        nodes = [Node() for _ in range(OBJECTS)]
        gc.collect()  # freezes them; those of the round before are garbage now
        most = max(most, Node.living)
    assert nodes and OBJECTS < most < 40 * OBJECTS, "of a hundred times as many"


def test_garbage_that_was_frozen_is_collected_when_the_process_is_idle_and_has_grown_much(collecting_when_grown):
    nodes = [Node() for _ in range(3 * OBJECTS)]
    gc.collect()  # freezes them
    collect_all_when_due()
    nodes.clear()
    gc.collect()
    assert Node.living >= 3 * OBJECTS, "frozen objects are not walked"
    collect_all_when_due()
    assert Node.living >= 3 * OBJECTS, "the process has not grown much"
    more = [Node() for _ in range(10 * OBJECTS)]
    collect_all_when_due()
    assert Node.living == len(more)
    more.clear()
    gc.unfreeze()
    gc.collect()
