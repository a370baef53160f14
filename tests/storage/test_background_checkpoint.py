"""Checkpoints in the background: transactions go on beside one, and a crash at any moment of it loses nothing."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

import kpg
from kpg.bench.warm_workers import load_share
from kpg.trace.unsorted_batch import is_unsorted
from tests.storage.checkpoint_gate import Gate
from tests.storage.directories import copy_of


def open_rows(directory, **options):
    db = kpg.open(directory, **options)
    rows = db.input("rows", n=int, text=str)
    return db, rows, rows.output("all")


def insert(db, rows, *numbers):
    rows.insert([(n, f"text {n}") for n in numbers])
    return db.advance()


def content(directory):
    with kpg.open(directory) as db:
        answer = db.input("rows", n=int, text=str).output("all")
        return Counter() if db.sealed is None else Counter(answer.rows())


def expected(*numbers):
    return Counter((n, f"text {n}") for n in numbers)


def test_transactions_go_on_beside_a_checkpoint(tmp_path):
    with Gate() as gate:
        db, rows, answer = open_rows(tmp_path / "db", checkpoint_bytes=1)
        insert(db, rows, 0)  # begins a checkpoint, which the gate holds
        for n in range(1, 20):
            insert(db, rows, n)
            assert len(answer.rows()) == n + 1
        assert db.describe()["storage"]["manifests"] == [0]
        gate.open()
        gate.settle()
        insert(db, rows, 20)  # collects it, and begins the next
        assert db.describe()["storage"]["manifests"] == [0, 1]
        db.close()  # waits for that one
        assert {"manifest-00000001.json", "manifest-00000002.json"} < set(os.listdir(tmp_path / "db"))
    assert content(tmp_path / "db") == expected(*range(21))


@pytest.mark.parametrize("arranged", [(), ("text",)])
def test_a_crash_after_any_change_of_a_checkpoint_leaves_the_acknowledged_transactions(tmp_path, arranged):
    with Gate() as gate:
        db, rows, _ = open_rows(tmp_path / "db", checkpoint_bytes=1)
        if arranged:
            rows.arrange(*arranged)
        with gate.opened():
            for n in range(5):
                insert(db, rows, n)  # some checkpoints, so that this one has files to remove
                db.checkpoint()
        acknowledged = 5
        for _ in range(12):
            insert(db, rows, acknowledged)
            acknowledged += 1
            gate.settle()
            assert content(copy_of(tmp_path / "db")) == expected(*range(acknowledged))
            gate.let(1)
            assert content(copy_of(tmp_path / "db")) == expected(*range(acknowledged))
        gate.open()
        db.close()
    assert content(tmp_path / "db") == expected(*range(acknowledged))


def test_relations_symbols_and_declarations_may_change_beside_a_checkpoint(tmp_path):
    with Gate() as gate:
        db, rows, _ = open_rows(tmp_path / "db", checkpoint_bytes=1 << 30)
        gone = db.input("gone", text=str)
        gone.insert([("only here",)])
        insert(db, rows, 0, 1)
        db.durable.checkpoint_if_due(db)
        checkpoint = db.durable.begin_checkpoint(db)
        gone.drop()
        rows.remove([(0, "text 0")])
        db.advance()
        db.idle()
        db.reclaim()  # must not free "text 0" and "only here": the checkpoint reads them
        insert(db, rows, 2)  # would reuse their ids
        late = db.input("late", x=int)
        late.insert([(7,)])
        db.advance()
        gate.open()
        assert checkpoint.written.result() >= 2
        db.durable.collect_checkpoint()
        copy = copy_of(tmp_path / "db")
        db.close()
    assert content(copy) == expected(1, 2)
    with kpg.open(copy) as db:
        assert db.input("late", x=int).output().rows() == [(7,)]
        assert "gone" not in db.durable.storage.relations


def test_a_failure_in_the_background_is_reported_and_healed(tmp_path, monkeypatch):
    db, rows, _ = open_rows(tmp_path / "db", checkpoint_bytes=1)
    rename = os.rename

    def fail(source, target):
        if "batch-" in str(target):
            raise OSError(28, "No space left on device")
        rename(source, target)

    monkeypatch.setattr(os, "rename", fail)
    insert(db, rows, 0)
    checkpoint = db.durable.storage.under_way
    with pytest.raises(kpg.Unavailable, match="batch-"):
        checkpoint.written.result()
    insert(db, rows, 1)
    assert "No space left" in db.describe()["storage"]["trouble"]
    monkeypatch.undo()
    db.checkpoint()
    assert db.describe()["storage"]["trouble"] is None
    db.close()
    assert content(tmp_path / "db") == expected(0, 1)


def test_a_load_is_sorted_by_the_checkpoint_and_written_once(tmp_path):
    generator = np.random.default_rng(3)
    keys, values = generator.integers(0, 1 << 40, 300_000), generator.integers(0, 1 << 40, 300_000)
    with kpg.open(tmp_path / "db") as db:
        load = db.input("load", a=int, b=int)
        load.arrange("a")
        load.insert(pa.table({"a": keys, "b": values}))
        db.push_to(1)
        db.worker.run()
        (batch,) = [batch for batch in load.base().handle.batches(None) if len(batch)]
        assert is_unsorted(batch)
        checkpoint = db.durable.begin_checkpoint(db)
        db.idle()
        assert is_unsorted(batch), "idle work leaves the sort to the checkpoint"
        assert checkpoint.written.result() == 1
        db.durable.collect_checkpoint()
        assert not is_unsorted(batch)
        assert db.checkpoint() == 0, "its file is known"
    with kpg.open(tmp_path / "db") as db:
        rows = db.input("load", a=int, b=int).output().snapshot()
        assert sorted(zip(rows["a"].to_pylist(), rows["b"].to_pylist(), strict=True)) == sorted(
            zip(keys.tolist(), values.tolist(), strict=True)
        )


def test_a_checkpoint_imports_no_pandas(tmp_path):
    """The import would hold the interpreter's lock for most of a second, while transactions wait."""
    code = """
import sys, kpg
with kpg.open(sys.argv[1]) as db:
    rows = db.input("rows", n=int, text=str)
    rows.insert([(n, str(n)) for n in range(10)])
    db.advance()
    rows.remove([(3, "3")])
    db.advance()
    db.checkpoint()
    print("pandas" in sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "db")], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"
    with kpg.open(tmp_path / "db") as db:
        assert len(db.input("rows", n=int, text=str).output().rows()) == 9


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("way", ["insert", "upsert"])
def test_no_transaction_waits_for_the_sort_of_a_load_or_for_its_checkpoint(tmp_path, workers, way):
    """A helper thread or the checkpoint sorts a load; in place that would take more than half a second.

    Slowest transactions, each the least of two runs, since a busy machine must not fail the test.
    """
    undisturbed = min(slowest_transaction(tmp_path / f"alone {run}", workers, way, 1) for run in range(2))
    rows = 3_000_000 * workers
    disturbed = min(slowest_transaction(tmp_path / f"beside {run}", workers, way, rows) for run in range(2))
    assert disturbed < undisturbed + 0.4


def slowest_transaction(directory, workers, way, rows):
    """Load rows, which begins a checkpoint; return the seconds of the slowest transaction of one row after that."""
    generator = np.random.default_rng(3)
    load = {name: generator.integers(0, 1 << 40, rows) for name in ("a", "b")}
    options = {} if workers == 1 else {"workers": workers}
    took = []
    with kpg.open(directory, checkpoint_bytes=1 << 20, **options) as db:
        db.input("warming", k=int).insert_made(load_share)  # loading kernels takes a new worker some seconds
        relation = db.input("rows", a=int, b=int, key="a" if way == "upsert" else None)
        change = getattr(relation, way)
        change([(1, 1)])
        db.advance()
        relation.insert(load)
        db.advance()
        for n in range(30):
            began = time.perf_counter()
            change([(n, 2)])
            db.advance()
            took.append(time.perf_counter() - began)
    return max(took)


def test_a_checkpoint_of_a_db_in_the_background_lets_other_calls_run(tmp_path):
    with Gate() as gate, kpg.open(tmp_path / "db", background=True) as db:
        rows = db.input("rows", n=int, text=str)
        answer = rows.output("all")
        db.transact(lambda db: db["rows"].insert([(1, "a")]))
        waiting = db._owner.submit(lambda db: db.checkpoint(), interruptible=True)
        db.transact(lambda db: db["rows"].insert([(2, "b")]))
        assert sorted(answer.rows()) == [(1, "a"), (2, "b")] and not waiting.done()
        gate.open()
        assert waiting.result(60) == 1
