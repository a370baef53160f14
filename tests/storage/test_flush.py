"""Forcing to disk: both ways do it, one after the other, and tell of failure."""

import os

import pytest

from kpg.storage import flush
from kpg.storage.flush import InPlace, Meanwhile, flusher

WAYS = [InPlace, flusher] if isinstance(flusher(), Meanwhile) else [InPlace]


@pytest.mark.parametrize("make", WAYS)
def test_a_file_is_forced_as_often_as_asked(make, tmp_path):
    fd = os.open(tmp_path / "f", os.O_RDWR | os.O_CREAT)
    way = make()
    way.wait()  # nothing was begun
    for number in range(50):
        os.pwrite(fd, b"x", number)
        way.begin(fd)
        way.wait()
    way.begin(fd)
    way.begin(fd)  # whoever began the first was interrupted
    way.wait()
    os.close(fd)


@pytest.mark.parametrize("make", WAYS)
def test_failure_is_told_once(make):
    read, write = os.pipe()
    way = make()
    with pytest.raises(OSError):
        way.begin(read)  # a pipe cannot be forced
        way.wait()
    way.wait()
    os.close(read)
    os.close(write)


def test_a_child_by_fork_does_not_use_threads_of_the_c_library(monkeypatch):
    monkeypatch.setattr(flush, "FORKS", [1])
    assert isinstance(flusher(), InPlace)
