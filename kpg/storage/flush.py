"""Force a file to disk in the background, while the caller does other work.

    flush = make_flush(); flush.begin(fd); ...; flush.wait()      then the bytes written before `begin` are on disk

On Linux the kernel forces the file by itself (kpg.storage.kernel_request); a Python thread would wait for the
interpreter lock longer than for the disk. On other systems `wait` forces the file. `wait` raises the errors. Each
object runs at most one flush at a time.
"""

from __future__ import annotations

import os
from typing import Protocol

from kpg.storage.kernel_request import KernelRequest, open_request


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


class KernelFlush:
    """Lets the kernel force the file while the caller works."""

    def __init__(self, request: KernelRequest) -> None:
        self.request = request

    def begin(self, fd: int) -> None:
        """Start to force a file; force it now if the kernel, one before 4.18, has no such request."""
        try:
            self.request.begin_force(fd)
        except OSError:
            force(fd)

    def wait(self) -> None:
        """Wait until the file is on disk."""
        self.request.wait()


def force(fd: int) -> None:
    """Force a file's data to disk, and the metadata needed to read the data."""
    if hasattr(os, "fdatasync"):
        os.fdatasync(fd)
    else:
        os.fsync(fd)


def make_flush() -> Flush:
    """Return the best flush of this system."""
    request = open_request()
    return BlockingFlush() if request is None else KernelFlush(request)
