"""Addresses of arrays, for kernels that read any number of them (`kpg.kernels.array_address`)."""

from __future__ import annotations

import ctypes
from typing import Any, TypeAlias

import numpy.typing as npt

Addressed: TypeAlias = tuple[tuple[int, ...], list[npt.NDArray[Any]]]  # the fields of a row, and the arrays to keep


def address(array: npt.NDArray[Any]) -> int:
    """Return the address of the first number of an array; 0 if it is empty. It is valid as long as the array lives."""
    return ctypes.addressof(ctypes.c_char.from_buffer(array.data)) if array.size else 0
