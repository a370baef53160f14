"""Where the time goes: cProfile of what an experiment has on its clocks, split by file of the engine, kernels by name.

Numba tells the profiler when a kernel is called from Python, so kernels have lines of their own; kernels that kernels
call do not. Time is CPU time; the profiler itself takes about a microsecond a call, so a profile shows proportions.
"""

from __future__ import annotations

import cProfile
import pstats
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.measure import ROOT, Clock

TOP = 25


class Profiles:
    """One profile for each clock: only what is on a clock is looked at. Of clocks in clocks, the innermost counts."""

    def __init__(self) -> None:
        self.profiles: dict[str, cProfile.Profile] = defaultdict(lambda: cProfile.Profile(time.process_time))
        self.running: list[str] = []

    def begin(self, name: str) -> None:
        """A block of the clock begins."""
        if self.running:
            self.profiles[self.running[-1]].disable()
        self.running.append(name)
        self.profiles[name].enable()

    def end(self, name: str) -> None:
        """It ends."""
        self.profiles[name].disable()
        self.running.pop()
        if self.running:
            self.profiles[self.running[-1]].enable()


def profiled(work: Callable[[], object]) -> str:
    """Do some work under the profiler; what took how long, by clock, by file and by function."""
    profiles = Profiles()
    Clock.observer = profiles
    try:
        work()
    finally:
        Clock.observer = None
    return "\n\n".join(f"== {name}: {report(profile)}" for name, profile in profiles.profiles.items())


def report(profile: cProfile.Profile) -> str:
    """Seconds in each file of the engine, then the functions that took most."""
    stats: dict[tuple[str, int, str], tuple[int, int, float, float, Any]] = pstats.Stats(profile).stats  # type: ignore[attr-defined]
    files: dict[str, list[float]] = defaultdict(lambda: [0.0, 0])
    for (file, _, _), (_, calls, own, _, _) in stats.items():
        files[place(file)][0] += own
        files[place(file)][1] += calls
    total = sum(own for own, _ in files.values())
    lines = [f"{total:.3f} s in all, under the profiler", "", "own seconds   share      calls  file"]
    for name, (own, count) in sorted(files.items(), key=lambda item: -item[1][0])[:TOP]:
        lines.append(f"{own:11.3f} {own / total:7.1%} {int(count):10,}  {name}")
    lines += ["", "own seconds  with callees      calls  function"]
    for (file, line, name), (_, calls, own, whole, _) in sorted(stats.items(), key=lambda item: -item[1][2])[:TOP]:
        lines.append(f"{own:11.3f} {whole:13.3f} {calls:10,}  {place(file)}:{line} {name}")
    return "\n".join(lines)


def place(file: str) -> str:
    """A file, as seen from the root of the repository or by its library."""
    path = Path(file)
    if path.is_relative_to(ROOT) and "site-packages" not in file:
        return path.relative_to(ROOT).as_posix()
    parts = path.parts
    return f"({parts[parts.index('site-packages') + 1]})" if "site-packages" in parts else f"({path.name})"
