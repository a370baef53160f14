"""Asynchronous writes of the kernel: each is waited for once, and a failure or a part of a write is an error."""

import ctypes
import errno
import sys

import pytest

from kpg.storage.kernel_write import KernelWrite, open_kernel_write

CALLS = (206, 207, 208, 209)  # of x86_64, as a fake library sees them
SETUP, DESTROY, GETEVENTS, SUBMIT = CALLS
RWF_DSYNC = 2  # of Linux


class SlowLibc:
    """A kernel that interrupts the caller's wait a number of times before each write is done."""

    def __init__(self, interrupts: int = 0, done: int = 100, refuses: bool = False) -> None:
        self.interrupts, self.done, self.refuses = interrupts, done, refuses
        self.left = self.begun = self.completed = self.destroyed = 0

    def syscall(self, number, *arguments):
        if number == SETUP:
            return 0
        if number == DESTROY:
            assert self.begun == self.completed, "destroyed a context with a write under way"
            self.destroyed += 1
            return 0
        if number == SUBMIT:
            return self._submit(*arguments)
        assert number == GETEVENTS
        return self._wait(*arguments)

    def _submit(self, context, count, blocks):
        self.flags = ctypes.c_int32.from_address(blocks[0] + 12).value  # aio_rw_flags of struct iocb
        if self.refuses:
            ctypes.set_errno(errno.EAGAIN)
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
        ctypes.c_int64.from_buffer(event, 16).value = self.done
        return 1


def test_waits_until_the_kernel_is_done():
    libc = SlowLibc(interrupts=3)
    write = KernelWrite(libc, CALLS)
    write.wait()  # nothing was begun
    write.begin(3, 0, 100, 0)
    assert (libc.begun, libc.completed, libc.left) == (1, 0, 3)
    write.wait()
    assert (libc.begun, libc.completed, libc.left) == (1, 1, 0)
    write.begin(3, 0, 100, 0)
    write.begin(3, 0, 100, 0)  # the caller of the first was interrupted before it waited
    assert (libc.begun, libc.completed) == (3, 2), "a second begin waits for the first"
    del write
    assert (libc.completed, libc.destroyed) == (3, 1), "the memory stays until the kernel is done with it"


@pytest.mark.parametrize("force", [False, True])
def test_the_kernel_forces_a_write_if_asked_for(force):
    libc = SlowLibc()
    KernelWrite(libc, CALLS).begin(3, 0, 100, 0, force)
    assert libc.flags == (RWF_DSYNC if force else 0)


@pytest.mark.parametrize("done", [-errno.EIO, 99, 0])
def test_a_failed_or_partial_write_is_an_error_once(done):
    write = KernelWrite(SlowLibc(done=done), CALLS)
    write.begin(3, 0, 100, 0)
    with pytest.raises(OSError) as failure:
        write.wait()
    assert failure.value.errno == errno.EIO
    write.wait()


def test_a_refused_write_is_an_error_and_not_under_way():
    write = KernelWrite(SlowLibc(refuses=True), CALLS)
    with pytest.raises(OSError) as failure:
        write.begin(3, 0, 100, 0)
    assert failure.value.errno == errno.EAGAIN
    write.wait()


@pytest.mark.parametrize("missing", ["platform", "call"])
def test_other_systems_have_none(monkeypatch, missing):
    if missing == "platform":
        monkeypatch.setattr(sys, "platform", "darwin")
    else:
        refuse = type("Libc", (), {"syscall": lambda self, *arguments: -1})()
        monkeypatch.setattr(ctypes, "CDLL", lambda *arguments, **options: refuse)
    assert open_kernel_write() is None
