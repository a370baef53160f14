"""The memory that this process may still use, as the machine and its container say.

    free_bytes()           the least of what the machine has available and what each control group leaves
    default_limit()        the memory that this process holds, plus three quarters of what is free

Control groups limit containers and services, in version 1 or 2. Memory of cached files counts as free, because the
system drops it when it needs memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from kpg.api.memory import resident_bytes

GROUPS = Path("/sys/fs/cgroup")


def default_limit() -> int | None:
    """Return a limit for this process that leaves a quarter of the free memory; None if the system does not say."""
    free = free_bytes()
    return None if free is None else resident_bytes() + free * 3 // 4


def free_bytes() -> int | None:
    """Return the memory that is free for this process; None if the system does not say."""
    limits = [free for free in (available_bytes(), *group_bytes()) if free is not None]
    return min(limits, default=None)


def available_bytes(file: Path = Path("/proc/meminfo")) -> int | None:
    """Return the memory that the machine can give to programs without swapping."""
    try:
        lines = dict(line.split(":", 1) for line in file.read_text().splitlines() if ":" in line)
        return int(lines["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        return None


def group_bytes(groups: Path = GROUPS, own: Path = Path("/proc/self/cgroup")) -> Iterator[int]:
    """Yield the memory that each control group around this process leaves."""
    try:
        lines = [line.split(":", 2) for line in own.read_text().splitlines()]
    except OSError:
        return
    for _, controllers, path in (line for line in lines if len(line) == 3):
        if controllers and "memory" not in controllers.split(","):
            continue
        root, names = (groups / "memory", VERSION_1) if controllers else (groups, VERSION_2)
        for folder in (PurePosixPath(path), *PurePosixPath(path).parents):
            free = free_of_group(root / folder.relative_to("/"), *names)
            if free is not None:
                yield free


VERSION_1 = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
VERSION_2 = ("memory.max", "memory.current", "inactive_file")


def free_of_group(folder: Path, limit_name: str, usage_name: str, cache_name: str) -> int | None:
    """Return the memory that one control group leaves; None if it has no limit."""
    try:
        limit, usage = (folder / limit_name).read_text().strip(), int((folder / usage_name).read_text())
        cached = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
        return None if limit == "max" else max(0, int(limit) - usage + int(cached.get(cache_name, 0)))
    except (OSError, ValueError):
        return None
