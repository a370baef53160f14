"""Functions that workers call: each creates its own share of an experiment's input, or runs kernels alone.

A worker imports this module by name, so the functions must be at its top level.
"""

from __future__ import annotations

import time

import numpy as np

from kpg.bench.data import key_streams
from kpg.bench.data.graphs import Ints, random_graph
from kpg.columns.consolidation import consolidate
from kpg.columns.updates import Updates, constant
from kpg.kernels.warm import load


def load_worker_kernels(db: object) -> int:
    """Load all kernels into a worker, as the measuring process does; return their number."""
    return len(list(load()))


def sort_and_count(db: object, rows: int) -> list[float]:
    """Return seconds of kernels alone, without sending and waiting: count keys as in E1, and sort words."""
    keys = key_streams.repeated_keys(rows, max(1, rows // 10))
    words = np.random.default_rng(1).integers(0, 1 << 62, rows)
    seconds = []
    for _ in range(5):
        started = time.perf_counter()
        consolidate(Updates(keys.reshape(1, rows), constant((0,)), constant((1,))))
        np.sort(words)
        seconds.append(time.perf_counter() - started)
    return seconds


def share_of_keys(rank: int, workers: int, rows: int, distinct: int) -> dict[str, Ints]:
    """Return a worker's share of E1's keys."""
    return {"k": np.ascontiguousarray(key_streams.repeated_keys(rows, distinct)[rank::workers])}


def share_of_digraph(rank: int, workers: int, nodes: int, count: int) -> dict[str, Ints]:
    """Return a worker's share of E7's edges."""
    share = random_graph(nodes, count, 3)[rank::workers]
    return {"src": np.ascontiguousarray(share[:, 0]), "dst": np.ascontiguousarray(share[:, 1])}


def share_of_side(rank: int, workers: int, rows: int, seed: int, value: str) -> dict[str, Ints]:
    """Return a worker's share of one side of a join: distinct keys in random order, with distinct values."""
    keys = np.random.default_rng(seed).permutation(rows)[rank::workers]
    return {"k": np.ascontiguousarray(keys), value: np.arange(rank, rows, workers)}


def share_of_skewed(rank: int, workers: int, rows: int, distinct: int, hot: int, value: str) -> dict[str, Ints]:
    """Return a worker's share of rows of which `hot` have one key, and the others any; with distinct values."""
    rng = np.random.default_rng(7)
    keys = rng.integers(0, distinct, rows)
    keys[:hot] = 0
    rng.shuffle(keys)
    return {"k": np.ascontiguousarray(keys[rank::workers]), value: np.arange(rank, rows, workers)}
