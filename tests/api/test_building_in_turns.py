"""Dataflows that are built in turns: what others do meanwhile is in the answer, and nobody sees half a dataflow."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kpg
from kpg import col
from kpg.api import waiting_requests
from kpg.api.waiting_requests import WaitingRequests
from kpg.columns.building_turns import building_in_turns

STEPS = 6


@pytest.fixture(autouse=True)
def tiny_turns(monkeypatch):
    """Let a request be left at each pause."""
    monkeypatch.setattr(waiting_requests, "TURN_SECONDS", 0.0)


def opened(**options):
    db = kpg.open(**options)
    db.serve_requests(WaitingRequests())
    edges = db.input("edges", src=int, dst=int)
    roots = db.input("roots", node=int)
    return db, edges, roots


def paths(db, edges, roots):
    """The nodes that a walk of at most STEPS edges reaches, with the number of walks, and a loop and constants."""
    reached = nodes = roots.select(node="node")
    for _ in range(STEPS):
        nodes = edges.join(nodes, on={"src": "node"}).select(node="dst")
        reached = reached.concat(nodes)
    loop = roots.iterate(lambda seen: edges.join(seen, on={"src": "node"}).select(node="dst").concat(seen).distinct())
    return reached.concat(loop, db.values([(1,), (2,)], node=int)).count("node")


def build(db, plan, results, **options):
    def run():
        try:
            with db.in_turns(), building_in_turns():
                results.append(plan.output(**options))
        except kpg.KpgError as error:
            results.append(error)

    db.completion.requests.start(run, "builder")


def finish(db):
    while db.work():
        pass


CHANGES = st.lists(
    st.tuples(st.sampled_from(["edge", "root", "work", "none"]), st.integers(0, 4), st.integers(0, 4)), max_size=30
)


@settings(max_examples=25, deadline=None)
@given(CHANGES, st.sampled_from([0, 3, None]), st.booleans())
def test_an_answer_that_is_built_in_turns_has_all_changes_made_meanwhile(changes, history, keep):
    db, edges, roots = opened(history=history)
    with db:
        edges.insert([(0, 1), (1, 2), (2, 0)])
        roots.insert([(0,)])
        db.advance(wait=False)
        finish(db)
        results, parts = [], 0
        build(db, paths(db, edges, roots), results, keep=keep)
        while not results:
            kind, *numbers = changes[parts % len(changes)] if changes else ("none",)
            if kind == "edge":
                edges.insert([tuple(numbers)])
            elif kind == "root":
                roots.insert([numbers[:1]])
            if kind == "work":
                db.work(0.0)
            elif kind != "none":
                db.advance(wait=False)
            assert all(flow.name in ("edges", "roots") for flow in db.worker.dataflows.values() if not shared(flow))
            db.completion.requests.resume(idle=False)
            parts += 1
        assert parts > STEPS
        whole = paths(db, edges, roots).output()
        first = db.epoch - 1
        seen = []
        for _ in range(3):
            finish(db)
            assert {time for _, time, _ in whole.changes()} <= set(range(db.epoch))
            seen += results[0].changes()
            assert total(seen) == sorted(whole.rows())
            edges.insert([(3, 4), (0, 3)])
            db.advance(wait=False)
        assert history != 0 or all(time >= first for _, time, _ in seen), "no change has a time before the answer"


def shared(flow):
    """Whether a dataflow is an index that queries share."""
    return flow.name.startswith(("edges by", "roots by"))


def total(changes):
    sums = {}
    for row, _, diff in changes:
        sums[row] = sums.get(row, 0) + diff
    assert all(count in (0, 1) for count in sums.values())
    return sorted(row for row, count in sums.items() if count)


def test_half_a_dataflow_is_not_listed_and_keeps_what_it_will_read():
    db, edges, roots = opened()
    with db:
        edges.insert([(0, 1)])
        roots.insert([(5,)])
        by_src = edges.arrange("src")
        db.advance(wait=False)
        finish(db)
        before, users = db.describe(), by_src.installed.users
        results = []
        build(db, paths(db, by_src, roots), results)
        assert by_src.installed.users > users and not results
        assert [flow["name"] for flow in db.describe()["dataflows"]] == [flow["name"] for flow in before["dataflows"]]
        assert not by_src.installed.readers()
        by_src.release()
        with pytest.raises(kpg.InUse):
            edges.drop()
        while not results:
            db.completion.requests.resume(idle=False)
        finish(db)
        assert results[0].rows() == [(1, 1), (2, 1), (5, 2)]


@pytest.mark.parametrize("parts", range(0, 60, 7))
def test_a_build_that_is_cancelled_leaves_nothing_behind(parts):
    db, edges, roots = opened()
    with db:
        edges.insert([(0, 1)])
        roots.insert([(5,)])
        by_src = edges.arrange("src")
        db.advance(wait=False)
        finish(db)
        flows, users, results = set(db.worker.dataflows), by_src.installed.users, []
        build(db, paths(db, by_src, roots), results)
        for _ in range(parts):
            db.completion.requests.resume(idle=False)
        if not results:
            db.completion.requests.cancel("builder", kpg.Closed("gone"))
            assert isinstance(results[0], kpg.Closed)
        else:
            results[0].release()
        assert set(db.worker.dataflows) == flows
        assert by_src.installed.users == users and not by_src.installed.readers()
        edges.insert([(1, 2)])
        db.advance(wait=False)
        finish(db)
        by_src.release()
        edges.drop()


def test_a_relation_that_fails_while_a_query_on_it_is_built_fails_the_query():
    db, edges, roots = opened()
    with db:
        roots.insert([(5,)])
        doubled = edges.select(src="src", dst=col("dst") + 1).arrange("src")
        db.advance(wait=False)
        finish(db)
        results, users = [], doubled.installed.users
        build(db, paths(db, doubled, roots), results)
        assert doubled.installed.users > users and not results
        db.worker.fail(doubled.installed.dataflow, kpg.Stopped("stopped"))
        while not results:
            db.completion.requests.resume(idle=False)
        assert isinstance(results[0], kpg.Stopped)
