"""Where machine code is cached on disk, and which kernels have some. Does not import Numba.

    directory()   = the first candidate that holds the code of every kernel, else the first that can be written
    candidates    = $KPG_CACHE_DIR alone if set; else the package, the user's cache, a private directory for temporary
                    files. A source tree puts the user's cache first, so that its copies share one cache.
    file_name(f)  = module, name, and a digest of the module and of all kernel modules that it imports

Below a candidate there is one directory for each combination of Python, Numba, processor and compile options. Files are
named by content, so a cache can be copied to another path or machine, and stays valid there if the processor has the
same features. Cost of the first call: a few milliseconds, to read the source of the kernels.
"""

from __future__ import annotations

import os
import platform
import re
import stat
import sys
import tempfile
import time
from contextlib import suppress
from functools import cache
from hashlib import blake2b
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from pkgutil import iter_modules
from types import FunctionType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kpg.kernels.jit import Kernel

PACKAGE = "kpg.kernels"
DIGEST_CHARACTERS = 16  # 64 bits: enough to tell the versions of one file apart
DISCARD_AFTER_SECONDS = 30 * 86400.0  # until then, going back to other source compiles nothing
FORMAT = b"1"  # part of every digest: change it when kpg.kernels.machine_code compiles kernels in another way
NOT_COMPILED = {"kpg.kernels.jit", "kpg.kernels.example"}  # imported by all kernels, but no part of their machine code
_DECORATOR = re.compile(rb"^@(?:jit|inlined|jit_in_place|inlined_in_place|compiled_in)\b", re.M)
_IMPORT = re.compile(
    r"^\s*(?:from\s+([\w.]+)\s+import\s+([^\n#]+)|import\s+([\w.]+)|@compiled_in\(\"([\w.]+)\"\))", re.M
)


def has_code(kernel: Kernel) -> bool:
    """Return whether the cache holds machine code of a kernel."""
    cache_path = directory()
    return cache_path is not None and (cache_path / f"{file_name(kernel.function)}.nbi").exists()


@cache
def directory() -> Path | None:
    """Return the directory of machine code for this Python, Numba and processor; None if none can be written."""
    key = environment_key()
    paths = [candidate / key for candidate in candidates() if _is_trusted(candidate)]
    complete = (path for path in paths if is_complete(path))
    return next(complete, None) or next((path for path in paths if _is_writable(path)), None)


def candidates() -> list[Path]:
    """Return the directories that may hold the cache, in order of preference."""
    if chosen := os.environ.get("KPG_CACHE_DIR"):
        return [Path(chosen)]
    package = Path(__file__).parent / "__pycache__"
    user = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()) / "kpg"
    is_source_tree = (Path(__file__).parents[2] / "pyproject.toml").exists()
    paths = [user, package] if is_source_tree else [package, user]
    return [*paths, temporary_directory()]


def temporary_directory() -> Path:
    """Return a directory for temporary files that is this user's alone."""
    return Path(tempfile.gettempdir()) / (f"kpg-{os.getuid()}" if hasattr(os, "getuid") else "kpg")


def _is_trusted(candidate: Path) -> bool:
    """Return whether no other user can have written to a candidate: a cache is code that will run."""
    if candidate != temporary_directory() or not hasattr(os, "getuid"):
        return True  # the user's own choice, or as safe as the package
    try:
        status = candidate.lstat()
    except OSError:
        return True  # the directory does not exist yet
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not status.st_mode & 0o022


def _is_writable(path: Path) -> bool:
    """Return whether files can be created in a directory below a candidate; both are made if they do not exist."""
    candidate = path.parent
    try:
        candidate.mkdir(mode=0o700 if candidate == temporary_directory() else 0o777, parents=True, exist_ok=True)
        path.mkdir(exist_ok=True)
        tempfile.TemporaryFile(dir=path).close()
    except OSError:
        return False
    return _is_trusted(candidate)


# What a cache holds


def is_complete(path: Path, package: str = PACKAGE) -> bool:
    """Return whether a directory holds the machine code of every kernel of the package."""
    return marker(path, package).exists()


def marker(path: Path, package: str = PACKAGE) -> Path:
    """Return the file that exists once every kernel of the package is in the directory."""
    whole = _digest([digest.encode() for digest in digests(package).values()])
    return path / f"{package}-{whole}.complete"


def discard_old(path: Path) -> None:
    """Delete files that were made from other source and have not changed for DISCARD_AFTER_SECONDS."""
    current, before = set(digests().values()), time.time() - DISCARD_AFTER_SECONDS
    for file in path.glob("*.nb[ic]"):
        digest = file.name.partition("-")[2].partition(".")[0]
        with suppress(OSError):  # another process may do the same
            if digest not in current and file.stat().st_mtime < before:
                file.unlink()


def file_name(function: FunctionType) -> str:
    """Return the name of the files of a kernel, without their endings."""
    return f"{function.__module__}.{function.__qualname__}-{digest_of_module(function.__module__)}"


@cache
def digest_of_module(module: str) -> str:
    """Return the digest of the source that the kernels of a module are compiled from."""
    package = module.rpartition(".")[0]
    known = digests(package) if package and hasattr(sys.modules.get(package), "__path__") else {}
    return known.get(module) or _digest([_source(module)])


@cache
def digests(package: str = PACKAGE) -> dict[str, str]:
    """Return for each module with kernels a digest of its source and of the package's modules that it imports."""
    modules = iter_modules(import_module(package).__path__, f"{package}.")
    sources = {module.name: _source(module.name) for module in sorted(modules, key=lambda module: module.name)}
    imports = {name: _imported(source) & sources.keys() - NOT_COMPILED for name, source in sources.items()}
    with_kernels = [name for name, source in sources.items() if _DECORATOR.search(source)]
    return {name: _digest([sources[module] for module in _closure(name, imports)]) for name in with_kernels}


def _source(module: str) -> bytes:
    """Return the source of a module without importing it; nothing if there is none, as at a prompt."""
    spec: Any = find_spec(module) if module != "__main__" else getattr(sys.modules[module], "__spec__", None)
    try:
        return bytes(spec.loader.get_data(spec.origin))  # also from a zip file
    except (AttributeError, OSError, TypeError):
        return b""


def _digest(sources: list[bytes]) -> str:
    return blake2b(b"\0".join([FORMAT, *sources]), digest_size=DIGEST_CHARACTERS // 2).hexdigest()


def _imported(source: bytes) -> set[str]:
    """Return the modules that a source imports, and the modules of its compiled versions."""
    names: set[str] = set()
    for origin, imported, module, compiled in _IMPORT.findall(source.decode()):
        names |= {origin, module, compiled, *(f"{origin}.{name.strip(' ()')}" for name in imported.split(","))}
    return names


def _closure(start: str, imports: dict[str, set[str]]) -> list[str]:
    """Return the module and all modules that it imports, directly or not, sorted."""
    seen, pending = {start}, [start]
    while pending:
        new = imports[pending.pop()] - seen
        seen |= new
        pending += new
    return sorted(seen)


# What machine code depends on beside its source


def environment_key() -> str:
    """Return the name of the directory for this Python, Numba, processor and compile options."""
    python = f"py{sys.version_info.major}{sys.version_info.minor}"
    checks = "-boundscheck" if os.environ.get("NUMBA_BOUNDSCHECK", "0") not in ("", "0") else ""
    return f"{python}-numba{numba_version()}-{platform.machine()}-{processor()}{checks}"


def numba_version() -> str:
    """Return the version of the installed Numba; reads a directory, since importlib.metadata takes 20 ms to import."""
    spec = find_spec("numba")
    if spec is None or spec.origin is None:
        return "-missing"
    distributions = sorted(Path(spec.origin).parent.parent.glob("numba-*.dist-info"))
    if len(distributions) == 1:
        return distributions[0].name.removeprefix("numba-").removesuffix(".dist-info")
    from importlib.metadata import version

    return version("numba")


def processor() -> str:
    """Return a digest of the processor's features, or the processor that NUMBA_CPU_NAME names."""
    if name := os.environ.get("NUMBA_CPU_NAME"):
        return _digest([name.encode(), os.environ.get("NUMBA_CPU_FEATURES", "").encode()])
    try:
        lines = Path("/proc/cpuinfo").read_text().split("\n\n")[0].splitlines()
    except OSError:
        return _digest([platform.processor().encode()])
    kept = [line for line in lines if line.startswith(("model name", "flags", "Features", "CPU part"))]
    return _digest(["\n".join(kept).encode()])
