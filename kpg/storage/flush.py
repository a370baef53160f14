"""Forcing a file to disk, so that something else can be done meanwhile.

    flush = flusher(); flush.begin(fd); ...; flush.wait()        after this the bytes written before begin are on disk

With glibc the system's own `aio_fsync` does it on a thread of the C library, which needs no interpreter lock: a thread
of ours would wait for that lock longer than for the disk. Elsewhere `wait` does it in place. Errors come from `wait`.
One flush at a time for each object.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import platform
import sys
from typing import Any, Protocol

from kpg.storage.forks import FORKS

_NOTIFY_AT = 44  # of struct aiocb with 64-bit pointers: sigev_notify
_SIGEV_NONE = 1
_AIOCB_BYTES = 512  # more than any release needs


class Flush(Protocol):
    """Forces one file at a time."""

    def begin(self, fd: int) -> None: ...

    def wait(self) -> None: ...


class InPlace:
    """Forces when waited for."""

    def __init__(self) -> None:
        self._fd = -1

    def begin(self, fd: int) -> None:
        """Remember the file."""
        self._fd = fd

    def wait(self) -> None:
        """Force it."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            force(fd)


class Meanwhile:
    """Forces on a thread of the C library."""

    def __init__(self, libc: Any) -> None:
        self._fsync, self._error, self._return = libc.aio_fsync, libc.aio_error, libc.aio_return
        self._suspend = libc.aio_suspend
        self._fd = -1
        self._block = ctypes.create_string_buffer(_AIOCB_BYTES)
        self._list = (ctypes.c_void_p * 1)(ctypes.addressof(self._block))
        self._flying = False

    def begin(self, fd: int) -> None:
        """Have the file forced."""
        self.wait()  # an interrupted caller may have left one
        if fd != self._fd:
            ctypes.memset(self._block, 0, _AIOCB_BYTES)
            ctypes.c_int.from_buffer(self._block, 0).value = self._fd = fd
            ctypes.c_int.from_buffer(self._block, _NOTIFY_AT).value = _SIGEV_NONE
        if self._fsync(os.O_DSYNC, self._block) != 0:
            force(fd)  # no thread to be had: here and now
            return
        self._flying = True

    def wait(self) -> None:
        """Wait until it is."""
        if not self._flying:
            return
        while (state := self._error(self._block)) == errno.EINPROGRESS:
            self._suspend(self._list, 1, None)
        self._flying = False
        self._return(self._block)
        if state:
            raise OSError(state, os.strerror(state))

    def __del__(self) -> None:
        if self._flying:  # the C library still writes to our memory
            with contextlib.suppress(OSError):
                self.wait()


def force(fd: int) -> None:
    """Force the data of a file, and what is needed to find them, to disk."""
    if hasattr(os, "fdatasync"):
        os.fdatasync(fd)
    else:
        os.fsync(fd)


def flusher() -> Flush:
    """The best there is here; a child by fork must not use the C library's threads, which its parent may have begun."""
    if FORKS[0]:
        return InPlace()
    if sys.platform == "linux" and platform.libc_ver()[0] == "glibc" and sys.maxsize > 2**32:
        libc = ctypes.CDLL(None, use_errno=True)
        if hasattr(libc, "aio_fsync"):
            return Meanwhile(libc)
    return InPlace()
