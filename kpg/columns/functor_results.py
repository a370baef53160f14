"""The results of user-defined functors, kept so that a removal sees the values that the insertion saw.

A functor must be pure, but nothing enforces it. So each result is computed once for each combination of arguments, and
reused as long as the db is open, by all rules: a row that is removed takes exactly those rows with it that it brought.
Exceptions are results too. The memory is one entry for each distinct combination of arguments.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, TypeAlias

from kpg.columns.symbols import Symbols

Results: TypeAlias = dict[tuple[Any, ...], Any]  # values, or a raised exception in a `Raised`

_RESULTS: weakref.WeakKeyDictionary[Symbols, dict[Callable[..., Any], Results]] = weakref.WeakKeyDictionary()


class Raised:
    """An exception that a functor raised."""

    __slots__ = ("error",)

    def __init__(self, error: Exception) -> None:
        self.error = error


def results_of(function: Callable[..., Any], symbols: Symbols) -> Results:
    """Return the kept results of a function in the db that has this symbol table."""
    return _RESULTS.setdefault(symbols, {}).setdefault(function, {})


def call_once(function: Callable[..., Any], results: Results, arguments: tuple[Any, ...]) -> Any:
    """Return the kept result of a call, or call the function and keep its result; raise what it raised."""
    try:
        result = results[arguments]
    except KeyError:
        try:
            result = function(*arguments)
        except Exception as error:  # any exception of a user function is a failure of the row
            result = Raised(error)
        results[arguments] = result
    if isinstance(result, Raised):
        raise result.error
    return result
