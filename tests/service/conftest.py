"""Services on one worker and on several. Clusters are started once; each service on them leaves no relation behind.

Two workers complete all answers with each advance. Three work in slices, as in a server.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import pytest

import kpg
from kpg.api.waiting_requests import WaitingRequests
from kpg.service import Service


class OneSession(WaitingRequests):
    """Requests of a single session: all reads include all writes."""

    @property
    def last_write(self) -> int:
        return 2**62


ServiceOn = Callable[..., AbstractContextManager[Service]]


@pytest.fixture(scope="session")
def service_on() -> Iterator[ServiceOn]:
    """Return a context manager of a new service on a number of workers."""
    opened: dict[tuple[int, int | None], kpg.Database] = {}

    @contextmanager
    def service_on(workers: int, history: int | None = 0, **options: Any) -> Iterator[Service]:
        if workers == 1:
            with kpg.open(history=history) as db:
                yield Service(db, **options)
            return
        if (workers, history) not in opened:
            opened[workers, history] = kpg.open(workers=workers, history=history)
            if workers > 2:
                opened[workers, history].serve_requests(OneSession())
        db = opened[workers, history]
        service = Service(db, **options)
        try:
            yield service
        finally:
            service.close()
            left = dataflows_of(db)
            known = {*db.inputs, "unit of queries"}
            for source in list(db.inputs.values()):
                source.drop()
            db.followers.clear()
            db.closing.clear()
        assert set(left) <= known, left

    yield service_on
    for db in opened.values():
        db.close()


@pytest.fixture(params=[1, 2], ids=["one worker", "two workers"])
def workers(request: pytest.FixtureRequest) -> int:
    """Return a number of workers."""
    return int(request.param)


def dataflows_of(db: kpg.Database) -> list[str]:
    """Return the names of all dataflows; every worker has the same."""
    description = db.describe()
    workers = description.get("workers", [description])
    names = [[dataflow["name"] for dataflow in worker["dataflows"]] for worker in workers]
    assert all(others == names[0] for others in names), names
    return names[0]
