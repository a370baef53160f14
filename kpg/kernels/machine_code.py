"""Numba's dispatchers of kernels, with a cache that is addressed by content.

Numba itself would keep machine code beside the source file, or in a directory named after its path, and would not
notice a change to a kernel that is called from another file. `CodeCache` names the files of a kernel by a digest of all
source that its machine code was made from (kpg.kernels.code_cache). So a changed kernel has new files, copies of kpg at
other paths share files, and no file is ever stale.

The cache is an optimisation. A file that cannot be read or written costs the time to compile, and raises no error.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from types import FunctionType
from typing import Any

import numba
from numba.core.caching import CompileResultCacheImpl, FunctionCache, _CacheLocator

from kpg.kernels.code_cache import digest_of_module, directory, file_name
from kpg.kernels.function_versions import with_globals
from kpg.kernels.jit import USAGE, Kernel, kernel_of


def make_dispatcher(kernel: Kernel) -> Any:
    """Return a dispatcher for a kernel. Nothing is loaded or compiled before its first call."""
    source: FunctionType = kernel.function
    if kernel.compiled_in is not None:
        source = getattr(import_module(kernel.compiled_in), kernel.function.__name__)
    function = with_globals(source, _compiled)
    options: dict[str, Any] = {"forceinline": True} if kernel.inline else {}
    if not kernel.allocates:
        options["_nrt"] = False  # then machine code does not count references to its arguments
    dispatcher: Any = numba.njit(nogil=True, **options)(function)
    if directory() is not None:
        dispatcher._cache = CodeCache(function)
    return dispatcher


def _compiled(value: Any) -> Any:
    kernel = kernel_of(value)
    return value if kernel is None else kernel.compiled


@cache
def report_waiting() -> None:
    """Print once in a process that its work waits until kernels are compiled."""
    sys.stderr.write("kpg: compiling kernels for large data; later starts use the cached code\n")


class _Locator(_CacheLocator):
    """Tell Numba where the code of a function is, and what it was compiled from."""

    def __init__(self, function: FunctionType) -> None:
        self._py_file = function.__code__.co_filename  # read by Numba for warnings
        self.function = function

    @classmethod
    def from_function(cls, function: FunctionType, file: str) -> _Locator:
        return cls(function)

    def ensure_cache_path(self) -> None:
        Path(self.get_cache_path()).mkdir(parents=True, exist_ok=True)

    def get_cache_path(self) -> str:
        return str(directory())

    def get_source_stamp(self) -> str:
        return digest_of_module(self.function.__module__)

    def get_disambiguator(self) -> str:
        return ""


class _Files(CompileResultCacheImpl):
    """Name the files of a function as `has_code` expects them."""

    def __init__(self, function: FunctionType) -> None:
        self._lineno = function.__code__.co_firstlineno
        self._locator = _Locator(function)
        self._filename_base = file_name(function)


class CodeCache(FunctionCache):
    """The cached machine code of one kernel."""

    _impl_class = _Files

    def _load_overload(self, signature: Any, context: Any) -> Any:
        overload = None
        try:
            overload = super()._load_overload(signature, context)  # type: ignore[no-untyped-call]
        except Exception:  # Numba unpickles the file: a damaged one may raise any exception
            with suppress(OSError):
                self.flush()  # so that the code can be saved again
        if overload is None and USAGE.mode == "auto":
            report_waiting()
        return overload

    def _save_overload(self, signature: Any, data: Any) -> None:
        try:
            super()._save_overload(signature, data)  # type: ignore[no-untyped-call]
        except OSError as error:
            sys.stderr.write(f"kpg: cannot cache machine code: {error}\n")
