"""The machine: its description, its free memory, and whether an experiment fits into it."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from kpg.bench.data.ldbc import files
from kpg.bench.data.readers import estimated_lines
from kpg.bench.experiment import Experiment
from kpg.errors import OverBudget

MEMORY = Path("/proc/meminfo")
PROCESSORS = Path("/proc/cpuinfo")
GIB = 1 << 30
SOURCE = Path(__file__).parents[2]
PACKAGES = {"cozo": "cozo-embedded"}  # peers with another name on PyPI
GIT_STATUS = ("status", "--porcelain", "--untracked-files=no")
GIT_TIMEOUT_SECONDS = 10.0
SCALE_MARGIN = 0.98  # below the largest scale that fits by the estimate
TOUCHED_SHARE = 0.8  # of the free memory; the rest is left to other processes
LEAST_TOUCHED_BYTES = 1 << 28  # less is not worth a process
# 23 is MADV_POPULATE_WRITE of Linux 5.14, which the module mmap does not name; other systems are left alone.
TOUCH_PROGRAM = """
import mmap, sys
with mmap.mmap(-1, int(sys.argv[1]), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
    memory.madvise(mmap.MADV_HUGEPAGE)
    memory.madvise(23)
"""


def describe() -> dict[str, Any]:
    """Return the hardware, the versions and the commit of this run."""
    return {
        "cpu": cpu_name(),
        "cores": os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / GIB, 1),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "numpy": np.__version__,
        "kpg": kpg_version(),
        "commit": commit(),
    }


@cache
def commit(directory: Path = SOURCE) -> str:
    """Return the commit of the source, with a + if files differ from it; "" if kpg is not run from a checkout."""
    if not (directory / ".git").exists():
        return ""
    commands = [["git", "-C", str(directory), *words] for words in (("rev-parse", "--short=12", "HEAD"), GIT_STATUS)]
    try:
        name, changed_files = (
            subprocess.run(
                command, check=True, capture_output=True, text=True, timeout=GIT_TIMEOUT_SECONDS
            ).stdout.strip()
            for command in commands
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return name + ("+" if changed_files else "")


def kpg_version() -> str:
    """Return the installed version of kpg."""
    try:
        return version("kpg")
    except PackageNotFoundError:
        return "not installed"


def peer_version(peer: str) -> str:
    """Return the version of a peer's package; "" if it has none."""
    try:
        return version(PACKAGES.get(peer, peer))
    except PackageNotFoundError:
        return ""


def cpu_name() -> str:
    """Return the processor's name, as the system reports it."""
    try:
        lines = PROCESSORS.read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def free_bytes() -> int:
    """Return the memory that a new process can have."""
    try:
        lines = MEMORY.read_text().splitlines()
    except OSError:
        return int(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    (kilobytes,) = [int(line.split()[1]) for line in lines if line.startswith("MemAvailable")]
    return kilobytes * 1024


def touch_memory(size: int) -> int:
    """Use memory once in a process of its own, which returns it; return the number of bytes that it asked for.

    A virtual machine may get each page from its host at the first use of that page since the machine started, which
    took 2 ms a megabyte on a machine where later uses take 0.05. Without this, an experiment measures the host. The
    peak memory of this process stays as it is.
    """
    size = min(size, int(TOUCHED_SHARE * free_bytes()))
    if size < LEAST_TOUCHED_BYTES:
        return 0
    subprocess.run([sys.executable, "-c", TOUCH_PROGRAM, str(size)], check=False, capture_output=True)
    return size


def check_memory(experiment: Experiment, scale: float, free: int | None = None, data: Path | None = None) -> None:
    """Raise `OverBudget` if an experiment does not fit into memory. A file counts as generated data of its length."""
    free = free_bytes() if free is None else free
    if data is not None and experiment.reads is not None:
        lines = sum(map(estimated_lines, files(data, *experiment.reads.tables) if data.is_dir() else [data]))
        needed = experiment.memory(lines / experiment.reads.rows)
        if needed > free:
            raise OverBudget(
                f"{experiment.id} on {data}, about {lines:,} lines, needs about {needed / GIB:.1f} GiB",
                detail=f"{free / GIB:.1f} GiB are free.",
                hint="Use a smaller file, or a machine with more memory.",
            )
        return
    needed = experiment.memory(scale)
    if needed > free:
        fits = largest_scale(experiment, scale, free)
        raise OverBudget(
            f"{experiment.id} at scale {scale:g} needs about {needed / GIB:.1f} GiB",
            detail=f"{free / GIB:.1f} GiB are free.",
            hint=f"--scale {fits:.2g} fits.",
        )


def largest_scale(experiment: Experiment, scale: float, free: int) -> float:
    """Return the largest scale below `scale` that fits, by bisection."""
    low, high = 0.0, scale
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (middle, high) if experiment.memory(middle) <= free else (low, middle)
    return low * SCALE_MARGIN
