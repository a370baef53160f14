"""Compile every kernel ahead of its use, once per machine.

    after warm():      the cache holds machine code of every kernel, and this process uses it
    after prepare():   a background process compiles if the cache lacks kernels; this process goes on interpreted

Cost: with a full cache some milliseconds, with an empty one the time to compile: a minute or two, under a progress bar.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from types import ModuleType
from typing import Any

from kpg.kernels.code_cache import PACKAGE, digests, directory, discard_old, has_code, is_complete, marker
from kpg.kernels.example import Example
from kpg.kernels.jit import DISABLED, KERNELS, USAGE, Kernel, kernel_of, use_machine_code

REPORT_AFTER_SECONDS = 2.0  # compile time after which a process without a terminal prints a line


def prepare() -> None:
    """Let a background process compile the kernels if the cache lacks some."""
    if USAGE.mode == "auto" and is_cold():
        from kpg.kernels.background_compiler import start

        start()


def use_cached_code() -> None:
    """Import Numba now and use machine code, however small the work is, if the cache holds that of every kernel."""
    if not is_cold():
        use_machine_code()
        next(load(), None)  # the first kernel takes half a second, later ones some milliseconds


def warm(progress: bool | None = None, package: str = PACKAGE) -> int:
    """Compile and cache every kernel, and use machine code from now on; return the number of kernels processed.

    A kernel that another process has compiled is only loaded. The number is 0 if the cache was complete.

    `progress`: True shows a bar on stderr, False shows nothing. None shows a bar if stderr is a terminal; otherwise it
    prints one line if compiling takes long.
    """
    examples = all_examples(package) if is_cold(package) else []
    show = _bar if progress or (progress is None and sys.stderr.isatty()) else _line if progress is None else iter
    use_machine_code()
    for example in show(examples):
        compile_kernel(*example)
    mark_complete(package)
    return len(examples)


def compile_kernel(kernel: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    """Compile for the types of the arguments, or load the cached code; the kernel is not run."""
    from numba import typeof

    _kernel((kernel, arguments)).load().compile(tuple(typeof(argument) for argument in arguments))


def mark_complete(package: str = PACKAGE) -> None:
    """Note in the cache that it holds every kernel, if it does."""
    cache_path = directory()
    if (
        cache_path is not None
        and is_cold(package)
        and all(has_code(_kernel(example)) for example in all_examples(package))
    ):
        marker(cache_path, package).touch()
        discard_old(cache_path)


def load(package: str = PACKAGE) -> Iterator[str]:
    """Load the cached code, one kernel per step, so that the first call of a kernel is as fast as later ones."""
    for example in all_examples(package):
        if has_code(_kernel(example)):
            compile_kernel(*example)
            yield _kernel(example).__name__


def is_cold(package: str = PACKAGE) -> bool:
    """Return whether some kernel may still have to be compiled."""
    cache_path = directory()
    return not DISABLED and (cache_path is None or not is_complete(cache_path, package))


def modules(package: str = PACKAGE) -> list[ModuleType]:
    """Return every module of the package that has kernels."""
    return [import_module(name) for name in digests(package)]


def kernels(package: str = PACKAGE) -> dict[str, Kernel]:
    """Return every kernel of the package by its full name."""
    modules(package)
    return {f"{kernel.__module__}.{kernel.__name__}": kernel for kernel in KERNELS if _belongs(kernel, package)}


def _belongs(kernel: Kernel, package: str) -> bool:
    return kernel.__module__.rpartition(".")[0] == package


def signatures_of(kernel: Kernel) -> set[tuple[Any, ...]]:
    """Return the signatures that a kernel was compiled for, with literal arguments replaced by their types."""
    if "compiled" not in vars(kernel):
        return set()
    from numba import types

    return {tuple(types.unliteral(argument) for argument in signature) for signature in kernel.compiled.signatures}


def all_examples(package: str = PACKAGE) -> list[Example]:
    """Return the examples of all modules; nothing if the JIT is disabled."""
    if DISABLED:
        return []
    return [example for module in modules(package) if hasattr(module, "examples") for example in module.examples()]


def _kernel(example: Example) -> Kernel:
    kernel = kernel_of(example[0])
    assert kernel is not None, f"{example[0]} is not a kernel"
    return kernel


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
