"""One server with PostgreSQL's protocol for all tests; each test has its own tables."""

import os

import psycopg
import pytest

from tests.server.serving import ADMIN, served


@pytest.fixture(scope="session")
def pg_server():
    with served(pg_port=0) as running:
        yield running


@pytest.fixture(scope="session")
def pg_address(pg_server):
    """What libpq needs to know."""
    return {"host": "127.0.0.1", "port": pg_server.pg_port, "user": "kpg", "dbname": "kpg", "password": ADMIN}


@pytest.fixture
def connection(pg_address):
    """A connection of psycopg, without implicit transactions."""
    with psycopg.connect(**pg_address, autocommit=True) as opened:
        yield opened


@pytest.fixture
def pg_environment(pg_address):
    """The environment of programs that use libpq."""
    names = {"host": "PGHOST", "port": "PGPORT", "user": "PGUSER", "dbname": "PGDATABASE", "password": "PGPASSWORD"}
    return os.environ | {names[name]: str(value) for name, value in pg_address.items()}
