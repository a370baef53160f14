"""A log whose end was removed, emptied or cut is reported: no acknowledged transaction disappears without an error."""

import contextlib
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kpg
from kpg.storage import local_files
from kpg.storage.log_end import NAME
from tests.storage.directories import copy_of, files_of, flip

STEPS = st.lists(st.sampled_from(["transaction", "transaction", "checkpoint", "reopen"]), max_size=8)


def play(directory: Path, steps: list[str]) -> kpg.Database:
    """Return a db after some steps, still open: one row for each transaction."""
    db = kpg.open(directory)
    for step in steps:
        if step == "reopen":
            db.close()
            db = kpg.open(directory)
        elif step == "checkpoint":
            db.checkpoint()
        else:
            numbers = db.inputs.get("numbers") or db.input("numbers", n=int)
            numbers.insert([(db.epoch,)])
            db.advance()
    return db


def rows_of(directory: Path) -> list[tuple[int]] | None:
    """Return the rows of a directory; None if it is refused as damaged."""
    try:
        with kpg.open(directory) as db:
            return sorted(db.input("numbers", n=int).output().rows()) if db.epoch else []
    except kpg.Corrupt as error:
        assert "log" in str(error)
        return None


def damage(directory: Path, kind: str, cut: float) -> None:
    """Remove the newest segment, or what is in it."""
    segments = files_of(directory, "log-*.kpg")
    if segments:
        written = segments[-1].read_bytes().rstrip(b"\0")
        segments[-1].unlink() if kind == "remove" else segments[-1].write_bytes(
            b"" if kind == "empty" else written[: int(len(written) * cut)]
        )


@settings(max_examples=30)
@given(STEPS, st.booleans(), st.sampled_from(["remove", "empty", "cut"]), st.floats(0, 1))
def test_a_directory_without_the_end_of_its_log_is_refused_or_complete(
    steps: list[str], crash: bool, kind: str, cut: float
) -> None:
    """After a crash, the end of the last segment may be what a disk lost: that case alone is not covered."""
    root = Path(tempfile.mkdtemp())
    try:
        db = play(root / "db", steps)
        expected = [(n,) for n in range(db.epoch)]
        directory = copy_of(root / "db") if crash else root / "db"
        db.close()
        if not (crash and kind == "cut"):
            damage(directory, kind, cut)
        assert rows_of(directory) in (None, expected)
        intact = rows_of(root / "db") if crash else expected
        assert intact == expected, "an intact directory is never refused"
    finally:
        shutil.rmtree(root)


@pytest.mark.parametrize("kind", ["remove", "empty", "cut"])
def test_acknowledged_epochs_do_not_disappear_with_the_newest_segment(tmp_path: Path, kind: str) -> None:
    play(tmp_path / "db", ["transaction", "reopen", *["transaction"] * 8]).close()
    damage(tmp_path / "db", kind, 0.5)
    with pytest.raises(kpg.Corrupt, match="lacks the end of its log"):
        kpg.open(tmp_path / "db")


def test_a_damaged_note_of_the_end_is_reported_and_can_be_removed(tmp_path: Path) -> None:
    play(tmp_path / "db", ["transaction"] * 2).close()
    flip(tmp_path / "db" / NAME, 3)
    with pytest.raises(kpg.Corrupt, match="remove it"):
        kpg.open(tmp_path / "db")
    (tmp_path / "db" / NAME).unlink()
    assert rows_of(tmp_path / "db") == [(0,), (1,)]


def test_a_segment_without_frames_is_never_taken_for_a_loss(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that dies at any point between two segments leaves a directory that opens."""
    directory = tmp_path / "db"
    play(directory, ["transaction"] * 2).close()
    real = local_files.os.fsync
    copies: list[Path] = []

    def fsync(fd: int) -> None:
        real(fd)
        copies.append(copy_of(directory))

    monkeypatch.setattr(local_files.os, "fsync", fsync)
    play(directory, ["transaction"]).close()
    monkeypatch.undo()
    assert len(copies) >= 6
    for copy in copies:
        with contextlib.closing(kpg.open(copy)) as db:
            assert db.epoch in (2, 3)
        assert rows_of(copy) is not None
