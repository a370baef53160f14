"""Force a file to disk in the background, while the caller does other work.

    flush = make_flush(); flush.begin(fd); ...; flush.wait()      then the bytes written before `begin` are on disk

With glibc, `aio_fsync` forces the file on a thread of the C library. That thread needs no interpreter lock; a Python
thread would wait for that lock longer than for the disk. On other systems `wait` forces the file itself. `wait` raises
the errors. Each object runs at most one flush at a time.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import platform
import sys
from typing import Any, Protocol

from kpg.storage.forks import FORK_COUNT

_SIGEV_NOTIFY_OFFSET = 44  # byte offset of the field sigev_notify in struct aiocb, with 64-bit pointers
_SIGEV_NONE = 1  # value of sigev_notify: no notification, the caller waits
_AIOCB_BYTES = 512  # more than struct aiocb takes in any release of glibc


class Flush(Protocol):
    """Forces one file at a time to disk."""

    def begin(self, fd: int) -> None:
        """Start to force a file."""
        ...

    def wait(self) -> None:
        """Wait until the file is on disk; return immediately if none was begun."""
        ...


class BlockingFlush:
    """Forces the file in `wait`."""

    def __init__(self) -> None:
        self._fd = -1

    def begin(self, fd: int) -> None:
        """Remember the file."""
        self._fd = fd

    def wait(self) -> None:
        """Force the file."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            force(fd)


class BackgroundFlush:
    """Forces the file on a thread of the C library."""

    def __init__(self, libc: Any) -> None:
        self._fsync, self._error, self._return = libc.aio_fsync, libc.aio_error, libc.aio_return
        self._suspend = libc.aio_suspend
        self._fd = -1
        self._block = ctypes.create_string_buffer(_AIOCB_BYTES)
        self._list = (ctypes.c_void_p * 1)(ctypes.addressof(self._block))
        self._under_way = False

    def begin(self, fd: int) -> None:
        """Start to force a file."""
        self.wait()  # an interrupted caller may have left a flush under way
        if fd != self._fd:
            ctypes.memset(self._block, 0, _AIOCB_BYTES)
            ctypes.c_int.from_buffer(self._block, 0).value = self._fd = fd
            ctypes.c_int.from_buffer(self._block, _SIGEV_NOTIFY_OFFSET).value = _SIGEV_NONE
        if self._fsync(os.O_DSYNC, self._block) != 0:
            force(fd)  # the C library has no thread for it
            return
        self._under_way = True

    def wait(self) -> None:
        """Wait until the file is on disk."""
        if not self._under_way:
            return
        while (state := self._error(self._block)) == errno.EINPROGRESS:
            self._suspend(self._list, 1, None)
        self._under_way = False
        self._return(self._block)
        if state:
            raise OSError(state, os.strerror(state))

    def __del__(self) -> None:
        if self._under_way:  # the C library still writes to this object's memory
            with contextlib.suppress(OSError):
                self.wait()


def force(fd: int) -> None:
    """Force a file's data to disk, and the metadata needed to read the data."""
    if hasattr(os, "fdatasync"):
        os.fdatasync(fd)
    else:
        os.fsync(fd)


def has_background_flush() -> bool:
    """Return whether this system can force files on a thread of the C library."""
    return sys.platform == "linux" and platform.libc_ver()[0] == "glibc" and sys.maxsize > 2**32


def make_flush() -> Flush:
    """Return the best flush of this system.

    A forked child must not use the C library's threads: its parent may have started them, and they do not survive.
    """
    if FORK_COUNT[0] or not has_background_flush():
        return BlockingFlush()
    libc = ctypes.CDLL(None, use_errno=True)
    return BackgroundFlush(libc) if hasattr(libc, "aio_fsync") else BlockingFlush()
