"""Directories are private to their user, and one that cannot be opened is refused with an error that says why."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import kpg
from kpg.storage import local_files, lock

KINDS = [{}, {"background": True}, {"workers": 2}]
HOLDER = """
import sys
from kpg.storage.lock import Lock
held = Lock(sys.argv[1])
print("held", flush=True)
sys.stdin.read()
"""


def modes(root: Path) -> dict[str, int]:
    """Return the permissions of a directory and everything in it."""
    return {str(path.relative_to(root)): stat.S_IMODE(path.stat().st_mode) for path in (root, *root.rglob("*"))}


@pytest.mark.parametrize("workers", [1, 2])
def test_no_other_user_can_read_a_directory_whatever_the_umask(tmp_path: Path, workers: int) -> None:
    before = os.umask(0)
    try:
        with kpg.open(tmp_path / "above" / "db", workers=workers) as db:
            numbers = db.input("numbers", n=int)
            numbers.insert([(1,)])
            db.advance()
            db.checkpoint()
            db.advance()
            file_modes = modes(tmp_path / "above" / "db")
    finally:
        os.umask(before)
    assert len(file_modes) > 5 and not [name for name, mode in file_modes.items() if mode & 0o077]


def test_a_directory_that_exists_keeps_its_permissions(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o750)
    kpg.open(tmp_path / "shared").close()
    assert modes(tmp_path / "shared")["."] == 0o750


@pytest.mark.parametrize("options", KINDS)
def test_a_path_with_nul_is_refused(options: dict[str, int]) -> None:
    with pytest.raises(kpg.Unavailable, match="NUL"):
        kpg.open("some\0where", **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("options", KINDS)
def test_a_directory_in_use_raises_in_the_caller_and_nowhere_else(
    tmp_path: Path, options: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No thread that was started meanwhile prints a traceback."""
    raised: list[object] = []
    monkeypatch.setattr("threading.excepthook", raised.append)
    (tmp_path / "db").mkdir()
    command = [sys.executable, "-c", HOLDER, str(tmp_path / "db")]
    holder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout is not None and holder.stdout.readline() == "held\n"
        for _ in range(3):
            with pytest.raises(kpg.InUse, match=f"process {holder.pid}"):
                kpg.open(tmp_path / "db", **options)  # type: ignore[arg-type]
    finally:
        holder.kill()
        holder.communicate()
    assert not raised


@pytest.mark.parametrize("call", ["open", "listdir", "lockf"])
def test_a_directory_that_this_user_may_not_use_is_unavailable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """The root user may open anything, so the refusals of the operating system are made here."""
    kpg.open(tmp_path / "db").close()

    def refuse_open(path: str, *rest: int) -> int:
        if os.path.basename(path) == "LOCK":
            raise PermissionError(13, "Permission denied")
        return real_open(path, *rest)

    def refuse(*_: object) -> None:
        raise OSError(37, "No locks available")

    real_open = os.open
    if call == "open":
        monkeypatch.setattr(lock.os, "open", refuse_open)
    elif call == "listdir":
        monkeypatch.setattr(local_files.os, "listdir", refuse)
    else:
        monkeypatch.setattr(lock.fcntl, "lockf", refuse)
    with pytest.raises(kpg.Unavailable) as refused:
        kpg.open(tmp_path / "db")
    assert str(tmp_path / "db") in str(refused.value) and ("Permission" in str(refused.value) or call != "open")
    monkeypatch.undo()
    kpg.open(tmp_path / "db").close()  # nothing is left locked
