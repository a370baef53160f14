"""Forcing a file to disk: both kinds of flush call the system once a request, wait for it and report failure."""

import ctypes
import errno
import os
import platform
import sys
from collections import Counter

import pytest

from kpg.storage import flush
from kpg.storage.flush import BackgroundFlush, BlockingFlush, make_flush

GLIBC = sys.platform == "linux" and platform.libc_ver()[0] == "glibc" and sys.maxsize > 2**32
needs_glibc = pytest.mark.skipif(not GLIBC, reason="only glibc forces files in the background")


class CountingLibc:
    """The C library, with a count of the calls of each function."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.library = ctypes.CDLL(None, use_errno=True)

    def __getattr__(self, name):
        function = getattr(self.library, name)

        def call(*arguments):
            self.calls[name] += 1
            return function(*arguments)

        return call


class SlowLibc:
    """A C library in which each flush is under way until the caller has waited for it a number of times."""

    def __init__(self, waits: int, outcome: int = 0) -> None:
        self.waits, self.outcome = waits, outcome
        self.left = 0
        self.begun = self.completed = 0

    def aio_fsync(self, flags, block):
        self.begun += 1
        self.left = self.waits
        return 0

    def aio_error(self, block):
        return errno.EINPROGRESS if self.left else self.outcome

    def aio_suspend(self, blocks, count, timeout):
        self.left -= 1

    def aio_return(self, block):
        assert self.left == 0, "asked for the result of a flush that is under way"
        self.completed += 1


@pytest.fixture
def fd(tmp_path):
    descriptor = os.open(tmp_path / "f", os.O_RDWR | os.O_CREAT)
    yield descriptor
    os.close(descriptor)


def write_and_flush(way, fd, times):
    way.wait()  # nothing was begun
    for number in range(times):
        os.pwrite(fd, b"x", number)
        way.begin(fd)
        way.wait()
    way.wait()  # nothing is left to do


def test_a_blocking_flush_forces_the_file_in_each_wait(fd, monkeypatch):
    forced = []
    monkeypatch.setattr(flush, "force", forced.append)
    way = BlockingFlush()
    way.begin(fd)
    assert forced == []
    way.wait()
    assert forced == [fd]
    write_and_flush(way, fd, 50)
    assert forced == [fd] * 51


@needs_glibc
def test_a_background_flush_forces_the_file_once_for_each_begin(fd):
    libc = CountingLibc()
    way = BackgroundFlush(libc)
    write_and_flush(way, fd, 50)
    assert libc.calls["aio_fsync"] == libc.calls["aio_return"] == 50
    way.begin(fd)
    way.begin(fd)  # the caller of the first was interrupted before it waited
    way.wait()
    assert libc.calls["aio_fsync"] == libc.calls["aio_return"] == 52


def test_a_background_flush_waits_until_the_system_is_done(fd):
    libc = SlowLibc(waits=3)
    way = BackgroundFlush(libc)
    way.begin(fd)
    assert (libc.begun, libc.completed, libc.left) == (1, 0, 3)
    way.wait()
    assert (libc.begun, libc.completed, libc.left) == (1, 1, 0)
    way.begin(fd)
    way.begin(fd)
    assert (libc.begun, libc.completed) == (3, 2), "a second begin waits for the first"
    del way
    assert libc.completed == 3, "the memory stays until the C library is done with it"


def test_a_background_flush_reports_what_the_system_reports(fd):
    way = BackgroundFlush(SlowLibc(waits=1, outcome=errno.EIO))
    way.begin(fd)
    with pytest.raises(OSError) as failure:
        way.wait()
    assert failure.value.errno == errno.EIO


def test_a_background_flush_forces_the_file_itself_if_the_c_library_refuses(fd, monkeypatch):
    forced = []
    monkeypatch.setattr(flush, "force", forced.append)
    libc = SlowLibc(waits=1)
    libc.aio_fsync = lambda flags, block: -1
    way = BackgroundFlush(libc)
    way.begin(fd)
    way.wait()
    assert forced == [fd]


@pytest.mark.parametrize("make", [BlockingFlush, make_flush])
def test_a_failure_is_reported_once(make):
    read, write = os.pipe()
    way = make()
    with pytest.raises(OSError):
        way.begin(read)  # a pipe cannot be forced
        way.wait()
    way.wait()
    os.close(read)
    os.close(write)


@needs_glibc
def test_glibc_forces_files_in_the_background():
    assert isinstance(make_flush(), BackgroundFlush)


@pytest.mark.parametrize("missing", ["platform", "aio_fsync"])
def test_other_systems_force_files_in_wait(monkeypatch, missing):
    if missing == "platform":
        monkeypatch.setattr(sys, "platform", "darwin")
    else:
        monkeypatch.setattr(ctypes, "CDLL", lambda *arguments, **options: object())
    assert isinstance(make_flush(), BlockingFlush)


def test_a_forked_child_does_not_use_threads_of_the_c_library(monkeypatch):
    monkeypatch.setattr(flush, "FORK_COUNT", [1])
    assert isinstance(make_flush(), BlockingFlush)
