"""SQL that is hard to plan or to evaluate: its client gets an error or an answer, and the others do not wait for it."""

import psycopg
import pytest

from kpg.service import Limits
from tests.server.serving import ADMIN, served

BRANCHES = 1_000  # of a CASE: evaluating it takes more of Python's stack than there is


@pytest.fixture(scope="module")
def server():
    limits = Limits(plan_seconds=60)  # of CPU time, which garbage collections of a long test run take as well
    with served(pg_port=0, limits=limits) as running:
        with connect(running) as db:
            db.execute("CREATE TABLE n (x bigint PRIMARY KEY, y bigint)")
            db.execute("INSERT INTO n VALUES (1, 10), (2, 20)")
        yield running


def connect(server):
    return psycopg.connect(
        host="127.0.0.1", port=server.pg_port, user="kpg", dbname="kpg", password=ADMIN, autocommit=True
    )


def test_an_expression_that_is_nested_too_deeply_is_an_error_of_its_client_only(server):
    branches = " ".join(f"WHEN x = {number} THEN {number}" for number in range(10, BRANCHES))
    with connect(server) as db, connect(server) as calm:
        with pytest.raises(psycopg.Error, match="nested too deeply"):
            db.execute(f"SELECT CASE {branches} END FROM n")
        assert calm.execute("SELECT count(*) FROM n").fetchall() == [(2,)]
        assert db.execute("SELECT y FROM n WHERE x = 1").fetchall() == [(10,)]


def test_a_text_that_takes_too_long_to_plan_is_refused():
    numbers = ", ".join(map(str, range(100, 500)))
    with served(pg_port=0, limits=Limits(plan_seconds=0.004)) as server, connect(server) as db:
        db.execute("CREATE TABLE m (x bigint)")
        for statement in (f"SELECT x FROM m WHERE x IN ({numbers})", f"DELETE FROM m WHERE x IN ({numbers})"):
            with pytest.raises(psycopg.errors.ProgramLimitExceeded, match="0.004 seconds of CPU time"):
                db.execute(statement)
        assert db.execute("SELECT 1").fetchall() == [(1,)]
