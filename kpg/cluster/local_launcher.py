"""Ranks as processes on this machine, and a spare process that replaces a lost one."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

from kpg.cluster.hello_messages import RankBootstrap
from kpg.protocol.message_codec import encode

STOP_TIMEOUT_SECONDS = 5.0  # for ranks to end by themselves before they are killed


class LocalLauncher:
    """Starts each rank as a child process that ends with this one."""

    start_timeout_seconds = 60.0

    def __init__(self, spare: bool = False) -> None:
        self._children: dict[int, subprocess.Popen[bytes]] = {}
        self._keep_spare = spare
        self._spare: subprocess.Popen[bytes] | None = None

    def start(self, bootstrap: RankBootstrap) -> None:
        """Start a rank; end the process that it replaces."""
        rank = bootstrap.rank
        replaces_another = self._end(rank, 0.0)
        child, self._spare = self._spare, None
        if child is None or child.poll() is not None:
            child = spawn([])
        if self._keep_spare and (replaces_another or rank == 0):
            self._spare = spawn(["--spare"])
        assert child.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it has ended already: its exit status will say so
            child.stdin.write(encode(replace(bootstrap, path=tuple(sys.path))).encode() + b"\n")
            child.stdin.flush()
        self._children[rank] = child

    def exit_status(self, rank: int) -> str | None:
        """Say how a rank ended; None while it runs."""
        child = self._children.get(rank)
        code = child.poll() if child is not None else None
        if code is None:
            return None
        return f"It was ended by {signal.Signals(-code).name}." if code < 0 else f"It ended with code {code}."

    def pid(self, rank: int) -> int:
        """Return the process id of a rank."""
        return self._children[rank].pid

    def stop(self) -> None:
        """End all ranks; return when they have ended."""
        if self._spare is not None:
            self._spare.kill()
            self._close(self._spare)
        deadline = time.monotonic() + STOP_TIMEOUT_SECONDS
        for rank in tuple(self._children):
            self._end(rank, max(0.0, deadline - time.monotonic()))

    def _end(self, rank: int, timeout_seconds: float) -> bool:
        """Wait for a rank to end, then kill it. Return whether there was one."""
        child = self._children.pop(rank, None)
        if child is None:
            return False
        try:
            child.wait(timeout_seconds)
        except subprocess.TimeoutExpired:
            child.kill()
        self._close(child)
        return True

    def _close(self, child: subprocess.Popen[bytes]) -> None:
        child.wait()
        assert child.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            child.stdin.close()


def spawn(arguments: list[str]) -> subprocess.Popen[bytes]:
    """Start a process that waits for the bootstrap of a rank."""
    command = [sys.executable, "-m", "kpg.cluster", *arguments]
    return subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True, env=environment())


def environment() -> dict[str, str]:
    """Return the environment of a rank: that of this process, with the directory that kpg was imported from."""
    import kpg

    root = os.path.dirname(os.path.dirname(os.path.abspath(kpg.__file__)))
    before = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": root if not before else f"{root}{os.pathsep}{before}"}
