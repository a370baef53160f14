"""The memory limit: a clear refusal before the machine runs out.

What counts is the resident memory of this process, looked at when rows come in and after each advance; a check costs
microseconds and is made only if there is a limit.
"""

from __future__ import annotations

import os

from kpg.errors import OverBudget

PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


def resident_bytes() -> int:
    """The memory this process holds now."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * PAGE
    except OSError:  # not Linux: the peak is the best there is
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def machine_bytes() -> int | None:
    """The memory of this machine, if that can be known."""
    try:
        return int(os.sysconf("SC_PHYS_PAGES")) * PAGE
    except (AttributeError, OSError, ValueError):
        return None


class Memory:
    """A limit of bytes, or none."""

    def __init__(self, limit: int | None) -> None:
        self.limit = limit

    def check(self, more: int = 0) -> None:
        """Refuse to go on if what is held, and `more`, is over the limit."""
        if self.limit is not None and resident_bytes() + more > self.limit:
            raise OverBudget(
                f"over the memory limit of {self.limit:,} bytes",
                detail=f"Held: {resident_bytes():,} bytes; asked for: {more:,} more.",
                hint="Release answers and arrangements that are not needed, or open the db with more memory_limit=.",
            )
