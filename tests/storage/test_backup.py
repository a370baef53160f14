"""Backups of a directory while it is in use: a copy has every transaction acknowledged before, and none in part."""

import threading
import time

import pytest

import kpg
from kpg.cli import main
from kpg.storage import backup
from kpg.storage.backup import copy_db
from tests.storage.directories import files_of, flip


def read(directory, workers=1):
    with kpg.open(directory, **({"workers": workers} if workers > 1 else {})) as db:
        rows = db.input("rows", n=int, text=str).output("all").rows()
        return sorted(n for n, text in rows if text == f"text {n}")


def write(db, rows, first, count):
    for n in range(first, first + count):
        rows.insert([(n, f"text {n}")])
        db.advance()


def test_a_copy_made_beside_transactions_and_checkpoints_is_a_prefix_of_them(tmp_path):
    db = kpg.open(tmp_path / "db", background=True, checkpoint_bytes=10_000)
    db.input("rows", n=int, text=str).arrange("n")
    db.transact(lambda db: db["rows"].insert([(0, "text 0")]))
    acknowledged, end = [1], threading.Event()

    def work() -> None:
        while not end.is_set():
            row = (acknowledged[0], f"text {acknowledged[0]}")
            db.transact(lambda db, row=row: db["rows"].insert([row]))
            acknowledged[0] += 1
            time.sleep(0.001)  # so that a copy can be faster than a checkpoint

    writer = threading.Thread(target=work)
    writer.start()
    try:
        for number in range(5):
            before = acknowledged[0]
            copy_db(tmp_path / "db", tmp_path / f"copy {number}")
            after = acknowledged[0] + 1
            rows = read(tmp_path / f"copy {number}")
            assert rows == list(range(len(rows))) and before <= len(rows) <= after
    finally:
        end.set()
        writer.join()
        db.close()
    assert acknowledged[0] > 5


def test_the_parts_of_several_workers_fit_together(tmp_path):
    with kpg.open(tmp_path / "db", workers=2, checkpoint_bytes=500) as db:
        rows = db.input("rows", n=int, text=str)
        write(db, rows, 0, 20)
        copy = copy_db(tmp_path / "db", tmp_path / "copy")
        assert copy.frontier.elements == ((20,),)
        write(db, rows, 20, 5)
    assert read(tmp_path / "copy", 2) == list(range(20))


def test_a_file_that_a_checkpoint_removes_makes_the_copy_start_again(tmp_path, monkeypatch):
    with kpg.open(tmp_path / "db") as db:
        rows = db.input("rows", n=int, text=str)
        rows.arrange("n")
        write(db, rows, 0, 3)
        db.checkpoint()
        real, attempts = backup.read_checked, [0]

        def interrupted(path, file):
            attempts[0] += 1
            if attempts[0] == 1:
                for n in range(3, 7):
                    write(db, rows, n, 1)
                    db.idle()
                    db.checkpoint()
                path.unlink(missing_ok=True)
            return real(path, file)

        monkeypatch.setattr(backup, "read_checked", interrupted)
        copy_db(tmp_path / "db", tmp_path / "copy")
        assert attempts[0] > 1
    assert read(tmp_path / "copy") == list(range(7))


def test_commands_copy_and_copy_back(tmp_path, capsys):
    with kpg.open(tmp_path / "db") as db:
        rows = db.input("rows", n=int, text=str)
        write(db, rows, 0, 4)
        db.checkpoint()
        write(db, rows, 4, 1)
        assert main(["backup", str(tmp_path / "db"), str(tmp_path / "copy")]) == 0
    assert "complete up to epoch 5" in capsys.readouterr().out
    assert main(["restore", str(tmp_path / "copy"), str(tmp_path / "again")]) == 0
    assert read(tmp_path / "again") == read(tmp_path / "db") == list(range(5))
    assert (tmp_path / "again").stat().st_mode & 0o777 == 0o700
    assert main(["restore", str(tmp_path / "copy"), str(tmp_path / "again")]) == 1
    assert "is not empty" in capsys.readouterr().err


def test_damage_is_noticed_when_it_is_copied(tmp_path):
    with kpg.open(tmp_path / "db") as db:
        write(db, db.input("rows", n=int, text=str), 0, 4)
        db.checkpoint()
    flip(files_of(tmp_path / "db", "batch-*")[0], 100)
    with pytest.raises(kpg.Corrupt, match="batch-.* is damaged"):
        copy_db(tmp_path / "db", tmp_path / "copy")
    with pytest.raises(kpg.Unavailable, match="is not a db"):
        copy_db(tmp_path, tmp_path / "other")
    with pytest.raises(kpg.Unavailable, match="there is no directory"):
        copy_db(tmp_path / "nothing", tmp_path / "other")
