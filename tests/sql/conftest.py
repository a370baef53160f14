"""A PostgreSQL server for the tests of SQL, and dbs of one and two workers to compare with it.

Each test process starts one server, in about a second, and stops it at its end. Without a server all tests that use it
are skipped.
"""

from collections.abc import Iterator

import pytest

import kpg
from kpg.bench.peers.postgres import SMALL_SETTINGS, server
from kpg.bench.run import PeerAbsent
from tests.sql.installed import require_sql
from tests.sql.truth.postgres import Postgres
from tests.sql.truth.twins import Twins


@pytest.fixture(scope="session")
def postgres_dsn() -> Iterator[str]:
    """The address of a server that lives as long as the test process."""
    try:
        with server(SMALL_SETTINGS) as address:
            yield address.dsn
    except PeerAbsent as absent:
        pytest.skip(str(absent))


@pytest.fixture(scope="module")
def postgres(postgres_dsn) -> Iterator[Postgres]:
    """A connection with an empty schema."""
    connection = Postgres(postgres_dsn)
    yield connection
    connection.close()


@pytest.fixture(scope="module", params=[1, 2], ids=["1 worker", "2 workers"])
def workers(request) -> int:
    """The number of workers of `twins`."""
    return request.param


@pytest.fixture(scope="module")
def twins(postgres, workers) -> Iterator[Twins]:
    """PostgreSQL and a db of kpg, both empty; a test resets them after each example."""
    require_sql()
    with kpg.open(workers=workers) if workers > 1 else kpg.open() as db:
        yield Twins(postgres, db)
