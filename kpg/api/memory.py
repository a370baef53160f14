"""The memory limit: an error that names the limit, before the machine runs out of memory.

The limit applies to the resident memory of this process. It is checked when rows are inserted and after each advance. A
check costs microseconds, and is made only if there is a limit.
"""

from __future__ import annotations

import os

from kpg.errors import OverBudget

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


def resident_bytes() -> int:
    """Return the resident memory of this process; where the system does not say, its peak."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * PAGE_BYTES
    except OSError:  # not Linux
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def machine_bytes() -> int | None:
    """Return the memory of this machine; None if the system does not say."""
    try:
        return int(os.sysconf("SC_PHYS_PAGES")) * PAGE_BYTES
    except (AttributeError, OSError, ValueError):
        return None


class Memory:
    """A limit in bytes, or none."""

    def __init__(self, limit: int | None) -> None:
        self.limit = limit

    def check(self, more: int = 0) -> None:
        """Raise if the process, with `more` bytes, would exceed the limit."""
        if self.limit is not None and resident_bytes() + more > self.limit:
            raise OverBudget(
                f"over the memory limit of {self.limit:,} bytes",
                detail=f"Held: {resident_bytes():,} bytes; asked for: {more:,} more.",
                hint="Release unused answers and arrangements, or open the db with a larger memory_limit=.",
            )
