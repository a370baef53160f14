"""Profiles of an experiment: CPU time inside its named stopwatches, by file of the engine and by kernel.

Numba reports a kernel to the profiler when Python calls it, so kernels have lines of their own; kernels that other
kernels call do not. The profiler costs about a microsecond a call, so a profile shows proportions.
"""

from __future__ import annotations

import cProfile
import pstats
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kpg.bench.machine import SOURCE
from kpg.bench.measure import Stopwatch

MAX_LINES = 25  # of each part of a profile


class StopwatchProfiles:
    """One profile for each named stopwatch. Of nested stopwatches only the innermost is profiled."""

    def __init__(self) -> None:
        self.profiles: dict[str, cProfile.Profile] = defaultdict(lambda: cProfile.Profile(time.process_time))
        self.running: list[str] = []

    def begin(self, name: str) -> None:
        """Begin a block of a stopwatch."""
        if self.running:
            self.profiles[self.running[-1]].disable()
        self.running.append(name)
        self.profiles[name].enable()

    def end(self, name: str) -> None:
        """End the block."""
        self.profiles[name].disable()
        self.running.pop()
        if self.running:
            self.profiles[self.running[-1]].enable()


def profiled(work: Callable[[], object]) -> str:
    """Run some work and return the profiles of its named stopwatches as text."""
    observer = StopwatchProfiles()
    Stopwatch.observer = observer
    try:
        work()
    finally:
        Stopwatch.observer = None
    texts = [f"== {name}: {report(profile)}" for name, profile in observer.profiles.items()]
    return "\n\n".join(texts) or "This experiment has no named stopwatch."


def report(profile: cProfile.Profile) -> str:
    """Return the CPU seconds of each file, then those of the slowest functions."""
    stats: dict[tuple[str, int, str], tuple[int, int, float, float, Any]] = pstats.Stats(profile).stats  # type: ignore[attr-defined]
    files: dict[str, list[float]] = defaultdict(lambda: [0.0, 0])
    for (file, _, _), (_, calls, own, _, _) in stats.items():
        files[file_label(file)][0] += own
        files[file_label(file)][1] += calls
    total = sum(own for own, _ in files.values())
    lines = [f"{total:.3f} s in all, under the profiler", "", "own seconds   share      calls  file"]
    for name, (own, count) in sorted(files.items(), key=lambda item: -item[1][0])[:MAX_LINES]:
        lines.append(f"{own:11.3f} {own / total:7.1%} {int(count):10,}  {name}")
    lines += ["", "own seconds  with callees      calls  function"]
    for (file, line, name), (_, calls, own, whole, _) in sorted(stats.items(), key=lambda item: -item[1][2])[
        :MAX_LINES
    ]:
        lines.append(f"{own:11.3f} {whole:13.3f} {calls:10,}  {file_label(file)}:{line} {name}")
    return "\n".join(lines)


def file_label(file: str) -> str:
    """Return a file relative to the repository, or the name of its library."""
    path = Path(file)
    if path.is_relative_to(SOURCE) and "site-packages" not in file:
        return path.relative_to(SOURCE).as_posix()
    parts = path.parts
    return f"({parts[parts.index('site-packages') + 1]})" if "site-packages" in parts else f"({path.name})"
