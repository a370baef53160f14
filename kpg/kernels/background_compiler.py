"""A process that compiles all kernels into the cache while other processes work interpreted.

`start` launches it with the lowest priority and in a session of its own, so that it outlives the process that needed
it: the next start finds the code. A lock file in the cache admits one such process at a time, and none soon after
another one, since a process that was killed would probably be killed again. Platforms without file locks have none.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kpg.kernels.code_cache import PACKAGE, directory
from kpg.kernels.warm import all_examples, compile_kernel, mark_complete

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

RETRY_AFTER_SECONDS = 300.0  # since the last start of such a process; a whole run takes one to three minutes
LOWEST_PRIORITY = 19
_STARTED: list[subprocess.Popen[bytes]] = []  # referenced, so that Python does not warn of a process that goes on


def start() -> bool:
    """Start the process unless one is running or has just been; return whether it was started."""
    cache_path = directory()
    if (
        cache_path is None
        or fcntl is None
        or not sys.executable
        or _seconds_since_start(cache_path) < RETRY_AFTER_SECONDS
    ):
        return False
    source = str(Path(__file__).parents[2])
    path = os.pathsep.join(filter(None, [source, os.environ.get("PYTHONPATH")]))
    command = [sys.executable, "-m", "kpg.kernels.background_compiler"]
    environment = {**os.environ, "PYTHONPATH": path, "KPG_CACHE_DIR": str(cache_path.parent)}
    streams: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
    try:
        _lock_file(cache_path).touch()
        process = subprocess.Popen(command, env=environment, cwd=cache_path, start_new_session=True, **streams)
        _STARTED.append(process)
        os.setpriority(os.PRIO_PROCESS, process.pid, LOWEST_PRIORITY)
    except OSError:  # no memory for a process, or a read-only cache: kernels are compiled when they are needed
        return False
    return True


def compile_all(package: str = PACKAGE) -> int:
    """Compile or load all kernels, last ones first; return their number, or 0 if another process does it.

    A process that calls warm() goes from the first to the last, so the two meet and share the work.
    """
    cache_path = directory()
    if cache_path is None:
        return 0
    with _exclusive(cache_path) as admitted:
        examples = all_examples(package) if admitted else []
        for kernel, arguments in reversed(examples):
            compile_kernel(kernel, arguments)
        if admitted:
            mark_complete(package)
    return len(examples)


@contextmanager
def _exclusive(cache_path: Path) -> Iterator[bool]:
    """Hold the lock of a cache; yield False if another process holds it."""
    with _lock_file(cache_path).open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield False
        else:
            yield True


def _seconds_since_start(cache_path: Path) -> float:
    try:
        return time.time() - _lock_file(cache_path).stat().st_mtime
    except OSError:
        return float("inf")


def _lock_file(cache_path: Path) -> Path:
    return cache_path / "compiling.lock"


if __name__ == "__main__":
    compile_all()
