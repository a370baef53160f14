"""kpg keeps the answers of queries up to date while their inputs change.

Queries are installed and dropped while data streams in; they share the indexes they read; they may be recursive;
each answer is exact for one logical time. `import kpg` is light: the engine, and with it Numba, is imported when a
name of `ENGINE` is first used, and kernels are compiled when a db is first opened.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from kpg.errors import (
    BadPlan,
    Closed,
    DataError,
    InputError,
    InUse,
    KpgError,
    OverBudget,
    Overflow,
    ProgramError,
    ResourceError,
    SchemaMismatch,
    TimeNotReached,
    TimeTooEarly,
    TooManyRounds,
    TypeMismatch,
    UndefinedName,
    WrongThread,
)

# Public name -> the module it lives in, imported on first use. Give each one its type under TYPE_CHECKING as well.
ENGINE: dict[str, str] = {}

__all__ = [
    "BadPlan",
    "Closed",
    "DataError",
    "InUse",
    "InputError",
    "KpgError",
    "OverBudget",
    "Overflow",
    "ProgramError",
    "ResourceError",
    "SchemaMismatch",
    "TimeNotReached",
    "TimeTooEarly",
    "TooManyRounds",
    "TypeMismatch",
    "UndefinedName",
    "WrongThread",
]


def __getattr__(name: str) -> Any:
    if name not in ENGINE:
        raise AttributeError(f"module 'kpg' has no attribute {name!r}")
    value = getattr(import_module(ENGINE[name]), name)
    globals()[name] = value  # found directly from now on
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *ENGINE})
