"""Ranks as processes on this machine."""

from __future__ import annotations

import contextlib
import signal
import sys
import time
from dataclasses import replace

from kpg.cluster.hello_messages import RankBootstrap
from kpg.cluster.rank_starter import ENDED_UNSEEN, RankProcess, RankStarter
from kpg.protocol.message_codec import encode

STOP_TIMEOUT_SECONDS = 5.0  # for ranks to end by themselves before they are killed


class LocalLauncher:
    """Starts each rank as a process that ends with this one."""

    start_timeout_seconds = 60.0

    def __init__(self) -> None:
        self._starter: RankStarter | None = None
        self._ranks: dict[int, RankProcess] = {}

    def start(self, bootstrap: RankBootstrap) -> None:
        """Start a rank; end the process that it replaces."""
        rank = bootstrap.rank
        self._end(rank, 0.0)
        process = self._begin()
        with contextlib.suppress(BrokenPipeError):  # it has ended already: its exit status will say so
            process.write(encode(replace(bootstrap, path=tuple(sys.path))).encode() + b"\n")
        self._ranks[rank] = process

    def exit_status(self, rank: int) -> str | None:
        """Say how a rank ended; None while it runs."""
        process = self._ranks.get(rank)
        code = process.wait(0) if process is not None else None
        if code is None:
            return None
        if code == ENDED_UNSEEN:
            return "It ended after the process that had started it."
        return f"It was ended by {signal.Signals(-code).name}." if code < 0 else f"It ended with code {code}."

    def stop(self) -> None:
        """End all ranks; return when they have ended."""
        deadline = time.monotonic() + STOP_TIMEOUT_SECONDS
        for rank in tuple(self._ranks):
            self._end(rank, max(0.0, deadline - time.monotonic()))
        self._release()

    def _begin(self) -> RankProcess:
        """Begin a rank; if the starter is gone, with another one."""
        if self._starter is not None:
            with contextlib.suppress(OSError):
                return self._starter.start()
            self._release()
        self._starter = RankStarter.share()
        return self._starter.start()

    def _release(self) -> None:
        if self._starter is not None:
            self._starter.release()
            self._starter = None

    def _end(self, rank: int, timeout_seconds: float) -> None:
        """Wait for a rank to end, then kill it."""
        process = self._ranks.pop(rank, None)
        if process is None:
            return
        if process.wait(timeout_seconds) is None:
            process.kill()
            process.wait(STOP_TIMEOUT_SECONDS)
        process.close()
