"""Write blocks of memory to a file past the page cache, while the caller does other work.

    write = open_kernel_write(); write.begin(fd, address, size, offset, force); ...; write.wait()

This is the kernel's own interface for asynchronous I/O (`io_submit`), called through ctypes: no thread of this process
has to wake up, and nothing waits for the interpreter lock. `wait` raises the errors. After it, the disk has the blocks.
With `force`, they are durable: a thread of the kernel also empties the disk's own cache. Otherwise the caller must
force the file. The memory must not change until `wait` has returned.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import platform
import struct
import sys
from typing import Any, Final

# The numbers of io_setup, io_destroy, io_getevents and io_submit, by processor.
_CALL_NUMBERS: Final = {"x86_64": (206, 207, 208, 209), "aarch64": (0, 1, 4, 2)}
_WRITE = 1  # operation: IOCB_CMD_PWRITE
_FORCE = 2  # flag of a write: RWF_DSYNC
_BLOCK = struct.Struct("<QIiHhIQQqQII")  # struct iocb: flags are field 2; then operation, priority, file, address, size
_EVENT = struct.Struct("<QQqq")  # struct io_event: field 2 is the number of bytes done, or an error number below 0


class KernelWrite:
    """A context of asynchronous I/O with room for one write."""

    def __init__(self, libc: Any, calls: tuple[int, int, int, int]) -> None:
        self._libc = libc
        self._setup, self._destroy, self._getevents, self._submit = calls
        self._block = ctypes.create_string_buffer(_BLOCK.size)
        self._blocks = (ctypes.c_void_p * 1)(ctypes.addressof(self._block))
        self._event = ctypes.create_string_buffer(_EVENT.size)
        self._size = 0  # of the write under way, in bytes
        self._under_way = False
        context = ctypes.c_ulong(0)
        self._context: ctypes.c_ulong | None = None
        if libc.syscall(self._setup, 1, ctypes.byref(context)) != 0:
            raise _last_error()
        self._context = context

    def begin(self, fd: int, address: int, size: int, offset: int, force: bool = False) -> None:
        """Start to write memory to a file that was opened with O_DIRECT; with `force`, the kernel makes it durable."""
        if self._under_way:
            self.wait()  # an interrupted caller may have left a write under way
        flags = _FORCE if force else 0
        _BLOCK.pack_into(self._block, 0, 0, 0, flags, _WRITE, 0, fd, address, size, offset, 0, 0, 0)
        if self._libc.syscall(self._submit, self._context, 1, self._blocks) != 1:
            raise _last_error()
        self._size, self._under_way = size, True

    def wait(self) -> None:
        """Wait until the disk has the blocks; return immediately if no write is under way."""
        if not self._under_way:
            return
        while self._libc.syscall(self._getevents, self._context, 1, 1, self._event, None) != 1:
            if ctypes.get_errno() != errno.EINTR:
                self._under_way = False
                raise _last_error()
        self._under_way = False
        done = _EVENT.unpack(self._event)[2]
        if done != self._size:
            raise _error(-done if done < 0 else errno.EIO)

    def __del__(self) -> None:
        if self._under_way:  # the kernel still reads this object's memory
            with contextlib.suppress(OSError):
                self.wait()
        if self._context is not None:
            self._libc.syscall(self._destroy, self._context)


def open_kernel_write() -> KernelWrite | None:
    """Return a new context, None if this system has no such interface or refuses it."""
    calls = _CALL_NUMBERS.get(platform.machine())
    if sys.platform != "linux" or calls is None:
        return None
    try:
        return KernelWrite(ctypes.CDLL(None, use_errno=True), calls)
    except OSError:
        return None


def _last_error() -> OSError:
    return _error(ctypes.get_errno())


def _error(number: int) -> OSError:
    return OSError(number, os.strerror(number))
