"""Whether this process was forked off from another: locks, and threads of the C library, are not inherited."""

from __future__ import annotations

import os

FORKS = [0]  # how many forks lie between this process and the one that imported this


def _forked() -> None:
    FORKS[0] += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
