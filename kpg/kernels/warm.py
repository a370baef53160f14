"""Compile every kernel before it is needed, once per machine, and discard machine code that is older than its source.

    after warm():   every kernel is compiled for its one signature and cached on disk,
                    and the cache holds no code compiled from source that has changed since.

Numba notices a change of a kernel's own file, but not of a kernel that it calls from another file: the caller's cached
code still contains the old callee. So `warm` stores, for each module, a digest of its source and of all kernel modules
that it imports, and discards the module's cached code when the digest differs.

Cost: with a warm cache a tenth of a second, once per process; with a cold cache the time to compile, under a progress
bar.
"""

from __future__ import annotations

import ast
import json
import os
import pkgutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import numba
from llvmlite.binding import get_host_cpu_name
from numba import typeof, types
from numba.extending import is_jitted

from kpg.kernels.example import Example

PACKAGE = "kpg.kernels"
REPORT_AFTER_SECONDS = 2.0  # compile time after which a process without a terminal prints a line
Digests = dict[str, str]
_WARM: set[str] = set()  # packages that this process has checked; their source does not change while it runs


def warm(progress: bool | None = None, package: str = PACKAGE) -> int:
    """Compile and cache every kernel; return the number of kernels processed (0 if the cache was warm).

    `progress`: True shows a bar on stderr, False shows nothing. None shows a bar if stderr is a terminal; otherwise it
    prints one line if compiling takes long.
    """
    if package in _WARM:
        return 0
    discard_stale(package)
    examples = all_examples(package) if is_cold(package) else []
    show = _bar if progress or (progress is None and sys.stderr.isatty()) else _line if progress is None else iter
    for kernel, arguments in show(examples):
        compile_kernel(kernel, arguments)
    if examples:
        _remember(package, digests(package), complete=True)
    _WARM.add(package)
    return len(examples)


def compile_kernel(kernel: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    """Compile for the types of the arguments, or load the cached code; the kernel is not run."""
    dispatcher: Any = kernel
    dispatcher.compile(tuple(typeof(argument) for argument in arguments))


def load(package: str = PACKAGE) -> Iterator[str]:
    """Load the cached code, one kernel per step, so that the first call of a kernel is as fast as later ones."""
    for kernel, arguments in all_examples(package):
        compile_kernel(kernel, arguments)
        yield kernel.__name__


def modules(package: str = PACKAGE) -> list[ModuleType]:
    """Return every module of the package."""
    path = import_module(package).__path__
    return [import_module(module.name) for module in pkgutil.iter_modules(path, f"{package}.")]


def jitted_functions(package: str = PACKAGE) -> dict[str, Any]:
    """Return every jitted function by its full name; nothing if the JIT is disabled."""
    return {
        f"{module.__name__}.{name}": value
        for module in modules(package)
        for name, value in vars(module).items()
        if is_jitted(value) and value.__module__ == module.__name__
    }


def signatures_of(kernel: Any) -> set[tuple[Any, ...]]:
    """Return the signatures that a kernel was compiled for, with literal arguments replaced by their types."""
    return {tuple(types.unliteral(argument) for argument in signature) for signature in kernel.signatures}


def all_examples(package: str = PACKAGE) -> list[Example]:
    """Return the examples of all modules; nothing if the JIT is disabled."""
    examples = [example for module in modules(package) if hasattr(module, "examples") for example in module.examples()]
    return [(kernel, arguments) for kernel, arguments in examples if is_jitted(kernel)]


def is_cold(package: str = PACKAGE) -> bool:
    """Return whether some kernel may still have to be compiled."""
    return bool(jitted_functions(package)) and _remembered(package) != (digests(package), True)


def discard_stale(package: str = PACKAGE) -> list[str]:
    """Delete the cached code of modules that changed or import one that did; return the names of these modules."""
    if not jitted_functions(package):
        return []
    cached, _ = _remembered(package)
    current = digests(package)
    stale = [module for module, digest in current.items() if cached.get(module) != digest]
    for module in stale:
        for file in cache_directory(package).glob(f"{module.rpartition('.')[2]}.*.nb[ic]"):
            file.unlink(missing_ok=True)
    if stale or cached.keys() != current.keys():
        _remember(package, current, complete=False)
    return stale


def cache_directory(package: str = PACKAGE) -> Path:
    """Return the directory in which Numba caches the machine code of the package; its modules share one."""
    return Path(next(iter(jitted_functions(package).values())).stats.cache_path)


def digests(package: str = PACKAGE) -> Digests:
    """Return for each module a digest of its source, of the package's modules that it imports, and of the compiler."""
    settings: Any = numba.config
    compiler = f"{numba.__version__} {get_host_cpu_name()} {settings.BOUNDSCHECK}"
    sources = {module.__name__: Path(str(module.__file__)).read_text() for module in modules(package)}
    imports = {name: _imported(source) & sources.keys() for name, source in sources.items()}
    return {
        name: blake2b(
            "\0".join([compiler, *(sources[module] for module in _closure(name, imports))]).encode()
        ).hexdigest()
        for name in sources
    }


def _imported(source: str) -> set[str]:
    """Return the modules that a source imports."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {f"{node.module}.{alias.name}" for alias in node.names} | {str(node.module)}
    return names


def _closure(start: str, imports: dict[str, set[str]]) -> list[str]:
    """Return the module and all modules that it imports, directly or not, sorted."""
    seen, pending = {start}, [start]
    while pending:
        new = imports[pending.pop()] - seen
        seen |= new
        pending += new
    return sorted(seen)


def _remembered(package: str) -> tuple[Digests, bool]:
    """Return the digests that the cache was compiled from, and whether it held every kernel; no digests if unknown."""
    try:
        note = json.loads(_note(package).read_text())
        return dict(note["digests"]), bool(note["complete"])
    except (OSError, ValueError, KeyError):
        return {}, False


def _remember(package: str, compiled_from: Digests, *, complete: bool) -> None:
    note = _note(package)
    note.parent.mkdir(parents=True, exist_ok=True)
    temporary = note.with_suffix(f".{os.getpid()}")  # replaced atomically: another process may be reading
    temporary.write_text(json.dumps({"digests": compiled_from, "complete": complete}, indent=1))
    os.replace(temporary, note)


def _note(package: str) -> Path:
    return cache_directory(package) / f"{package}.json"


def _bar(examples: list[Example]) -> Iterator[Example]:
    """Yield the examples; show a progress bar on stderr, which disappears at the end."""
    from rich.console import Console  # only a cold start needs them
    from rich.progress import Progress

    with Progress(console=Console(stderr=True, force_terminal=True), transient=True) as bar:
        task = bar.add_task("kpg: compiling kernels (first start only)", total=len(examples))
        for example in examples:
            yield example
            bar.advance(task)


def _line(examples: Iterable[Example]) -> Iterator[Example]:
    """Yield the examples; print one line on stderr if compiling takes long."""
    start, printed = time.monotonic(), False
    for example in examples:
        yield example
        if not printed and time.monotonic() - start > REPORT_AFTER_SECONDS:
            sys.stderr.write("kpg: compiling kernels; later starts use the cached code\n")
            printed = True
