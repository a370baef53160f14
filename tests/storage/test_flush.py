"""Forcing a file to disk: both kinds of flush call the system once a request, wait for it and report failure."""

import ctypes
import errno
import os
import sys
from collections import Counter

import pytest

from kpg.storage import flush
from kpg.storage.flush import BlockingFlush, KernelFlush, make_flush
from kpg.storage.kernel_request import KernelRequest, open_request

CALLS = (206, 207, 208, 209)  # of x86_64, as a fake library sees them
SETUP, DESTROY, GETEVENTS, SUBMIT = CALLS
needs_kernel = pytest.mark.skipif(open_request() is None, reason="only Linux forces files in the background")


class CountingLibc:
    """The C library, with a count of the system calls by their number."""

    def __init__(self) -> None:
        self.calls: Counter[int] = Counter()
        self.library = ctypes.CDLL(None, use_errno=True)

    def syscall(self, number, *arguments):
        self.calls[number] += 1
        return self.library.syscall(number, *arguments)


class SlowLibc:
    """A kernel that interrupts the caller's wait a number of times before each request is done."""

    def __init__(self, interrupts: int = 0, outcome: int = 0, refuses: bool = False) -> None:
        self.interrupts, self.outcome, self.refuses = interrupts, outcome, refuses
        self.left = self.begun = self.completed = self.destroyed = 0

    def syscall(self, number, *arguments):
        if number == SETUP:
            return 0
        if number == DESTROY:
            assert self.begun == self.completed, "destroyed a context with a request under way"
            self.destroyed += 1
            return 0
        if number == SUBMIT:
            return self._submit()
        assert number == GETEVENTS
        return self._wait(*arguments)

    def _submit(self):
        if self.refuses:
            ctypes.set_errno(errno.EINVAL)
            return -1
        self.begun += 1
        self.left = self.interrupts
        return 1

    def _wait(self, context, least, most, event, timeout):
        if self.left:
            self.left -= 1
            ctypes.set_errno(errno.EINTR)
            return -1
        self.completed += 1
        ctypes.c_int64.from_buffer(event, 16).value = self.outcome
        return 1


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


@needs_kernel
def test_the_kernel_forces_the_file_once_for_each_begin(fd):
    real = open_request()
    libc = CountingLibc()
    way = KernelFlush(KernelRequest(libc, (real._setup, real._destroy, real._getevents, real._submit)))
    write_and_flush(way, fd, 50)
    assert libc.calls[real._submit] == libc.calls[real._getevents] == 50
    way.begin(fd)
    way.begin(fd)  # the caller of the first was interrupted before it waited
    way.wait()
    assert libc.calls[real._submit] == libc.calls[real._getevents] == 52


def test_a_flush_waits_until_the_kernel_is_done(fd):
    libc = SlowLibc(interrupts=3)
    way = KernelFlush(KernelRequest(libc, CALLS))
    way.begin(fd)
    assert (libc.begun, libc.completed, libc.left) == (1, 0, 3)
    way.wait()
    assert (libc.begun, libc.completed, libc.left) == (1, 1, 0)
    way.begin(fd)
    way.begin(fd)
    assert (libc.begun, libc.completed) == (3, 2), "a second begin waits for the first"
    del way
    assert (libc.completed, libc.destroyed) == (3, 1), "the memory stays until the kernel is done with it"


@pytest.mark.parametrize("outcome", [-errno.EIO, 5])
def test_a_flush_reports_what_the_kernel_reports(fd, outcome):
    way = KernelFlush(KernelRequest(SlowLibc(outcome=outcome), CALLS))
    way.begin(fd)
    with pytest.raises(OSError) as failure:
        way.wait()
    assert failure.value.errno == errno.EIO


def test_a_flush_forces_the_file_itself_if_the_kernel_refuses(fd, monkeypatch):
    forced = []
    monkeypatch.setattr(flush, "force", forced.append)
    way = KernelFlush(KernelRequest(SlowLibc(refuses=True), CALLS))
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


@needs_kernel
def test_the_kernel_forces_files_in_the_background():
    assert isinstance(make_flush(), KernelFlush)


@pytest.mark.parametrize("missing", ["platform", "call"])
def test_other_systems_force_files_in_wait(monkeypatch, missing):
    if missing == "platform":
        monkeypatch.setattr(sys, "platform", "darwin")
    else:
        refuse = type("Libc", (), {"syscall": lambda self, *arguments: -1})()
        monkeypatch.setattr(ctypes, "CDLL", lambda *arguments, **options: refuse)
    assert isinstance(make_flush(), BlockingFlush)
