"""Where the time goes: cProfile of one experiment, split by file of the engine, kernels by name.

cProfile does not see compiled code: its time would be charged to whoever calls it. So for a profile each kernel is
wrapped in a Python function that carries the kernel's file and name. The wrapper and the profiler cost some
microseconds a call, so a profile shows proportions, not figures.
"""

from __future__ import annotations

import cProfile
import pstats
import sys
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.measure import ROOT

TOP = 25


def profiled(work: Callable[[], object]) -> str:
    """Do some work under the profiler; what took how long, by file and by function."""
    name_kernels()
    profile = cProfile.Profile()
    profile.enable()
    try:
        work()
    finally:
        profile.disable()
    return report(profile)


def name_kernels() -> None:
    """Put a Python function of the same name and file around every kernel that a module of kpg calls."""
    from kpg.kernels.warm import jitted, modules

    modules()
    wrapped = {id(kernel): _wrap(kernel) for kernel in jitted().values()}
    for name, module in list(sys.modules.items()):
        if name.startswith("kpg.") and not name.startswith("kpg.kernels."):
            for key, value in list(vars(module).items()):
                if id(value) in wrapped:
                    setattr(module, key, wrapped[id(value)])


def _wrap(kernel: Any) -> Callable[..., Any]:
    def call(*arguments: Any) -> Any:
        return kernel(*arguments)

    code = kernel.py_func.__code__
    call.__code__ = call.__code__.replace(co_filename=code.co_filename, co_name=f"{code.co_name} (kernel)")
    return call


def report(profile: cProfile.Profile) -> str:
    """Seconds in each file of the engine, then the functions that took most."""
    stats: dict[tuple[str, int, str], tuple[int, int, float, float, Any]] = pstats.Stats(profile).stats  # type: ignore[attr-defined]
    files: dict[str, list[float]] = defaultdict(lambda: [0.0, 0])
    for (file, _, _), (_, calls, own, _, _) in stats.items():
        files[place(file)][0] += own
        files[place(file)][1] += calls
    total = sum(own for own, _ in files.values())
    lines = [f"{total:8.3f} s in all, under the profiler", "", "own seconds   share      calls  file"]
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
