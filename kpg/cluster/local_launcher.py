"""Ranks as processes on this machine, and one more that waits to take the place of a lost one."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from typing import Any

GRACE = 5.0  # seconds to end by themselves


class LocalLauncher:
    """Starts each rank as a child process that ends with this one."""

    patience = 60.0

    def __init__(self, spare: bool = False) -> None:
        self._children: dict[int, subprocess.Popen[bytes]] = {}
        self._keep_spare = spare
        self._spare: subprocess.Popen[bytes] | None = None

    def start(self, rank: int, bootstrap: dict[str, Any]) -> None:
        """Bring a rank up, in place of whatever it was before."""
        lost = self._end(rank, 0.0)
        child, self._spare = self._spare, None
        if child is None or child.poll() is not None:
            child = spawn([])
        if self._keep_spare and (lost or rank == 0):
            self._spare = spawn(["--spare"])
        assert child.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it died at once; its fate is told soon
            child.stdin.write(json.dumps({**bootstrap, "path": sys.path}).encode() + b"\n")
            child.stdin.flush()
        self._children[rank] = child

    def fate(self, rank: int) -> str | None:
        """How a rank ended, if it has."""
        child = self._children.get(rank)
        code = child.poll() if child is not None else None
        if code is None:
            return None
        return f"It was ended by {signal.Signals(-code).name}." if code < 0 else f"It ended with code {code}."

    def pid(self, rank: int) -> int:
        """The process of a rank."""
        return self._children[rank].pid

    def stop(self) -> None:
        """End all ranks; returns when they are gone."""
        if self._spare is not None:
            self._spare.kill()
            self._close(self._spare)
        end = time.monotonic() + GRACE
        for rank in tuple(self._children):
            self._end(rank, max(0.0, end - time.monotonic()))

    def _end(self, rank: int, seconds: float) -> bool:
        """End a rank, if there is one, after so many seconds; whether there was."""
        child = self._children.pop(rank, None)
        if child is None:
            return False
        try:
            child.wait(seconds)
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
    """A process that waits to be told which rank it is."""
    command = [sys.executable, "-m", "kpg.cluster", *arguments]
    return subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True, env=environment())


def environment() -> dict[str, str]:
    """The environment of a rank: ours, and the place that kpg was imported from."""
    import kpg

    root = os.path.dirname(os.path.dirname(os.path.abspath(kpg.__file__)))
    before = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": root if not before else f"{root}{os.pathsep}{before}"}
