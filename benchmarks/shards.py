"""Each worker's share of the inputs of other experiments, made where the worker runs."""

from __future__ import annotations

import time

import numpy as np

from benchmarks import data
from kpg.columns.consolidation import consolidate
from kpg.columns.updates import Updates, constant
from kpg.kernels.warm import load


def load_kernels(db: object) -> int:
    """Have a worker load all kernels, as the process that measures does."""
    return len(list(load()))


def sort_and_count(db: object, rows: int) -> list[float]:
    """Seconds for the kernels alone, with nothing to send or to wait for: count keys as E1 does, sort words."""
    keys, words = data.repeated_keys(rows, max(1, rows // 10)), np.random.default_rng(1).integers(0, 1 << 62, rows)
    seconds = []
    for _ in range(5):
        started = time.perf_counter()
        consolidate(Updates(keys.reshape(1, rows), constant((0,)), constant((1,))))
        np.sort(words)
        seconds.append(time.perf_counter() - started)
    return seconds


def keys(rank: int, workers: int, rows: int, distinct: int) -> dict[str, data.Ints]:
    """E1's keys."""
    return {"k": np.ascontiguousarray(data.repeated_keys(rows, distinct)[rank::workers])}


def edges(rank: int, workers: int, nodes: int, count: int) -> dict[str, data.Ints]:
    """E7's edges."""
    mine = data.digraph(nodes, count)[rank::workers]
    return {"src": np.ascontiguousarray(mine[:, 0]), "dst": np.ascontiguousarray(mine[:, 1])}


def side(rank: int, workers: int, rows: int, seed: int, value: str) -> dict[str, data.Ints]:
    """One side of E8's join: keys in random order, values of their own."""
    order = np.random.default_rng(seed).permutation(rows)[rank::workers]
    return {"k": np.ascontiguousarray(order), value: np.arange(rank, rows, workers)}
