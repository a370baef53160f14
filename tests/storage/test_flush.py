"""Forcing a file to disk: the hint names the written bytes and never fails, forcing reports failure."""

import os
import sys

import pytest

from kpg.storage import flush
from kpg.storage.flush import find_sync_file_range, force, start_writing
from kpg.storage.local_files import LocalSegment


@pytest.fixture
def no_hint(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    find_sync_file_range.cache_clear()
    yield
    find_sync_file_range.cache_clear()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux has sync_file_range")
def test_linux_starts_to_write_and_reports_success(tmp_path):
    with open(tmp_path / "f", "wb") as file:
        file.write(bytes(10_000))
        file.flush()
        assert find_sync_file_range()(file.fileno(), 5_000, 100, flush._SYNC_FILE_RANGE_WRITE) == 0


def test_other_systems_have_no_hint(no_hint, tmp_path):
    assert find_sync_file_range() is None
    segment = LocalSegment(str(tmp_path / "f"), b"head")
    segment.append([b"frame"])
    segment.begin_flush()
    segment.wait_flush()
    segment.close()
    assert (tmp_path / "f").read_bytes().rstrip(b"\0") == b"headframe"


def test_forcing_reports_a_failure_and_the_hint_does_not():
    read, write = os.pipe()
    start_writing(read, 0, 10)
    with pytest.raises(OSError):
        force(read)  # a pipe cannot be forced
    os.close(read)
    os.close(write)


def test_a_segment_names_the_bytes_that_are_not_forced_yet(tmp_path, monkeypatch):
    told = []
    monkeypatch.setattr("kpg.storage.local_files.start_writing", lambda fd, start, size: told.append((start, size)))
    forced = []
    monkeypatch.setattr("kpg.storage.local_files.force", forced.append)
    segment = LocalSegment(str(tmp_path / "f"), b"head")
    segment.wait_flush()
    assert forced == [], "nothing was begun"
    for frame in (b"one", b"and two"):
        segment.append([frame])
        segment.begin_flush()
        segment.wait_flush()
        segment.wait_flush()
    assert told == [(4, 3), (7, 7)]
    assert len(forced) == 2, "each frame is forced once"
    segment.close()
