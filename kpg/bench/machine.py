"""The machine: what it is called, how much memory it has left, and whether an experiment fits."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from kpg.bench.experiment import Experiment
from kpg.errors import OverBudget

MEMORY = Path("/proc/meminfo")
PROCESSORS = Path("/proc/cpuinfo")
GIB = 1 << 30


def describe() -> dict[str, Any]:
    """Where this runs."""
    return {
        "cpu": cpu_name(),
        "cores": os.cpu_count(),
        "memory_gib": round(free_bytes() / GIB, 1),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "kpg": kpg_version(),
    }


def kpg_version() -> str:
    """The version of kpg that runs."""
    try:
        return version("kpg")
    except PackageNotFoundError:
        return "not installed"


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


def refuse_if_too_large(experiment: Experiment, scale: float, free: int | None = None) -> None:
    """Raise before anything is made, if an experiment would not fit."""
    free = free_bytes() if free is None else free
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
