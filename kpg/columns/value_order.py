"""The order of Python strings and binary values: by code point, all strings before all binary values.

    [values[i] for i in value_order(values)]  ==  sorted(values, key=lambda value: (isinstance(value, bytes), value))

Python sorts a list without letting other threads run, so many values are sorted as an Arrow array, whose order of UTF-8
is that of code points: a computation that may be left waits for the helper thread meanwhile (kpg.columns.pause_points).
Cost: n log n comparisons.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kpg.columns.arrow_arrays import from_list
from kpg.columns.pause_points import aside, pause
from kpg.columns.updates import Ints

MAX_SORTED_BY_PYTHON = 1 << 12  # a millisecond
VALUES_PER_PAUSE = 1 << 13  # that become an Arrow array: a millisecond or two, without importing pandas


def value_order(values: Sequence[Any]) -> Ints:
    """Return the positions of some values in their order; others may run meanwhile if there are many."""
    if len(values) <= MAX_SORTED_BY_PYTHON:
        keys = [(isinstance(value, bytes), value) for value in values]
        return np.array(sorted(range(len(keys)), key=keys.__getitem__), np.int64)
    is_binary = np.empty(len(values), np.bool_)
    for start in range(0, len(values), VALUES_PER_PAUSE):
        part = values[start : start + VALUES_PER_PAUSE]
        is_binary[start : start + len(part)] = [isinstance(value, bytes) for value in part]
        pause()
    texts, others = np.flatnonzero(~is_binary), np.flatnonzero(is_binary)
    if not len(others):
        return _sorted_positions(values, texts, pa.large_string())
    if not len(texts):
        return _sorted_positions(values, others, pa.large_binary())
    ordered = _sorted_positions(values, texts, pa.large_string()), _sorted_positions(values, others, pa.large_binary())
    return np.concatenate(ordered)


def _sorted_positions(values: Sequence[Any], positions: Ints, type_: Any) -> Ints:
    """Return positions in the order of the values there, which are of one type."""
    chunks = []
    for start in range(0, len(positions), VALUES_PER_PAUSE):
        part = positions[start : start + VALUES_PER_PAUSE].tolist()
        chunks.append(from_list([values[at] for at in part], type_))
        pause()
    order: Ints = aside(4 * len(positions), _sort_indices, pa.chunked_array(chunks, type_))
    return positions[order]


def _sort_indices(chunks: Any) -> Ints:
    order = pc.array_sort_indices(chunks.combine_chunks())
    return np.frombuffer(order.buffers()[1], np.uint64, len(order), 8 * order.offset).astype(np.int64)
