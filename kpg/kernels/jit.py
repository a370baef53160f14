"""The decorators of kernels, so that compile options are set in one place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

Kernel = TypeVar("Kernel", bound=Callable[..., Any])

DISABLED = bool(numba.config.DISABLE_JIT)  # type: ignore[attr-defined]  # kernels then run as plain Python, which tests use

_compile = numba.njit(cache=True, nogil=True)
_compile_into_caller = numba.njit(cache=True, nogil=True, forceinline=True)


def jit(function: Kernel) -> Kernel:
    """Compile on the first call; Numba caches the machine code on disk."""
    return cast(Kernel, _compile(function))


def inlined(function: Kernel) -> Kernel:
    """Compile a small function that a kernel calls for each row, and inline it into the kernel."""
    return cast(Kernel, _compile_into_caller(function))
