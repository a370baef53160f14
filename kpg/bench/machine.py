"""The machine: what it is called, how much memory it has left, and whether an experiment fits."""

from __future__ import annotations

import os
import platform
import subprocess
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from kpg.bench.data.ldbc import files
from kpg.bench.data.readers import about_lines
from kpg.bench.experiment import Experiment
from kpg.errors import OverBudget

MEMORY = Path("/proc/meminfo")
PROCESSORS = Path("/proc/cpuinfo")
GIB = 1 << 30
SOURCE = Path(__file__).parents[2]
PACKAGES = {"cozo": "cozo-embedded"}  # peers that are called otherwise on PyPI
CHANGED = ("status", "--porcelain", "--untracked-files=no")
GIT_SECONDS = 10.0


def describe() -> dict[str, Any]:
    """Where this runs."""
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
    """The commit that runs, with a + if files of it were changed; nothing if kpg was installed, not checked out."""
    if not (directory / ".git").exists():
        return ""
    try:
        asked = [["git", "-C", str(directory), *words] for words in (("rev-parse", "--short=12", "HEAD"), CHANGED)]
        found, changed = (
            subprocess.run(each, check=True, capture_output=True, text=True, timeout=GIT_SECONDS).stdout.strip()
            for each in asked
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return found + ("+" if changed else "")


def kpg_version() -> str:
    """The version of kpg that runs."""
    try:
        return version("kpg")
    except PackageNotFoundError:
        return "not installed"


def peer_version(peer: str) -> str:
    """The version of another system that was asked; nothing if it does not say."""
    try:
        return version(PACKAGES.get(peer, peer))
    except PackageNotFoundError:
        return ""


def cpu_name() -> str:
    """The processor, as the system calls it."""
    try:
        lines = PROCESSORS.read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def free_bytes() -> int:
    """The memory that a new process can have."""
    try:
        lines = MEMORY.read_text().splitlines()
    except OSError:
        return int(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    (kilobytes,) = [int(line.split()[1]) for line in lines if line.startswith("MemAvailable")]
    return kilobytes * 1024


def refuse_if_too_large(
    experiment: Experiment, scale: float, free: int | None = None, data: Path | None = None
) -> None:
    """Raise before anything is made, if an experiment would not fit; a file counts as what has as many rows."""
    free = free_bytes() if free is None else free
    if data is not None and experiment.reads is not None:
        lines = sum(map(about_lines, files(data, *experiment.reads.tables) if data.is_dir() else [data]))
        needed = experiment.memory(lines / experiment.reads.rows)
        if needed > free:
            raise OverBudget(
                f"{experiment.id} on {data}, about {lines:,} lines, needs about {needed / GIB:.1f} GiB",
                detail=f"{free / GIB:.1f} GiB are free.",
                hint="Give it a smaller file, or a bigger machine.",
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
    """The largest scale that fits, to two digits or so."""
    low, high = 0.0, scale
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (middle, high) if experiment.memory(middle) <= free else (low, middle)
    return low * 0.98
