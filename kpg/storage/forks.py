"""The number of forks since this module was imported. A forked child has neither locks nor threads of its parent."""

from __future__ import annotations

import os

FORK_COUNT = [0]  # forks between the process that imported this module and this one; a list, so that importers see it


def _count_fork() -> None:
    FORK_COUNT[0] += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_count_fork)
