"""A db whose workers have all code loaded: what they are asked for the first time takes no longer than later.

A worker is a new process. It reads kernels from the cache of compiled code when they are first called, some seconds
in all, which would be on the clock of the first rounds; the rehearsal warms this process alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from kpg.api.contracts import Database
from kpg.bench.data.graphs import Ints
from kpg.config import Effort
from kpg.kernels.warm import load
from kpg.opening import open as open_database


@contextmanager
def opened(workers: int, effort: Effort = "default") -> Iterator[Database]:
    """A db on so many workers, ready to be measured."""
    with open_database(workers=workers, effort=effort) as db:
        if workers > 1:
            asked: Any = db.input("warming", k=int)  # a relation of a cluster
            asked.insert_made(kernels)
            db.advance()
            asked.drop()
        yield db


def kernels(rank: int, workers: int) -> dict[str, Ints]:
    """Have a worker load all kernels; no rows come of it."""
    for _ in load():
        pass
    return {"k": np.zeros(0, np.int64)}
