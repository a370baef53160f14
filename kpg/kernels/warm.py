"""Compile every kernel before it is needed, once per machine, and never trust machine code older than its source.

    after warm():   every kernel is compiled for its one signature and cached on disk,
                    and nothing in the cache was made from source that has changed since.

Numba notices when a kernel's own file changes, but not when a kernel it calls changes in another file: the caller's
cached code still holds the old callee. So each module is remembered with a digest of itself and of all kernel modules
it imports, and its cached code is discarded when that differs.

Cost: if the cache is warm, a tenth of a second the first time a process asks; if it is cold, the time to compile,
under a progress bar.
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
PATIENCE_SECONDS = 2.0
Digests = dict[str, str]
_WARM: set[str] = set()  # packages looked at by this process; source does not change under a running one


def warm(progress: bool | None = None, package: str = PACKAGE) -> int:
    """Have every kernel compiled and cached; returns how many had to be looked at (0 when the cache was warm).

    `progress`: True shows a bar on stderr, False nothing; None shows a bar if stderr is a terminal, else one line
    when it takes long.
    """
    if package in _WARM:
        return 0
    discard_stale(package)
    examples = declared(package) if is_cold(package) else []
    show = _bar if progress or (progress is None and sys.stderr.isatty()) else _line if progress is None else iter
    for kernel, arguments in show(examples):
        compile_kernel(kernel, arguments)
    if examples:
        _remember(package, digests(package), complete=True)
    _WARM.add(package)
    return len(examples)


def compile_kernel(kernel: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    """Compile for the types of the arguments, or load what is cached; nothing is run."""
    dispatcher: Any = kernel
    dispatcher.compile(tuple(typeof(argument) for argument in arguments))


def load(package: str = PACKAGE) -> Iterator[str]:
    """Load what is cached into this process, a kernel with each step: its first call then costs no more than others."""
    for kernel, arguments in declared(package):
        compile_kernel(kernel, arguments)
        yield kernel.__name__


def modules(package: str = PACKAGE) -> list[ModuleType]:
    """Every module of the package."""
    path = import_module(package).__path__
    return [import_module(found.name) for found in pkgutil.iter_modules(path, f"{package}.")]


def jitted(package: str = PACKAGE) -> dict[str, Any]:
    """Every jitted function by its full name; none when the JIT is disabled."""
    return {
        f"{module.__name__}.{name}": value
        for module in modules(package)
        for name, value in vars(module).items()
        if is_jitted(value) and value.__module__ == module.__name__
    }


def variants(kernel: Any) -> set[tuple[Any, ...]]:
    """The types a kernel was compiled for; a call with a literal, from another kernel, is none of its own."""
    return {tuple(types.unliteral(each) for each in signature) for signature in kernel.signatures}


def declared(package: str = PACKAGE) -> list[Example]:
    """What the modules' `examples()` say; nothing when the JIT is disabled."""
    made = [example for module in modules(package) if hasattr(module, "examples") for example in module.examples()]
    return [(kernel, arguments) for kernel, arguments in made if is_jitted(kernel)]


def is_cold(package: str = PACKAGE) -> bool:
    """Whether some kernel may still have to be compiled."""
    return bool(jitted(package)) and _remembered(package) != (digests(package), True)


def discard_stale(package: str = PACKAGE) -> list[str]:
    """Remove cached code of modules that changed, or that import one that did; returns their names."""
    if not jitted(package):
        return []
    known, complete = _remembered(package)
    now = digests(package)
    stale = [module for module, digest in now.items() if known.get(module) != digest]
    for module in stale:
        for file in cache(package).glob(f"{module.rpartition('.')[2]}.*.nb[ic]"):
            file.unlink(missing_ok=True)
    if stale or known.keys() != now.keys():
        _remember(package, now, complete=False)
    return stale


def cache(package: str = PACKAGE) -> Path:
    """Where Numba keeps the machine code of the package: one directory, as its modules share one."""
    return Path(next(iter(jitted(package).values())).stats.cache_path)


def digests(package: str = PACKAGE) -> Digests:
    """For each module a digest of its source, of all it imports from the package, and of what compiles it."""
    settings: Any = numba.config
    compiler = f"{numba.__version__} {get_host_cpu_name()} {settings.BOUNDSCHECK}"
    sources = {module.__name__: Path(str(module.__file__)).read_text() for module in modules(package)}
    below = {name: _imported(source) & sources.keys() for name, source in sources.items()}
    return {
        name: blake2b("\0".join([compiler, *(sources[each] for each in _closure(name, below))]).encode()).hexdigest()
        for name in sources
    }


def _imported(source: str) -> set[str]:
    """The modules a source names in its imports."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {f"{node.module}.{alias.name}" for alias in node.names} | {str(node.module)}
    return names


def _closure(start: str, below: dict[str, set[str]]) -> list[str]:
    """The module and all it imports, directly or not, sorted."""
    seen, todo = {start}, [start]
    while todo:
        new = below[todo.pop()] - seen
        seen |= new
        todo += new
    return sorted(seen)


def _remembered(package: str) -> tuple[Digests, bool]:
    """What the cache was made from, and whether it held every kernel; nothing if that is not known."""
    try:
        note = json.loads(_note(package).read_text())
        return dict(note["digests"]), bool(note["complete"])
    except (OSError, ValueError, KeyError):
        return {}, False


def _remember(package: str, made_from: Digests, *, complete: bool) -> None:
    note = _note(package)
    note.parent.mkdir(parents=True, exist_ok=True)
    part = note.with_suffix(f".{os.getpid()}")  # replaced in one step: another process may be reading
    part.write_text(json.dumps({"digests": made_from, "complete": complete}, indent=1))
    os.replace(part, note)


def _note(package: str) -> Path:
    return cache(package) / f"{package}.json"


def _bar(examples: list[Example]) -> Iterator[Example]:
    """The examples, with a bar on stderr that goes away at the end."""
    from rich.console import Console  # only a cold start needs them
    from rich.progress import Progress

    with Progress(console=Console(stderr=True, force_terminal=True), transient=True) as bar:
        task = bar.add_task("kpg: compiling kernels, once", total=len(examples))
        for example in examples:
            yield example
            bar.advance(task)


def _line(examples: Iterable[Example]) -> Iterator[Example]:
    """The examples, with one line on stderr once it has taken long."""
    start, said = time.monotonic(), False
    for example in examples:
        yield example
        if not said and time.monotonic() - start > PATIENCE_SECONDS:
            sys.stderr.write("kpg: compiling kernels, once; they are cached for next time\n")
            said = True
