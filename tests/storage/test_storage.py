"""Storage without a dataflow: recovery finds every acknowledged transaction after any damage of the files."""

import json
import threading
import time

import pytest
from pyarrow import fs

import kpg
from kpg.algebra.frontier import Frontier
from kpg.columns.schema import Schema
from kpg.columns.symbols import Symbols
from kpg.errors import Closed, Corrupt, InUse, SchemaMismatch, Unavailable
from kpg.storage.checkpoint import RelationContent
from kpg.storage.named_readers import NamedReader
from kpg.storage.record import Origin
from kpg.storage.storage import Storage
from kpg.storage.transaction_log import TransactionLog, read_log
from tests.storage.directories import EDGES, checkpoint, commit, copy_of, files_of, flip, rows_of


def opened(directory, **options):
    """Return the storage of a directory, recovered, with EDGES declared."""
    storage, symbols = Storage(directory, **options), Symbols()
    recovered = storage.recover(symbols)
    storage.declare("edges", EDGES, ())
    return storage, symbols, recovered


def test_recovery_finds_each_transaction_once(tmp_path):
    storage, symbols, recovered = opened(tmp_path / "db")
    assert recovered.frontier == Frontier.at((0,)) and rows_of(recovered, symbols) == []
    for epoch in range(5):
        commit(storage, symbols, epoch, [(epoch, f"n{epoch % 2}")])
    for directory in (copy_of(tmp_path / "db"), tmp_path / "db"):
        if directory == tmp_path / "db":
            storage.close()
        again, symbols, recovered = opened(directory)
        assert rows_of(recovered, symbols) == [(epoch, f"n{epoch % 2}") for epoch in range(5)]
        assert again.durable_frontier() == Frontier.at((5,)) and recovered.replayed == 5
        again.close()


def test_a_repeated_batch_has_no_effect_also_after_checkpoints_and_crashes(tmp_path):
    directory = tmp_path / "db"
    storage, symbols, _ = opened(directory)
    assert commit(storage, symbols, 0, [(0, "a")], batch=7)
    assert not commit(storage, symbols, 1, [(0, "a")], batch=7)
    for _ in range(3):
        contents = {"edges": RelationContent(EDGES.names, storage.relations["edges"].batches)}
        if storage.relations["edges"].batches:
            checkpoint(storage, symbols, contents)
        directory = copy_of(directory)
        storage.close()
        storage, symbols, recovered = opened(directory)
        assert Origin("writer", 7) in storage.applied and Origin("writer", 8) not in storage.applied
        assert not commit(storage, symbols, 1, [(0, "a")], batch=7)
        assert rows_of(recovered, symbols) == [(0, "a")]
    storage.close()


def test_threads_share_a_wait_for_the_disk(tmp_path, monkeypatch):
    storage, _, _ = opened(tmp_path / "db")
    log = storage.log
    first, frames = log.next_frame, log.frames
    deadline = time.monotonic() + 60
    segment = type(log._segment)
    wait_flush = segment.wait_flush

    def slow_wait(self):
        """Wait for the first frame until at least two more records wait."""
        while log.frames == frames + 1 and time.monotonic() < deadline:
            if log._unwritten is not None and len(log._unwritten.records) > 1:
                break
            time.sleep(0.001)
        wait_flush(self)

    monkeypatch.setattr(segment, "wait_flush", slow_wait)

    def client(number):
        for step in range(40):
            log.sync(log.append(b"N%d %d" % (number, step)))

    threads = [threading.Thread(target=client, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert log.frames - frames < 8 * 40, "some records shared a frame"
    records = [record for group in read_log(storage.files, first) for record in group]
    assert sorted(records) == sorted(b"N%d %d" % (number, step) for number in range(8) for step in range(40))
    for number in range(8):
        own = [record for record in records if record.startswith(b"N%d " % number)]
        assert own == [b"N%d %d" % (number, step) for step in range(40)], "each thread's records keep their order"
    storage.close()


def test_a_batch_that_two_threads_send_at_the_same_time_is_applied_once(tmp_path):
    """Through the db, which decides about repeated batches before it writes them."""
    with kpg.open(tmp_path / "db", background=True) as db:
        db.input("edges", src=int, name=str)

        def client(number):
            writer = min(number, 6)  # the last two threads are one writer, which sends every batch twice
            for step in range(40):
                row = (1000 * writer + step, "x")
                db.transact(lambda db, row=row: db["edges"].insert([row]), origin=(f"writer {writer}", step))

        threads = [threading.Thread(target=client, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    expected = sorted((1000 * writer + step, "x") for writer in range(7) for step in range(40))
    with kpg.open(tmp_path / "db") as db:
        assert sorted(db.input("edges", src=int, name=str).output("all").rows()) == expected
        assert all(Origin(f"writer {writer}", 39) in db.applied for writer in range(7))


def test_the_log_rolls_segments_and_a_missing_one_is_reported(tmp_path):
    storage, symbols, _ = opened(tmp_path / "db", segment_bytes=400)
    for epoch in range(20):
        commit(storage, symbols, epoch, [(epoch, "x")])
    storage.close()
    segments = files_of(tmp_path / "db", "log-*.kpg")
    assert len(segments) > 3
    storage, symbols, recovered = opened(copy_of(tmp_path / "db"))
    assert len(rows_of(recovered, symbols)) == 20
    storage.close()
    segments[1].unlink()
    with pytest.raises(Corrupt, match="lacks frames"):
        opened(tmp_path / "db")


def test_damage_in_the_middle_of_the_log_names_file_and_offset(tmp_path):
    storage, symbols, _ = opened(tmp_path / "db")
    for epoch in range(4):
        commit(storage, symbols, epoch, [(epoch, "x")])
    storage.close()
    (segment,) = files_of(tmp_path / "db", "log-*.kpg")
    flip(segment, 300)
    with pytest.raises(Corrupt, match=rf"{segment.name} is damaged at offset \d+"):
        opened(tmp_path / "db")
    with pytest.raises(Corrupt):  # the failed attempt has released the directory
        opened(tmp_path / "db")


def test_a_torn_end_is_cut_off_and_the_log_continues_there(tmp_path):
    storage, symbols, _ = opened(tmp_path / "db")
    for epoch in range(4):
        commit(storage, symbols, epoch, [(epoch, "x")])
    end = storage.log._segment.end
    storage.close()
    (segment,) = files_of(tmp_path / "db", "log-*.kpg")
    with segment.open("r+b") as file:
        file.seek(end)
        file.write(b"\xf5kpg half a frame")
    storage, symbols, recovered = opened(tmp_path / "db")
    assert len(rows_of(recovered, symbols)) == 4 and segment.stat().st_size == end
    commit(storage, symbols, 4, [(4, "x")])
    storage.close()
    storage, symbols, recovered = opened(tmp_path / "db")
    assert len(rows_of(recovered, symbols)) == 5
    storage.close()


def write_checkpoints(directory, epochs):
    """Make a directory with a checkpoint after each of some epochs."""
    for epoch in range(epochs):
        storage, symbols, _ = opened(directory)
        commit(storage, symbols, epoch, [(epoch, "x")])
        storage.close()
        storage, symbols, _ = opened(directory)
        storage.register(f"rule {epoch}", {"epoch": epoch})
        storage.set_reader("reader", NamedReader((epoch,), frozenset({"rows"})))
        checkpoint(storage, symbols)
        storage.close()


@pytest.mark.parametrize("kind", ["manifest-*", "batch-*"])
@pytest.mark.parametrize("damage", ["flip", "cut", "empty", "missing"])
def test_if_the_newest_checkpoint_is_damaged_the_one_before_gives_the_same(tmp_path, kind, damage):
    directory = tmp_path / "db"
    write_checkpoints(directory, 4)
    newest = files_of(directory, kind)[-1]
    match damage:
        case "flip":
            flip(newest, newest.stat().st_size // 2)
        case "cut":
            newest.write_bytes(newest.read_bytes()[:-5])
        case "empty":
            newest.write_bytes(b"")
        case _:
            newest.unlink()
    storage, symbols, recovered = opened(directory)
    assert rows_of(recovered, symbols) == [(epoch, "x") for epoch in range(4)]
    assert recovered.declarations == {f"rule {epoch}": {"epoch": epoch} for epoch in range(4)}
    assert recovered.readers == {"reader": NamedReader((3,), frozenset({"rows"}))}
    if not (damage == "missing" and kind == "manifest-*"):
        assert newest.name in storage.describe()["trouble"]
    commit(storage, symbols, 4, [(4, "x")])
    storage.close()
    storage, symbols, recovered = opened(directory)
    checkpoint(storage, symbols)  # in directory of the damaged one
    storage.close()
    storage, symbols, recovered = opened(directory)
    assert storage.describe()["trouble"] is None and rows_of(recovered, symbols) == [(epoch, "x") for epoch in range(5)]
    storage.close()


def test_damage_to_a_file_that_all_checkpoints_need_is_reported(tmp_path):
    directory = tmp_path / "db"
    write_checkpoints(directory, 3)
    oldest = files_of(directory, "batch-*")[0]
    flip(oldest, 10)
    with pytest.raises(Corrupt, match=f"{oldest.name} is damaged"):
        opened(directory)
    for manifest in files_of(directory, "manifest-*"):
        manifest.write_bytes(b"{}\n")
    with pytest.raises(Corrupt, match="manifest-00000003.json is damaged or half written"):
        opened(directory)


def test_a_checkpoint_writes_only_new_batches_and_removes_files_that_no_manifest_needs(tmp_path):
    directory = tmp_path / "db"
    write_checkpoints(directory, 5)
    assert len(files_of(directory, "manifest-*")) == 2
    storage, symbols, recovered = opened(directory)
    before = files_of(directory, "batch-*")
    assert checkpoint(storage, symbols) == 0 and checkpoint(storage, symbols) == 0
    assert len(files_of(directory, "log-*.kpg")) <= 1
    storage.drop("edges")
    checkpoint(storage, symbols)
    assert files_of(directory, "batch-*") == before, "the previous manifest still needs them"
    checkpoint(storage, symbols)
    assert files_of(directory, "batch-*") == []
    storage.close()


def test_a_relation_must_be_declared_as_it_was_stored(tmp_path):
    storage, symbols, _ = opened(tmp_path / "db")
    with pytest.raises(SchemaMismatch, match="edges was stored with other columns or another key"):
        storage.declare("edges", Schema.of({"src": int, "name": str | None}), ())
    with pytest.raises(SchemaMismatch):
        storage.declare("edges", EDGES, ("src",))
    storage.drop("edges")
    assert storage.declare("edges", Schema.of({"x": int}), ()) == 2
    storage.close()
    storage = Storage(tmp_path / "db")
    recovered = storage.recover(Symbols())
    assert recovered.relations["edges"].schema == Schema.of({"x": int})
    storage.close()
    with pytest.raises(SchemaMismatch, match="coordinate"):
        Storage(tmp_path / "db", coordinates=2)


def test_dropped_rows_do_not_come_back_under_the_same_name(tmp_path):
    storage, symbols, _ = opened(tmp_path / "db")
    commit(storage, symbols, 0, [(0, "old")])
    storage.drop("edges")
    storage.declare("edges", EDGES, ())
    storage.close()
    storage, symbols, recovered = opened(tmp_path / "db")
    assert rows_of(recovered, symbols) == []
    storage.close()


def test_workers_agree_on_the_transactions_that_all_of_them_have(tmp_path):
    for rank, epochs in enumerate((5, 3)):
        storage, symbols, _ = opened(tmp_path / f"rank-{rank}")
        for epoch in range(epochs):
            commit(storage, symbols, epoch, [(epoch, "x")], batch=epoch)
        storage.close()
    ranks = [Storage(tmp_path / f"rank-{rank}") for rank in range(2)]
    upto = ranks[0].durable_frontier().meet(ranks[1].durable_frontier())
    assert upto == Frontier.at((3,))
    for storage in ranks:
        symbols = Symbols()
        recovered = storage.recover(symbols, upto=upto, generation=1)
        assert recovered.frontier == upto == storage.durable_frontier() and storage.generation == 1
        assert rows_of(recovered, symbols) == [(epoch, "x") for epoch in range(3)]
        assert Origin("writer", 3) not in storage.applied, "the writer may send it again"
        assert commit(storage, symbols, 3, [(30, "x")], batch=3)
        storage.close()
    for rank in range(2):  # undone transactions stay undone
        storage, symbols, recovered = opened(tmp_path / f"rank-{rank}")
        assert rows_of(recovered, symbols) == [(0, "x"), (1, "x"), (2, "x"), (30, "x")] and storage.generation == 1
        storage.close()


def test_recovery_skips_a_checkpoint_beyond_the_requested_frontier(tmp_path):
    directory = tmp_path / "db"
    write_checkpoints(directory, 2)
    storage, symbols, _ = opened(directory)
    commit(storage, symbols, 2, [(2, "x")])
    storage.close()
    storage, symbols = Storage(directory), Symbols()
    recovered = storage.recover(symbols, upto=Frontier.at((1,)), generation=1)
    assert rows_of(recovered, symbols) == [(0, "x")] and recovered.manifest.frontier == Frontier.at((1,))
    storage.close()
    storage, symbols, recovered = opened(directory)
    assert rows_of(recovered, symbols) == [(0, "x")] and storage.generation == 1
    storage.close()


def test_other_filesystems_keep_the_same_content(tmp_path):
    filesystem = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())
    storage, symbols, _ = opened("some/db", filesystem=filesystem)
    for epoch in range(4):
        commit(storage, symbols, epoch, [(epoch, "x")])
    assert len(files_of(tmp_path / "some/db", "log-*.kpg")) >= 4, "each frame is a file of its own"
    storage.close()
    storage, symbols, recovered = opened("some/db", filesystem=filesystem)
    checkpoint(storage, symbols)
    checkpoint(storage, symbols)
    assert len(files_of(tmp_path / "some/db", "log-*.kpg")) <= 1
    commit(storage, symbols, 4, [(4, "x")])
    storage.close()
    last = files_of(tmp_path / "some/db", "log-*.kpg")[-1]
    last.write_bytes(last.read_bytes()[:-3])  # the writer died while writing it
    storage, symbols, recovered = opened("some/db", filesystem=filesystem)
    assert rows_of(recovered, symbols) == [(epoch, "x") for epoch in range(4)]
    commit(storage, symbols, 4, [(4, "y")])
    storage.close()
    storage, symbols, recovered = opened((tmp_path / "some/db").as_uri())
    assert (4, "y") in rows_of(recovered, symbols)
    storage.close()


def test_a_directory_that_is_no_db_is_left_alone(tmp_path):
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(Unavailable, match="is not empty, and not a db"):
        Storage(tmp_path)
    with pytest.raises(Unavailable, match="cannot open"):
        Storage(tmp_path / "letter.txt")
    with pytest.raises(Unavailable, match="cannot open"):
        Storage("nowhere://x/y")


def test_a_directory_has_one_owner_at_a_time(tmp_path):
    storage, symbols, _ = opened(tmp_path / "db")
    with pytest.raises(InUse, match="open in this process already"):
        Storage(tmp_path / "db")
    storage.close()
    storage.close()
    with pytest.raises(Closed):
        commit(storage, symbols, 0, [])
    opened(tmp_path / "db")[0].close()


def test_a_manifest_of_another_version_is_refused(tmp_path):
    from zlib import crc32

    opened(tmp_path / "db")[0].close()
    (path,) = files_of(tmp_path / "db", "manifest-*")
    body = json.loads(path.read_bytes().splitlines()[0]) | {"version": 99}
    text = json.dumps(body).encode()
    path.write_bytes(b"%s\n%08x\n" % (text, crc32(text)))
    with pytest.raises(Corrupt, match="of another version"):
        Storage(tmp_path / "db")


class FailingSegment:
    """A segment on a disk that fails on request."""

    def __init__(self, segment, disk):
        self._segment, self._disk = segment, disk

    end = property(lambda self: self._segment.end)
    forced = property(lambda self: self._segment.forced)

    def append(self, frame):
        if self._disk.full:
            raise Unavailable("cannot write", detail="No space.")
        self._segment.append(frame)

    def begin_append(self, frame):
        self.append(frame)
        self.begin_flush()

    def begin_flush(self):
        self._segment.begin_flush()

    def wait_flush(self):
        self._segment.wait_flush()
        if self._disk.broken:
            raise Unavailable("cannot force")

    def close(self):
        self._segment.close()


def test_a_record_that_cannot_be_written_is_not_in_the_log_and_the_next_is(tmp_path, monkeypatch):
    storage, symbols, _ = opened(tmp_path / "db")

    class Disk:
        full = broken = False

    create = storage.files.create_segment
    storage.log.end_segment()
    monkeypatch.setattr(storage.files, "create_segment", lambda *arguments: FailingSegment(create(*arguments), Disk))
    commit(storage, symbols, 0, [(0, "a")])
    Disk.full = True
    with pytest.raises(Unavailable, match="cannot write"):
        commit(storage, symbols, 1, [(1, "lost")], batch=1)
    Disk.full = False
    assert commit(storage, symbols, 1, [(1, "b")], batch=1), (
        "the batch was not applied, so the writer may send it again"
    )
    Disk.broken = True
    with pytest.raises(Unavailable, match="cannot force"):
        commit(storage, symbols, 2, [(2, "c")])
    Disk.broken = False
    storage.close()
    storage, symbols, recovered = opened(tmp_path / "db")
    assert rows_of(recovered, symbols)[:2] == [(0, "a"), (1, "b")]
    storage.close()


def test_an_interrupted_write_stops_the_log(tmp_path, monkeypatch):
    storage, symbols, _ = opened(tmp_path / "db")

    def interrupted(segment, frame):
        raise KeyboardInterrupt

    monkeypatch.setattr(type(storage.log._segment), "begin_append", interrupted)
    with pytest.raises(KeyboardInterrupt):
        commit(storage, symbols, 0, [(0, "a")])
    monkeypatch.undo()
    with pytest.raises(Unavailable, match="a write to the log was interrupted"):
        commit(storage, symbols, 0, [(0, "a")])
    storage.close()


def test_relaxed_records_are_written_but_not_forced(tmp_path):
    storage, symbols, _ = opened(tmp_path / "db", durability="relaxed")
    forced = storage.log._segment.forced
    for epoch in range(3):
        commit(storage, symbols, epoch, [(epoch, "x")])
    assert storage.log._segment.forced == forced
    again, symbols, recovered = opened(copy_of(tmp_path / "db"))
    assert len(rows_of(recovered, symbols)) == 3
    again.close()
    storage.close()


def test_closing_the_log_writes_the_waiting_records(tmp_path):
    storage, symbols, _ = opened(tmp_path / "db")
    frame = storage.log.next_frame
    log: TransactionLog = storage.log
    log.append(b"N{}")
    log.close()
    with pytest.raises(Closed):
        log.append(b"N{}")
    assert list(read_log(storage.files, frame)) == [(b"N{}",)]
    storage.close()
