"""The one decorator behind every kernel, so that compile options live in one place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

Kernel = TypeVar("Kernel", bound=Callable[..., Any])

_compile = numba.njit(cache=True, nogil=True)
_compile_inline = numba.njit(cache=True, nogil=True, inline="always")


def jit(function: Kernel) -> Kernel:
    """Compile on first call; the machine code is cached on disk."""
    return cast(Kernel, _compile(function))
