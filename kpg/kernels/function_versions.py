"""Copies of a function whose global names have other values.

    with_globals(f, replace)    computes what f computes, with replace(value) for each global value that f names

The interpreted and the compiled version of a kernel are such copies: the one calls interpreted kernels, the other
compiled ones. A copy shares the code of the function, so it costs some microseconds.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType
from typing import Any


def with_globals(function: FunctionType, replace: Callable[[Any], Any]) -> FunctionType:
    """Return a copy of the function with its global values replaced."""
    scope: dict[str, Any] = {"__name__": function.__module__, "__builtins__": builtins}
    for name in set(_names(function.__code__)) & function.__globals__.keys():
        scope[name] = replace(function.__globals__[name])
    copy = FunctionType(function.__code__, scope, function.__name__, function.__defaults__, function.__closure__)
    copy.__module__, copy.__qualname__, copy.__doc__ = function.__module__, function.__qualname__, function.__doc__
    return copy


def _names(code: CodeType) -> Iterator[str]:
    """Yield the names that some code may look up in its globals, nested functions included."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
