"""The event log of several workers: the same relations as on one, with the entities of all workers side by side."""

from __future__ import annotations

import os
import signal
from collections import Counter

import pytest

import kpg
from kpg.api.waiting_requests import WaitingRequests
from kpg.observe import attributes as event_log
from kpg.observe.event_log import EventLog, unlogged
from kpg.observe.metrics import snapshot
from kpg.query.edn import parse_query
from kpg.query.installed_program import InstalledProgram
from kpg.query.ir.compile import compile
from kpg.service import Service

ALIVE = """
[:find ?name (sum ?size)
 :where
 [?x :differential.event/size ?size]
 [?x :timely.event.operates/name ?name]
 (not [?x :timely.event.operates/shutdown? true])]
"""
SIZES = "[:find ?n (sum ?s) :where [?x :differential.event/size ?s] [?x :timely.event.operates/name ?n]]"


@pytest.fixture(params=[False, True], ids=["waiting", "in slices"])
def db(request):
    with kpg.open(workers=2) as opened:
        if request.param:
            opened.serve_requests(WaitingRequests())
        yield opened


def close(db):
    db.advance()
    db.settle()


def test_each_worker_reports_its_operators(db):
    """A13.2, A1.17: sizes and time on two workers, and in the figures for a monitor."""
    keys = db.input("keys", k=int)
    keys.arrange("k")
    with EventLog(db, []) as log:
        keys.insert([(k,) for k in range(100)])
        close(db)
        rows = {operator.worker: operator.rows for operator in log.operators() if operator.name == "arrange keys by k"}
        assert sorted(rows) == [0, 1] and sum(rows.values()) == 100 and min(rows.values()) > 10
        assert log.operators()[0].seconds > 0 and log.dataflows()[0].seconds > 0
        seconds = [metric for metric in snapshot(db) if metric.name == "kpg_dataflow_seconds_total"]
        assert {dict(metric.labels)["worker"] for metric in seconds} == {"0", "1"}
    assert not [metric for metric in snapshot(db) if metric.name == "kpg_dataflow_seconds_total"]


def test_the_query_of_the_thesis_sums_over_all_workers(db):
    """A13.2"""
    with EventLog(db) as log:
        edges = db.input("edges", src=int, dst=int)
        degree = edges.arrange("src").count("src").output("degree")
        edges.insert([(node % 100, node) for node in range(2_000)])
        close(db)
        with (
            unlogged(db),
            InstalledProgram(db, compile(parse_query(ALIVE, log.attributes)), inputs=log.inputs) as alive,
        ):
            close(db)
            assert ("arrange edges by src", 2_000) in alive.rows("query")
            degree.release()
            close(db)
            close(db)
            assert "degree" not in dict(alive.rows("query"))
        scope = dict(log[event_log.SCOPE].output("scope").rows())
        workers = Counter(root(entity, scope) for entity in scope)
        assert set(workers) == {-1, -2} and workers[-1] == workers[-2]
        db.outputs["scope"].release()


def root(entity, scope):
    """Return the worker of an entity."""
    while entity in scope:
        entity = scope[entity]
    return entity


def test_a_query_that_is_not_logged_lets_the_log_come_to_rest(db):
    with EventLog(db, [event_log.SIZE, event_log.NAME, event_log.STEPS]) as log:
        with unlogged(db):
            sizes = log[event_log.STEPS].output("steps")
        keys = db.input("keys", k=int)
        count = keys.count("k").output("count")
        keys.insert([(k,) for k in range(10)])
        close(db)
        states = [None, sizes.rows()]
        while states[-1] != states[-2] or not states[-1]:  # merges in quiet moments are steps as well
            assert len(states) < 50
            close(db)
            states.append(sizes.rows())
        assert not any("steps" in name for name in dict(log[event_log.NAME].output("names").rows()).values())
        db.outputs["names"].release()
        sizes.release()
        count.release()


def test_single_steps_of_all_workers_are_those_of_the_last_epoch(db):
    with EventLog(db, [event_log.STEP_OPERATOR, event_log.STEP_ELAPSED]) as log:
        keys = db.input("keys", k=int)
        count = keys.count("k").output("count")
        with unlogged(db):
            steps, elapsed = (log[name].output() for name in (event_log.STEP_OPERATOR, event_log.STEP_ELAPSED))
        keys.insert([(k,) for k in range(50)])
        close(db)
        close(db)
        assert {entity >> 52 for _, entity in steps.rows()} == {0, 1}
        assert [step for step, _ in elapsed.rows()] == [step for step, _ in steps.rows()]
        for output in (steps, elapsed, count):
            output.release()


def test_a_worker_that_was_lost_counts_again(tmp_path):
    with kpg.open(tmp_path / "db", workers=2) as db, EventLog(db, [event_log.SIZE, event_log.NAME]) as log:
        keys = db.input("keys", k=int)
        keys.arrange("k")
        keys.insert([(k,) for k in range(100)])
        db.advance()
        with unlogged(db):
            alive = InstalledProgram(
                db,
                compile(
                    parse_query(ALIVE.replace("(not [?x :timely.event.operates/shutdown? true])", ""), log.attributes)
                ),
                inputs=log.inputs,
            )
        db.advance()
        os.kill(db.coordinator.members[1].pid, signal.SIGKILL)
        for _ in range(3):
            db.advance()
        assert db.recoveries == 1
        assert ("arrange keys by k", 100) in alive.rows("query")
        alive.release()


def test_clients_of_a_service_observe_all_workers(db):
    """A13.3"""
    service = Service(db)
    service.create_relation("edge", {"x": int, "y": int})
    service.observe([event_log.SIZE, event_log.NAME])
    service.register(SIZES, language="edn", name="sizes")
    interest = service.interest("sizes", log=False)
    service.put("edge", [(n, n) for n in range(100)])
    for _ in range(2):  # the events of an epoch are written with the next one
        db.settle()
        service.advance()
    db.settle()
    sizes = Counter()
    for row, _, diff in interest.take():
        sizes[row] += diff
    assert sizes["arrange edge by x", 100] == 1
    service.uninterest(interest)
    service.close()
