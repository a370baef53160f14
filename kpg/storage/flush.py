"""Force a file to disk; before that, let the disk start while the caller does other work.

    start_writing(fd, start, size); ...; force(fd)      then everything written to the file before is on disk

`start_writing` is only a hint (`sync_file_range`, where the system has it): it neither waits for the disk nor needs a
thread. `force` alone guarantees, and raises the errors.
"""

from __future__ import annotations

import ctypes
import os
import sys
from functools import cache
from typing import Any

_SYNC_FILE_RANGE_WRITE = 2  # flag: start to write the dirty pages of the range, without waiting for them


def start_writing(fd: int, start: int, size: int) -> None:
    """Let the disk start to write some bytes of a file."""
    sync_file_range = find_sync_file_range()
    if sync_file_range is not None:
        sync_file_range(fd, start, size, _SYNC_FILE_RANGE_WRITE)  # `force` reports the errors


def force(fd: int) -> None:
    """Force a file's data to disk, and the metadata needed to read the data."""
    if hasattr(os, "fdatasync"):
        os.fdatasync(fd)
    else:
        os.fsync(fd)


@cache
def find_sync_file_range() -> Any:
    """Return the C library's `sync_file_range`, None where there is none."""
    if sys.platform != "linux":
        return None
    function = getattr(ctypes.CDLL(None), "sync_file_range", None)
    if function is not None:
        function.argtypes = (ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint)
    return function
