"""A cluster on a directory: every acknowledged transaction is present once, whichever process is killed and when."""

import contextlib
import os
import random
import resource
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import kpg
from kpg import col
from kpg.cluster import generations
from kpg.cluster.data_connections import DataClient
from kpg.cluster.data_requests import UpdatesRequest
from kpg.cluster.rank_commands.staging_commands import HoldCommand, ReleaseHoldCommand
from kpg.columns.symbols import Symbols
from kpg.columns.updates import spread
from kpg.storage.storage import Storage

Edges = Counter[tuple[int, int]]


def build(db: kpg.Database) -> tuple[kpg.Input, kpg.Input, kpg.Output, kpg.Output]:
    """Two relations, a recursive answer, and one with text."""
    edges = db.input("edges", src=int, dst=int)
    names = db.input("names", key="id", id=int, name=str)
    reach = edges.iterate(
        lambda seen: seen.join(edges, on={"dst": "src"}).select("src", dst=col("dst_right")).concat(edges).distinct()
    )
    return edges, names, reach.output("reach"), names.count("name").output("counts")


def reached(edges: Edges) -> set[tuple[int, int]]:
    """What `build` should say of some edges."""
    pairs = {edge for edge, count in edges.items() if count}
    while True:
        more = pairs | {(a, d) for a, b in pairs for c, d in edges if b == c and edges[c, d]}
        if more == pairs:
            return pairs
        pairs = more


def kill(db: Any, rank: int) -> None:
    os.kill(db.coordinator.members[rank].pid, signal.SIGKILL)


def test_a_restarted_worker_has_everything_that_was_acknowledged(tmp_path: Path) -> None:
    """A1.16 A17.1: the caller sees a pause; changes that were read are not repeated, and none is omitted."""
    with kpg.open(tmp_path / "db", workers=2) as db:
        edges, names, reach, counts = build(db)
        edges.insert([(1, 2), (2, 3)])
        names.upsert([(1, "a"), (2, "b"), (3, "a")])
        db.advance()
        assert sorted(row for row, _, _ in reach.changes()) == [(1, 2), (1, 3), (2, 3)]
        for rank, checkpoint in ((0, False), (1, True), (0, True)):
            if checkpoint:
                assert db.checkpoint() >= 0
            edges.insert([(3 + db.epoch, 1)])  # not acknowledged when the worker dies
            names.upsert([(1, f"round {db.epoch}")])
            kill(db, rank)
            time_ = db.advance()
            assert {when for _, when, _ in reach.changes()} == {time_}
            assert (f"round {time_}", 1) in counts.rows() and sum(count for _, count in counts.rows()) == 3
        assert db.recoveries == 3
        late = edges.count("src").output("late")
        assert len(late.rows()) == 5
    with kpg.open(tmp_path / "db", workers=2) as db:
        edges, names, reach, counts = build(db)
        assert len(edges.count("src").output().rows()) == 5 and ("b", 1) in counts.rows()
        assert db.epoch == 4 and len(reach.rows()) == 3 + 3 * 3


PROGRAM = """
import sys, kpg
with kpg.open(sys.argv[1], workers=2, checkpoint_bytes=2000) as db:
    numbers = db.input("numbers", n=int, text=str)
    while True:
        epoch = db.epoch
        numbers.insert([(epoch, f"text {epoch % 7}"), (-epoch, "negative")])
        db.advance()
        print(epoch, flush=True)
"""


def test_a_killed_process_finds_everything_that_was_acknowledged(tmp_path: Path) -> None:
    """The process is killed at any point, repeatedly; then every acknowledged transaction is present once."""
    acknowledged = -1
    for seconds in (0.3, 0.0, 0.15):
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(tmp_path / "db")], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        first = int(process.stdout.readline())
        assert first in (acknowledged + 1, acknowledged + 2)  # one more may have been written than was printed
        time.sleep(seconds)
        process.kill()
        lines = [first, *map(int, process.stdout.read().split())]
        acknowledged = lines[-1]
        process.wait()
    with kpg.open(tmp_path / "db", workers=2) as db:
        numbers = db.input("numbers", n=int, text=str)
        rows = numbers.output().rows()
        last = db.epoch - 1
        assert last in (acknowledged, acknowledged + 1)
        expected = [(n, f"text {n % 7}") for n in range(last + 1)] + [(-n, "negative") for n in range(last + 1)]
        assert sorted(rows) == sorted(expected)


@pytest.mark.timeout(900)
def test_fifty_kills_lose_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the middle of a load, an epoch, a merge, a checkpoint, a recovery: the answers are the oracle's throughout."""
    chance = random.Random(7)
    monkeypatch.setattr(
        generations, "RECOVERY_SECONDS", 600.0
    )  # a slow machine may meet them all while it does one thing
    killed: set[int] = set()
    stop = threading.Event()

    def murder(db: Any) -> None:
        while len(killed) < 50 and not stop.wait(chance.choice([0.0, 0.01, 0.05, 0.2, 0.6])):
            member = db.coordinator.members.get(chance.randrange(2))
            if member is not None and member.pid not in killed:
                with contextlib.suppress(ProcessLookupError):  # it has just been replaced
                    os.kill(member.pid, signal.SIGKILL)
                    killed.add(member.pid)

    with kpg.open(tmp_path / "db", workers=2, checkpoint_bytes=20_000) as db:
        edges, names, reach, counts = build(db)
        present: Edges = Counter()
        called: dict[int, str] = {}
        heard: Counter[Any] = Counter()
        killer = threading.Thread(target=murder, args=(db,))
        killer.start()
        try:
            while len(killed) < 50:
                for _ in range(chance.randrange(1, 6)):
                    edge = (chance.randrange(8), chance.randrange(8))
                    if present[edge] and chance.random() < 0.6:
                        edges.remove([edge])
                        present[edge] -= 1
                    else:
                        edges.insert([edge])
                        present[edge] += 1
                many = {chance.randrange(500): chance.choice("abc") for _ in range(chance.choice([1, 300]))}
                names.upsert(list(many.items()))
                called |= many
                db.advance()
                for row, _, diff in reach.changes():
                    heard[row] += diff
                assert {row for row, count in heard.items() if count} == reached(present)
        finally:
            stop.set()
            killer.join()
        assert set(reach.rows()) == reached(present)
        assert dict(counts.rows()) == Counter(called.values())
        assert db.recoveries >= 10
    with kpg.open(tmp_path / "db", workers=2) as db:
        edges, names, reach, counts = build(db)
        assert set(reach.rows()) == reached(present) and dict(counts.rows()) == Counter(called.values())


def test_workers_that_die_again_and_again_end_the_call_and_lose_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A call gives up in bounded time, says where the rows are, and the next one continues once workers live again."""
    monkeypatch.setattr(generations, "RECOVERY_SECONDS", 1.0)
    begun, stop = threading.Event(), threading.Event()

    def murder(db: Any) -> None:
        while not stop.wait(0.02):
            for member in tuple(db.coordinator.members.values()):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(member.pid, signal.SIGKILL)
            begun.set()

    with kpg.open(tmp_path / "db", workers=2) as db:
        kv = db.input("kv", key="k", k=int, v=str)
        answer = kv.output("answer")
        kv.upsert([(1, "a"), (2, "a")])
        db.advance()
        kv.upsert([(1, "b")])
        killer = threading.Thread(target=murder, args=(db,))
        killer.start()
        begun.wait()  # an advance takes less time than the first wait of the killer
        began = time.monotonic()
        with pytest.raises(kpg.WorkerLost) as lost:
            db.advance()
        assert time.monotonic() - began < 60
        assert str(tmp_path) in str(lost.value) and "on a directory" not in str(lost.value)
        with pytest.raises(kpg.WorkerLost):
            kv.upsert([(2, "not inserted")])
        stop.set()
        killer.join()
        monkeypatch.setattr(generations, "RECOVERY_SECONDS", 60.0)
        db.advance()
        assert answer.rows() == [(1, "b"), (2, "a")]


def test_rows_of_a_closed_input_count_once_after_a_loss(tmp_path: Path) -> None:
    """Pending rows when the input is closed, and workers lost before the next advance."""
    with kpg.open(tmp_path / "db", workers=2) as db:
        numbers = db.input("numbers", n=int)
        answer, probe = numbers.output("answer"), numbers.probe()
        numbers.insert([(1,), (2,)])
        db.advance()
        numbers.insert([(3,)])
        numbers.close()
        with pytest.raises(kpg.Closed):
            numbers.insert([(4,)])
        kill(db, 0), kill(db, 1)
        db.advance()
        assert answer.rows() == [(1,), (2,), (3,)] and not probe.frontier()
        kill(db, 1)
        assert answer.rows() == [(1,), (2,), (3,)]
    with kpg.open(tmp_path / "db", workers=2) as db:
        assert db.input("numbers", n=int).output().rows() == [(1,), (2,), (3,)]


def test_a_drop_that_a_kill_interrupts_takes_effect_on_all_workers_or_none(tmp_path: Path) -> None:
    """One worker has dropped the relation when all processes end: the next db has all of its rows, or no relation."""
    with kpg.open(tmp_path / "db", workers=2) as db:
        for name in ("kept", "dropped"):
            db.input(name, n=int).insert([(n,) for n in range(20)])
        db.advance()
    storage = Storage(tmp_path / "db" / "rank-1")
    storage.recover(Symbols())
    storage.drop("dropped")
    storage.close()
    with kpg.open(tmp_path / "db", workers=2) as db:
        assert db.input("dropped", text=str).output().rows() == []  # it may have other columns now
        assert len(db.input("kept", n=int).output().rows()) == 20


def test_a_recovery_repeats_no_arrangement_that_was_released(tmp_path: Path) -> None:
    """Its plan may name an input that was dropped since; and a long life must not make recoveries slow."""
    with kpg.open(tmp_path / "db", workers=2) as db:
        numbers = db.input("numbers", n=int)
        large = numbers.filter(col("n") > 1)
        index = large.arrange("n")
        answer = index.count("n").output("answer")
        index.release()
        numbers.insert([(n % 3,) for n in range(9)])
        db.advance()
        kill(db, 0)
        assert answer.rows() == [(2, 3)]  # it still reads the released index
        answer.release()
        for _ in range(3):
            large.arrange("n").release()
        numbers.drop()
        assert db.generations.history.structure == []
        kill(db, 1)
        db.advance()


def test_a_worker_that_is_lost_beside_a_checkpoint_leaves_the_last_common_one(tmp_path: Path) -> None:
    """Workers end their parts of a checkpoint at different moments, while transactions go on."""
    inserted: list[int] = []
    with kpg.open(tmp_path / "db", workers=2) as db:
        numbers = db.input("numbers", n=int, text=str)
        answer = numbers.output("all")
        assert db.checkpoints is not None
        for rank, seconds in ((0, 0.0), (1, 0.02)):
            load = range(50_000 * rank, 50_000 * (rank + 1))
            numbers.insert(pa.table({"n": list(load), "text": [f"text {n}" for n in load]}))
            db.advance()
            db.checkpoints._begin()
            numbers.insert([(-1, "beside")])
            db.advance()
            time.sleep(seconds)
            kill(db, rank)
            db.advance()
            inserted += [*load, -1]
            assert sorted(answer.snapshot()["n"].to_pylist()) == sorted(inserted)
        assert db.recoveries == 2 and db.checkpoint() > 0
        assert db.generations.checkpoint == db.time
    with kpg.open(tmp_path / "db", workers=2) as db:
        answer = db.input("numbers", n=int, text=str).output("all")
        assert sorted(answer.snapshot()["n"].to_pylist()) == sorted(inserted)


@pytest.mark.parametrize("disk_full_on", [0, 1])
def test_checkpoints_that_fail_on_one_worker_leave_the_directory_readable(tmp_path: Path, disk_full_on: int) -> None:
    """The others must not remove the last checkpoint that all workers have."""
    with kpg.open(tmp_path / "db", workers=2, checkpoint_bytes=1) as db:
        numbers = db.input("numbers", n=int)
        numbers.insert([(n,) for n in range(100)])
        db.advance()
        blocked = tmp_path / "db" / f"rank-{disk_full_on}"
        for number in range(2, 100):
            for file in range(4):  # a directory where a batch file is to be: it cannot be written
                (blocked / f"batch-{number:08d}-{file:04d}.parquet.partial").mkdir()
        for n in range(1, 6):
            numbers.insert([(100 * n,)])
            db.advance()  # which must not raise: the transaction is acknowledged
            with pytest.raises(kpg.Unavailable):
                db.checkpoint()  # waits for the one in the background, too
        while db.describe()["trouble"] is None:
            db.advance()
        assert "checkpoint failed" in db.describe()["trouble"]
    for directory in blocked.glob("*.partial"):
        directory.rmdir()
    with kpg.open(tmp_path / "db", workers=2) as db:
        assert len(db.input("numbers", n=int).output().rows()) == 105


def test_a_damaged_checkpoint_of_one_worker_is_skipped_by_all(tmp_path: Path) -> None:
    with kpg.open(tmp_path / "db", workers=2) as db:
        numbers = db.input("numbers", n=int)
        for n in range(4):
            numbers.insert([(n,)])
            db.advance()
            db.checkpoint()
    newest = sorted((tmp_path / "db" / "rank-1").glob("manifest-*.json"))[-1]
    newest.write_bytes(newest.read_bytes()[:-5])
    with kpg.open(tmp_path / "db", workers=2) as db:
        numbers = db.input("numbers", n=int)
        assert sorted(numbers.output().rows()) == [(n,) for n in range(4)]


def test_a_directory_belongs_to_its_number_of_workers(tmp_path: Path) -> None:
    with kpg.open(tmp_path / "db", workers=2) as db:
        db.input("numbers", n=int)
        with pytest.raises(kpg.InUse):
            kpg.open(tmp_path / "db", workers=2)
    with pytest.raises(kpg.SchemaMismatch, match="on several workers") as refused:
        kpg.open(tmp_path / "db")
    assert "2 workers" in (refused.value.detail or "") and "--workers N" in (refused.value.hint or "")
    with pytest.raises(kpg.SchemaMismatch, match="belongs to 2 workers"):
        kpg.open(tmp_path / "db", workers=3)
    with kpg.open(tmp_path / "db", workers=2) as db, pytest.raises(kpg.SchemaMismatch):
        db.input("numbers", n=str)
    with kpg.open(tmp_path / "alone"):
        pass
    with pytest.raises(kpg.SchemaMismatch, match="without workers"):
        kpg.open(tmp_path / "alone", workers=2)
    with pytest.raises(kpg.ProgramError):
        kpg.open("s3://bucket/db", workers=2)


HOLDER = """
import sys, time
from kpg.storage.lock import Lock
held = Lock(sys.argv[1])
print("held", flush=True)
sys.stdin.read()
"""


def test_workers_wait_for_those_of_a_killed_process(tmp_path: Path) -> None:
    """A17.1: a worker of the client before, deep in some work, still has its part of the directory open."""
    with kpg.open(tmp_path / "db", workers=2) as db:
        db.input("numbers", n=int).insert([(1,)])
        db.advance()
    late = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path / "db" / "rank-1")],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert late.stdout is not None and late.stdout.readline() == "held\n"
    with pytest.raises(kpg.InUse):
        Storage(tmp_path / "db" / "rank-1")
    threading.Timer(1.5, late.kill).start()
    with kpg.open(tmp_path / "db", workers=2) as db:
        assert db.input("numbers", n=int).output().rows() == [(1,)]
    late.wait()


def test_a_batch_of_a_writer_counts_once(tmp_path: Path) -> None:
    def insert(batch: int) -> Any:
        return lambda db: db["numbers"].insert([(batch,)])

    def fail(db: kpg.Database) -> None:
        db["numbers"].insert([(9,)])
        raise ZeroDivisionError

    for _ in range(2):
        with kpg.open(tmp_path / "db", workers=2) as db:
            numbers = db.input("numbers", n=int)
            for batch in (0, 1, 1, 0):
                db.transact(insert(batch), origin=("writer", batch))
            kill(db, 0)
            db.transact(insert(1), origin=("writer", 1))
            with pytest.raises(ZeroDivisionError):
                db.transact(fail)
            db.advance()
            assert sorted(numbers.output().rows()) == [(0,), (1,)]


def test_a_full_disk_raises_and_loses_nothing_acknowledged(tmp_path: Path) -> None:
    """The rows that could not be written are still open, and are written when there is room again."""
    with kpg.open(tmp_path / "db", workers=2) as db:
        numbers = db.input("numbers", n=int)
        answer = numbers.output("answer")
        numbers.insert([(n,) for n in range(10)])
        db.advance()
        full = db.coordinator.members[1].pid
        unlimited = resource.prlimit(full, resource.RLIMIT_FSIZE)
        resource.prlimit(full, resource.RLIMIT_FSIZE, (100_000, unlimited[1]))
        numbers.insert([(n,) for n in range(10, 100_010)])
        with pytest.raises(kpg.StorageError):
            db.advance()
        assert sorted(answer.rows()) == [(n,) for n in range(10)]
        resource.prlimit(db.coordinator.members[1].pid, resource.RLIMIT_FSIZE, unlimited)
        db.advance()
        assert len(answer.rows()) == 100_010
    with kpg.open(tmp_path / "db", workers=2) as db:
        assert len(db.input("numbers", n=int).output().rows()) == 100_010


def test_a_reader_that_is_behind_finds_its_history_after_a_loss(tmp_path: Path) -> None:
    """A hold that lasts keeps what answers are made of, on disk too: after a kill, and in the next process."""
    expected: Counter[Any] = Counter()

    def read(db: Any) -> Counter[Any]:
        assert {reply.value for reply in db.ask(HoldCommand("r", "answer", 1, lasting=True))} == {1}
        request = UpdatesRequest("answer", "r", 2, 7)
        totals: Counter[Any] = Counter()
        for member in db.coordinator.members.values():
            with DataClient(member.address, db.coordinator.secret, Symbols()) as client:
                updates = client.ask(request)[1][0]
            times, diffs = spread(updates.times, len(updates))[0], spread(updates.diffs, len(updates))[0]
            rows = zip(*updates.data.tolist(), strict=True)
            for row, when, diff in zip(rows, times.tolist(), diffs.tolist(), strict=True):
                totals[row, when] += diff
        return +totals

    with kpg.open(tmp_path / "db", workers=2, history=3) as db:
        numbers = db.input("numbers", n=int)
        answer = numbers.distinct().output("answer")
        for n in range(7):
            numbers.insert([(n,), (n + 100,)])
            epoch = db.advance()
            if epoch >= 2:
                expected.update({((n,), epoch): 1, ((n + 100,), epoch): 1})
            if epoch == 3:
                read(db)  # the hold begins
            if epoch == 5:
                db.checkpoint()
        assert read(db) == expected
        kill(db, 1)
        db.advance()
        assert read(db) == expected and db.recoveries == 1
    with kpg.open(tmp_path / "db", workers=2) as db:
        answer = db.input("numbers", n=int).distinct().output("answer")
        assert read(db) == expected and len(answer.rows()) == 14
        db.ask(ReleaseHoldCommand("r"))
        db.advance()
        with pytest.raises(kpg.TimeTooEarly):
            read(db)
