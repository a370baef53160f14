"""A db on a directory: after a close, a crash, a lock, a full disk, and a new open."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from pyarrow import fs

import kpg
from kpg import col
from kpg.algebra.frontier import CLOSED, Frontier
from tests.storage.directories import copy_of, files_of, flip

ROOT = Path(__file__).parent.parent.parent


def edges_of(db, **more):
    """Declare the relation of these tests, and install an answer."""
    edges = db.input("edges", src=int, name=str | None, **more)
    return edges, edges.output("all")


def test_rows_return_once_the_relation_is_declared_again(tmp_path):
    with kpg.open(tmp_path) as db:
        edges, answer = edges_of(db)
        edges.insert([(1, "a"), (2, None), (1, "a")])
        assert db.advance() == 0
        edges.remove([(1, "a")])
        assert db.advance() == 1
    for _ in range(2):
        with kpg.open(str(tmp_path)) as db:
            assert db.epoch >= 2
            edges, answer = edges_of(db)
            assert answer.rows() == [(1, "a"), (2, None)]
            counts = edges.count("src").output("counts")
            assert counts.rows() == [(1, 1), (2, 1)]
            db.checkpoint()
            assert db.advance() >= 2


def test_a_crash_loses_no_acknowledged_transaction(tmp_path):
    db = kpg.open(tmp_path / "db")
    edges, _ = edges_of(db)
    for number in range(3):
        edges.insert([(number, "x")])
        db.advance()
    edges.insert([(99, "not advanced")])
    with kpg.open(copy_of(tmp_path / "db")) as again:
        assert again.epoch == 3 and edges_of(again)[1].rows() == [(0, "x"), (1, "x"), (2, "x")]
    db.close()


def test_a_relation_can_be_reopened_with_another_key_or_column_order(tmp_path):
    with kpg.open(tmp_path) as db:
        edges = db.input("edges", src=int, dst=int)
        edges.arrange("dst")
        edges.insert([(n, 7 - n) for n in range(8)])
        db.advance()
        db.checkpoint()
        edges.insert([(8, 8)])
        edges.update_at([(9, 9)], 5)
        db.advance()
    for keys in (("src",), ("dst", "src"), ("dst",)):
        with kpg.open(tmp_path) as db:
            edges = db.input("edges", src=int, dst=int)
            by = edges.arrange(*keys)
            join = by.join(edges.select(**{key: col(key) for key in keys}, seen=col("src")), on=keys).output("join")
            assert len(join.rows()) == 9
            assert sorted(edges.output("all").rows()) == sorted([(n, 7 - n) for n in range(8)] + [(8, 8)])
            db.checkpoint()


def test_rows_for_later_times_wait_through_log_and_checkpoint(tmp_path):
    with kpg.open(tmp_path) as db:
        edges, _ = edges_of(db)
        edges.update_at([(4, "four"), (6, "six")], [4, 6])
        db.advance()
    with kpg.open(tmp_path) as db:
        edges, answer = edges_of(db)
        assert answer.rows() == []
        db.checkpoint()
    with kpg.open(tmp_path) as db:
        edges, answer = edges_of(db)
        db.advance_to(5)
        assert answer.rows() == [(4, "four")]
    with kpg.open(tmp_path) as db:
        assert edges_of(db)[1].rows() == [(4, "four")]
        db.advance_to(7)
        assert len(db["all"].rows()) == 2


def test_history_survives_a_restart(tmp_path):
    with kpg.open(tmp_path, history=None) as db:
        edges, _ = edges_of(db)
        for number in range(3):
            edges.insert([(number, None)])
            db.advance()
        db.checkpoint()
    with kpg.open(tmp_path, history=None) as db:
        answer = edges_of(db)[1]
        assert [len(answer.rows(as_of=epoch)) for epoch in range(3)] == [1, 2, 3]
    with kpg.open(tmp_path) as db:  # keeps the last epoch only
        answer = edges_of(db)[1]
        with pytest.raises(kpg.TimeTooEarly):
            answer.rows(as_of=1)
        db.advance()
        while db.idle():
            pass
        db.checkpoint()
    with kpg.open(tmp_path, history=None) as db:  # compacted history does not come back
        answer = edges_of(db)[1]
        assert len(answer.rows()) == 3
        with pytest.raises(kpg.TimeTooEarly):
            answer.rows(as_of=0)


def test_empty_epochs_are_durable_because_readers_count_them(tmp_path):
    with kpg.open(tmp_path) as db:
        for _ in range(4):
            db.advance()
    with kpg.open(tmp_path) as db:
        assert db.epoch == 4


def test_a_closed_input_and_an_ended_clock_survive_a_restart(tmp_path):
    with kpg.open(tmp_path) as db:
        edges, answer = edges_of(db)
        edges.insert([(1, "a")])
        edges.close()
        with kpg.open(copy_of(tmp_path)) as again:
            again.advance()
            assert edges_of(again)[1].rows() == [(1, "a")]
        db.advance()
        assert answer.rows() == [(1, "a")]
    with kpg.open(tmp_path) as db:
        edges, answer = edges_of(db)
        assert answer.rows() == [(1, "a")]
        edges.update_at([(2, "b")], 10)
        db.advance_to(CLOSED)
    with kpg.open(tmp_path) as db:
        assert edges_of(db)[1].rows() == [(1, "a"), (2, "b")] and db.epoch == 11


def test_times_of_two_coordinates_survive_a_restart(tmp_path):
    with kpg.open(tmp_path, coordinates=2) as db:
        rows = db.input("rows", x=int)
        rows.update_at([(1,), (2,)], [(0, 0), (3, 3)])
        db.advance_to(Frontier([(1, 0), (0, 2)]))
    with kpg.open(tmp_path, coordinates=2) as db:
        assert db.time == Frontier([(1, 0), (0, 2)])
        answer = db.input("rows", x=int).output("all")
        db.advance_to((4, 4))
        assert {row for row, _, _ in answer.changes()} == {(1,), (2,)}


def test_a_relation_that_is_not_declared_again_is_kept(tmp_path):
    with kpg.open(tmp_path) as db:
        edges_of(db)[0].insert([(1, "kept")])
        other = db.input("other", x=str)
        other.insert([("o",)])
        db.advance()
    with kpg.open(tmp_path) as db:
        other = db.input("other", x=str)
        other.remove([("o",)])
        db.advance()
        db.reclaim()
        other.insert([("takes the number of what was reclaimed",)])
        db.advance()
        db.checkpoint()
        db.checkpoint()
    with kpg.open(tmp_path) as db:
        assert edges_of(db)[1].rows() == [(1, "kept")]
        assert db.input("other", x=str).output("o").rows() == [("takes the number of what was reclaimed",)]


def test_a_dropped_relation_does_not_return(tmp_path):
    with kpg.open(tmp_path) as db:
        edges = db.input("edges", x=int)
        edges.insert([(1,)])
        db.advance()
        edges.drop()
    with kpg.open(tmp_path) as db:
        assert edges_of(db)[0].schema.names == ("src", "name")


def test_another_schema_is_refused_and_the_error_shows_the_stored_one(tmp_path):
    with kpg.open(tmp_path) as db:
        edges_of(db)
    with kpg.open(tmp_path) as db:
        for columns in ({"src": int, "name": str}, {"src": int}, {"name": str | None, "src": int}):
            with pytest.raises(kpg.SchemaMismatch, match="edges was stored with other columns or another key") as error:
                db.input("edges", **columns)
            assert "name: string?" in (error.value.detail or "")
        edges_of(db)
    with pytest.raises(kpg.SchemaMismatch, match="coordinate"):
        kpg.open(tmp_path, coordinates=2)


def test_upserts_replace_rows_from_before_the_crash(tmp_path):
    with kpg.open(tmp_path) as db:
        users = db.input("users", key="id", id=int, name=str)
        users.upsert([(1, "a"), (2, "b")])
        db.advance()
    with kpg.open(tmp_path) as db:
        users = db.input("users", key="id", id=int, name=str)
        users.upsert([(1, "c")])
        db.advance()
        assert users.output("all").rows() == [(1, "c"), (2, "b")]


def test_a_failed_transaction_leaves_nothing_and_a_repeated_one_has_no_effect(tmp_path):
    with kpg.open(tmp_path) as db:
        edges, answer = edges_of(db)
        edges.insert([(0, "before")])

        def fails(db):
            edges.insert([(1, "half")])
            edges.update_at([(1, "later")], 50)
            raise ValueError("no more")

        with pytest.raises(ValueError, match="no more"):
            db.transact(fails)
        epoch = db.transact(lambda db: edges.insert([(2, "whole")]), origin=("writer", 1))
        assert answer.rows() == [(0, "before"), (2, "whole")] and epoch == 0
        assert db.transact(lambda db: edges.insert([(2, "whole")]), origin=("writer", 1)) == 0 and db.epoch == 1
        db.checkpoint()
    with kpg.open(tmp_path) as db:
        edges, answer = edges_of(db)
        db.transact(lambda db: edges.insert([(2, "whole")]), origin=("writer", 1))
        db.transact(lambda db: edges.insert([(3, "next")]), origin=("writer", 2))
        assert answer.rows() == [(0, "before"), (2, "whole"), (3, "next")]
        with pytest.raises(kpg.TypeMismatch, match="is not an origin"):
            db.transact(lambda db: None, origin="writer")
    with kpg.open() as db:  # in memory the same holds while it is open
        rows = db.input("rows", x=int)
        for _ in range(2):
            db.transact(lambda db: rows.insert([(1,)]), origin=("w", 1))
        assert rows.output("all").rows() == [(1,)]


def test_clients_of_a_db_in_the_background_share_epochs(tmp_path):
    db = kpg.open(tmp_path, background=True)
    db.input("edges", src=int, name=str | None)
    errors: list[BaseException] = []

    def client(number):
        for step in range(20):
            row = (100 * number + step, "x")
            db.transact(lambda db, row=row: db["edges"].insert([row]), origin=(f"client {number}", step))
            try:
                db.transact(lambda db: db["edges"].insert([("bad", "x")]))
            except kpg.SchemaMismatch as error:
                errors.append(error)

    threads = [threading.Thread(target=client, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(errors) == 8 * 20 and db.epoch <= 2 * 8 * 20
    db.close()
    with kpg.open(tmp_path) as db:
        assert len(edges_of(db)[1].rows()) == 8 * 20


def test_a_transaction_in_the_background_waits_its_turn(tmp_path):
    db = kpg.open(background=True)
    rows = db.input("rows", x=int)
    gate, busy = threading.Event(), threading.Event()
    db.submit(lambda db: (busy.set(), gate.wait()))
    busy.wait()  # the first call has left the queue
    epochs: list[int] = []

    def client(number):
        epochs.append(db.transact(lambda db: rows.insert([(number,)])))

    threads = [threading.Thread(target=client, args=(number,)) for number in range(5)]
    for thread in threads:
        thread.start()
    while db._owner._queue.qsize() < 5:
        pass
    after = db.submit(lambda db: db.epoch)
    gate.set()
    for thread in threads:
        thread.join()
    assert epochs == [0] * 5 and after.result() == 1, "five in one epoch, and then what was asked after them"
    assert db.run(lambda db: db.transact(lambda db: db["rows"].insert([(9,)]))) == 1
    db.close()


def test_checkpoints_run_automatically_when_the_log_has_grown(tmp_path):
    with kpg.open(tmp_path, checkpoint_bytes=4000) as db:
        edges, answer = edges_of(db)
        rows = 0
        while rows < 100 or (max(db.describe()["storage"]["manifests"]) < 2 and rows < 20_000):  # another thread writes
            edges.insert([(rows, "x" * 20)])
            db.advance()
            rows += 1
        assert max(db.describe()["storage"]["manifests"]) >= 2
    with kpg.open(tmp_path) as db:
        assert len(edges_of(db)[1].rows()) == rows
    with kpg.open() as db, pytest.raises(kpg.Unavailable, match="not durable"):
        db.checkpoint()


def test_damage_in_the_log_raises_and_nothing_is_guessed(tmp_path):
    with kpg.open(tmp_path) as db:
        edges, _ = edges_of(db)
        for number in range(5):
            edges.insert([(number, "x")])
            db.advance()
    (segment,) = files_of(tmp_path, "log-*.kpg")
    flip(segment, 400)
    with pytest.raises(kpg.Corrupt, match=r"log-\d+.kpg is damaged at offset \d+"):
        kpg.open(tmp_path)


def test_a_directory_belongs_to_one_process_until_that_process_ends(tmp_path):
    program = "import sys, kpg; db = kpg.open(sys.argv[1]); print('open', flush=True); sys.stdin.read()"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    other = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
    )
    assert other.stdout is not None and other.stdout.readline() == b"open\n"
    with pytest.raises(kpg.InUse, match="open in another process") as error:
        kpg.open(tmp_path)
    assert f"process {other.pid}" in (error.value.detail or "")
    other.kill()
    other.wait()
    with kpg.open(tmp_path) as db, pytest.raises(kpg.InUse, match="in this process already"):
        kpg.open(tmp_path)
        db.advance()


FULL = """
import os, resource, sys, kpg
place, limit = sys.argv[1], int(sys.argv[2])
db = kpg.open(place, checkpoint_bytes=1 << 40)
edges = db.input("edges", src=int, name=str | None)
answer = edges.output("all")
edges.insert([(0, "first")])
db.advance()
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
failed = 0
done = 1
for number in range(1, 40):
    edges.insert([(number, os.urandom(50_000).hex())])
    try:
        db.advance()
        done = number + 1
    except kpg.Unavailable as error:
        assert "log-" in error.what and error.hint, error
        assert len(answer.rows()) == done, "reading goes on"
        failed += 1
        break
assert failed == 1
resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, resource.RLIM_INFINITY))
try:
    db.checkpoint()
    raise SystemExit("the checkpoint should not fit")
except kpg.Unavailable as error:
    assert "batch-" in error.what, error
assert not [name for name in os.listdir(place) if name.endswith(".partial")]
assert len(answer.rows()) == done
acknowledged = done
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
db.advance()                                   # the pending rows are written now
assert len(answer.rows()) == done + 1
db.checkpoint()
print(acknowledged)
os._exit(1)                                    # a crash, not an end
"""


def test_a_full_disk_raises_and_loses_nothing(tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    limit = 3 << 19
    ran = subprocess.run(
        [sys.executable, "-c", FULL, str(tmp_path), str(limit)], capture_output=True, text=True, env=environment
    )
    assert ran.returncode == 1 and ran.stdout.strip().isdigit(), ran.stderr[-2000:]
    with kpg.open(tmp_path) as db:
        assert len(edges_of(db)[1].rows()) == int(ran.stdout) + 1


def test_a_db_runs_on_any_filesystem_of_arrow(tmp_path):
    filesystem = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())
    for number in range(3):
        with kpg.open("db", filesystem=filesystem) as db:
            edges, answer = edges_of(db)
            edges.insert([(number, "x")])
            db.advance()
            assert len(answer.rows()) == number + 1
            if number == 1:
                db.checkpoint()


@pytest.mark.parametrize("durable", [True, False])
def test_a_named_reader_finds_all_changes_since_its_last_visit(tmp_path, durable):
    db = kpg.open(tmp_path / "db" if durable else None)
    edges, answer = edges_of(db)
    edges.insert([(0, "x")])
    db.advance()
    db.set_reader("dashboard", 0)
    for number in range(1, 4):
        edges.insert([(number, "x")])
        db.advance()
        db.idle()
    if durable:
        db.checkpoint()
        db.close()
        db = kpg.open(tmp_path / "db")
        edges, answer = edges_of(db)
        assert db.readers["dashboard"].time == (0,)
    assert [len(answer.rows(as_of=epoch)) for epoch in range(4)] == [1, 2, 3, 4]
    db.set_reader("dashboard", 2)
    with pytest.raises(kpg.TimeTooEarly):
        answer.rows(as_of=1)
    with pytest.raises(kpg.TimeTooEarly, match="cannot begin at 1"):
        db.set_reader("late", 1)
    db.drop_reader("dashboard")
    with pytest.raises(kpg.UndefinedName):
        db.drop_reader("dashboard")
    with pytest.raises(kpg.TimeTooEarly):
        answer.rows(as_of=2)
    db.close()


def test_a_checkpoint_includes_transactions_that_no_answer_includes_yet(tmp_path):
    with kpg.open(tmp_path / "db") as db:
        rows = db.input("rows", x=int)
        rows.count("x").output("count")
        for x in range(5):
            rows.insert([(x,)])
            db.advance(wait=False)
        db.checkpoint()
        rows.insert([(5,)])
        db.advance(wait=False)
    with kpg.open(tmp_path / "db") as db:
        assert db.input("rows", x=int).output().rows() == [(x,) for x in range(6)]


def test_idle_work_of_a_busy_db_is_done_beside_the_next_write(tmp_path):
    with kpg.open(tmp_path / "db") as db:
        edges = db.input("edges", src=int, dst=int)
        spine = edges.base().handle.spine
        counts = []
        for number in range(3 * db.merge_policy.busy_interval + 1):
            edges.insert([(number, number)])
            db.advance()
            counts.append(spine.batch_count)
        interval = db.merge_policy.busy_interval
        assert counts[interval - 1] == interval, "not after the advance at which it is due"
        assert counts[interval] <= 3, "but with the next one: the merged rows, and its own"
        assert max(counts) <= interval + 2


def test_an_interrupt_of_idle_work_beside_a_write_leaves_each_row_once(tmp_path, monkeypatch):
    with kpg.open(tmp_path / "db") as db:
        edges = db.input("edges", src=int, dst=int)
        answer = edges.output("answer")
        interval = db.merge_policy.busy_interval
        publisher = edges.base().publisher
        monkeypatch.setattr(publisher, "idle_merge", lambda fuel: setattr(db.worker, "interrupted", True))
        for number in range(interval):
            edges.insert([(number, number)])
            db.advance()
        edges.insert([(interval, interval)])
        with pytest.raises(KeyboardInterrupt):
            db.advance()
        monkeypatch.undo()
        edges.insert([(interval + 1, interval + 1)])
        db.advance()
        expected = [(number, number) for number in range(interval + 2)]
        assert answer.rows() == expected
    with kpg.open(tmp_path / "db") as db:
        assert db.input("edges", src=int, dst=int).output("answer").rows() == expected
