"""Memory that the process keeps after it was freed, for the next large block.

    keep_freed_memory()      from now on, freed memory up to KEPT_BYTES is used again instead of returned to the system
    return_freed_memory()    return all of it

Each transaction allocates large blocks and frees them. By default the C library takes such blocks from the system and
returns them, and the system clears every page anew: for bulk work this may cost more time than the work itself. The
setting belongs to the C library (glibc) and so to the whole process. It is left alone under other libraries, if the
environment configures it (MALLOC_TRIM_THRESHOLD_, GLIBC_TUNABLES, …), or if KPG_KEEP_MEMORY=0.
"""

from __future__ import annotations

import ctypes
import os
from functools import cache
from typing import Any, Final

KEPT_BYTES: Final = 1 << 30  # free memory kept: enough for the blocks of a transaction of some ten million numbers
LARGEST_BLOCK_BYTES: Final = 1 << 30  # a larger block is taken from the system, and returned
GROWTH_BYTES: Final = 1 << 26  # memory is taken from the system in steps of this size
# Parameters of mallopt, as <malloc.h> defines them.
_TRIM_THRESHOLD: Final = -1
_TOP_PAD: Final = -2
_MMAP_THRESHOLD: Final = -3
_ARENA_MAX: Final = -8


@cache
def keep_freed_memory() -> bool:
    """Keep freed memory for reuse; return whether the C library does so. Only the first call has an effect."""
    library = _library()
    if library is None or is_configured():
        return False
    settings = (
        (_MMAP_THRESHOLD, LARGEST_BLOCK_BYTES),
        (_TRIM_THRESHOLD, KEPT_BYTES),
        (_TOP_PAD, GROWTH_BYTES),
        (_ARENA_MAX, 1),  # heaps of other threads hold at most 64 MiB: the helper thread uses that of the main thread
    )
    return all(library.mallopt(parameter, value) == 1 for parameter, value in settings)


def return_freed_memory() -> None:
    """Return freed memory to the system."""
    library = _library()
    if library is not None:
        library.malloc_trim(0)


def is_configured() -> bool:
    """Return whether the environment decides what happens to freed memory."""
    if os.environ.get("KPG_KEEP_MEMORY") == "0":
        return True
    return "malloc" in os.environ.get("GLIBC_TUNABLES", "") or any(name.startswith("MALLOC_") for name in os.environ)


@cache
def _library() -> Any:
    """Return the C library if it is glibc, else None."""
    try:
        library = ctypes.CDLL(None)
        library.gnu_get_libc_version  # noqa: B018  # raises if the library is another one
    except (OSError, AttributeError, TypeError):
        return None
    return library
