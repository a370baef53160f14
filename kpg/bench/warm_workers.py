"""A db on workers that have loaded all kernels, so that their first request takes no longer than later ones.

A worker is a new process. It reads a kernel from the cache of compiled code on its first call, some seconds in all,
which the first measured rounds would include. The rehearsal of an experiment loads kernels into this process only.
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
def warm_database(workers: int, effort: Effort = "default") -> Iterator[Database]:
    """Open a db on some workers, ready to be measured."""
    with open_database(workers=workers, effort=effort) as db:
        if workers > 1:
            relation: Any = db.input("warming", k=int)  # a relation of a cluster
            relation.insert_made(load_share)
            db.advance()
            relation.drop()
        yield db


def wait_for_made_rows(db: Database) -> None:
    """Wait until all workers have made the rows of `insert_made`, which they otherwise do with the next advance."""
    db.describe()


def load_share(rank: int, workers: int) -> dict[str, Ints]:
    """Load all kernels into a worker, and return no rows."""
    for _ in load():
        pass
    return {"k": np.zeros(0, np.int64)}
