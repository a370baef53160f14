"""Arrow arrays made from buffers. `pa.array` imports pandas if it is installed, which takes longer than small work.

    from_numpy(values, type, null)   =  pa.array(values, type, mask=null)
    from_list(values, type)          =  pa.array(values, type)

Cost: `from_numpy` copies nothing but the null mask. `from_list` is slower than `pa.array` for many texts, and leaves
them to it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

MAX_VALUES = 50_000  # takes 5 ms, and importing pandas 300; for more, `pa.array` is four times as fast
_NUMBERS: dict[pa.DataType, Any] = {pa.int64(): np.int64, pa.uint64(): np.uint64, pa.float64(): np.float64}


def from_numpy(values: npt.NDArray[Any], type: pa.DataType, null: npt.NDArray[np.bool_] | None = None) -> Any:
    """Return an array of a fixed-width type with the bits of the values; null where `null` is true."""
    words: Any = np.packbits(values, bitorder="little") if values.dtype == np.bool_ else np.ascontiguousarray(values)
    return pa.Array.from_buffers(type, len(values), [validity(null), pa.py_buffer(words)])


def from_list(values: Sequence[Any], type: pa.DataType) -> Any:
    """Return an array of Python values that belong to the type; None stands for null."""
    if len(values) > MAX_VALUES or "pandas" in sys.modules:
        return pa.array(values, type)
    if type in _NUMBERS and None not in values:
        return from_numpy(np.array(values, _NUMBERS[type]), type)
    if type in (pa.string(), pa.binary()):
        return _from_texts(values, pa.large_string() if type == pa.string() else pa.large_binary()).cast(type)
    return _from_texts(values, type) if type in (pa.large_string(), pa.large_binary()) else pa.array(values, type)


def _from_texts(values: Sequence[Any], type: pa.DataType) -> Any:
    """Return an array of large_string or large_binary."""
    parts = [b"" if value is None else value.encode() if isinstance(value, str) else value for value in values]
    offsets: Any = np.zeros(len(parts) + 1, np.int64)
    np.cumsum([len(part) for part in parts], out=offsets[1:])
    null = np.array([value is None for value in values], np.bool_)
    buffers = [validity(null if null.any() else None), pa.py_buffer(offsets), pa.py_buffer(b"".join(parts))]
    return pa.Array.from_buffers(type, len(parts), buffers)


def validity(null: npt.NDArray[np.bool_] | None) -> Any:
    """Return the bitmap of rows that are not null; None if all are."""
    bits: Any = None if null is None else np.packbits(~null, bitorder="little")
    return None if bits is None else pa.py_buffer(bits)
