"""Clusters that are started once and used by many tests; each test makes its own relations on them."""

from collections.abc import Callable, Iterator

import pytest

import kpg

Clusters = Callable[[int], kpg.Database]


@pytest.fixture(scope="session")
def clusters() -> Iterator[Clusters]:
    """Return a db on a number of workers, the same one for each call with that number."""
    opened: dict[int, kpg.Database] = {}

    def of(workers: int) -> kpg.Database:
        if workers not in opened:
            opened[workers] = kpg.open(workers=workers)
        return opened[workers]

    yield of
    for db in opened.values():
        db.close()
