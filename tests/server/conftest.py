"""One server for tests that leave it as they found it."""

import pytest

import kpg
from tests.server.serving import ADMIN, USER, served


@pytest.fixture(scope="module")
def server():
    with served() as running:
        yield running


@pytest.fixture
def db(server):
    with kpg.connect(server.url, token=USER) as connection:
        yield connection


@pytest.fixture
def admin(server):
    with kpg.connect(server.url, token=ADMIN) as connection:
        yield connection
