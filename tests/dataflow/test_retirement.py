"""Dataflows end: they retire when their inputs have closed, or their owner drops them at any time (A1.12).

A dataflow that ends releases everything: its operators, its traces, its handles on the traces of others.
"""

import gc
import weakref

import kpg
from kpg import col


def names(db):
    return [dataflow["name"] for dataflow in db.describe()["dataflows"]]


def test_dataflows_retire_when_their_inputs_have_closed():
    """A1.12: without a request; a kept answer stays readable, and holds only its own rows."""
    with kpg.open() as db:
        left, right = db.input("left", k=int, v=int), db.input("right", k=int, w=int)
        pairs = left.join(right, on="k")
        probe = pairs.count("v").probe()
        unkept = pairs.distinct().output("unkept", keep=False)
        kept = pairs.select("k", "w").distinct().output("kept")
        left.insert([(1, 2), (2, 2)])
        right.insert([(1, 3), (2, 3)])
        db.advance()
        traces = weakref.WeakSet(db.spines())
        assert names(db) == ["probe", "left", "right", "unkept", "kept"] and len(traces) == 6
        left.close()
        assert "probe" in names(db), "the right side may still bring rows"
        right.close()
        assert names(db) == ["left", "right", "kept"]
        assert [index["name"] for index in db.describe()["arrangements"]] == ["left by k", "right by k", "kept by k, w"]
        assert len(traces) == 3, "traces that only retired dataflows read are freed"
        for index in db.describe()["arrangements"]:
            assert len(index["pinned_by"]) == 1, "only its owner holds it"
        assert probe.passed(99)
        assert sorted(kept.rows()) == [(1, 3), (2, 3)]
        assert sorted(unkept.changes()) == [((1, 2, 3), 0, 1), ((2, 2, 3), 0, 1)]
        late = left.count("v").output("late")
        assert late.rows() == [(2, 2)], "closed relations can still be read"
        for handle in (kept, unkept, late, probe):
            handle.release()
        left.drop()
        right.drop()
        assert names(db) == [] and not traces and not db.worker.waiting
        assert db.describe()["memory"]["arrangement_bytes"] == 0


def test_a_live_dataflow_can_be_dropped_with_all_it_holds():
    """A1.12: in the middle of a stream, with work queued; others continue, and the shared index has no handle left."""
    with kpg.open(history=None) as db:
        edges = db.input("edges", src=int, dst=int)
        by_src = edges.arrange("src")
        stays = by_src.count("src").output("stays")
        goes = by_src.join(edges.select("dst", src="src"), on="src").distinct().count("src").output("goes")
        edges.insert([(1, 2), (1, 3)])
        db.advance()
        operators = weakref.WeakSet(goes._dataflow.operators)
        traces = weakref.WeakSet(spine for op in goes._dataflow.operators if (spine := trace_of(op)) is not None)
        assert len(operators) > 3 and len(traces) >= 2
        edges.insert([(2, 3)])
        db.push_to(2)  # its messages are in flight
        goes.release()
        del goes
        db.advance()
        assert names(db) == ["edges", "stays"] and not traces
        assert by_src.installed.readers() == ["stays"]
        (shared,) = [index for index in db.describe()["arrangements"] if index["name"] == "edges by src"]
        assert not any("goes" in pin["by"] for pin in shared["pinned_by"])
        assert sorted(stays.rows()) == [(1, 2), (2, 1)]
        gc.collect()
        assert not operators, "no reference leads to a dropped operator"


def test_dropping_a_loop_in_flight_ends_it():
    """A1.12: the messages in the loop are dropped."""
    with kpg.open() as db:
        start = db.input("start", x="uint64")  # sums of these have no kernel that would run all rounds in one step
        loop = start.iterate(lambda x: x.select(x=col("x") + 1).concat(start).filter(col("x") < 10**6).distinct())
        endless, other = loop.output("endless"), start.output("other")
        start.insert([(0,)])
        db.push_to(1)
        for _ in range(1000):
            assert db.worker.step()
        endless.release()
        db.advance()
        assert other.rows() == [(0.0,)] and names(db) == ["start", "other"]


def trace_of(operator):
    spine = getattr(operator, "spine", None)
    return spine() if spine is not None else None
