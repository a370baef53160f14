"""A statement that fails on each of a million rows: other clients notice little, and it can be cancelled.

For every set of failing rows: the answer fails while one of them is there, names a row that is there, and counts them.
"""

import threading
import time

import numpy as np
import psycopg
import pytest

import kpg
from tests.server.serving import ADMIN, PATIENCE, served

SERIES = "generate_series(2, 1000000) g"  # one row that expands to a million
FAILING = f"INSERT INTO t SELECT g * 2147483647 FROM {SERIES}"  # leaves 32 bits for each
# The bound is loose, because tests share their machine.
MAX_WORST_SECONDS = 1.0
col = kpg.col


@pytest.fixture(scope="module")
def server():
    with served(pg_port=0) as running:
        with connect(running) as db:
            db.execute("CREATE TABLE t (a bigint)")
        with kpg.connect(running.url, token=ADMIN) as db:
            db.create_relation("side", {"x": int})
        yield running


def connect(server):
    return psycopg.connect(
        host="127.0.0.1", port=server.pg_port, user="kpg", dbname="kpg", password=ADMIN, autocommit=True
    )


def test_a_statement_whose_rows_fail_is_cancelled_at_once(server):
    with connect(server) as db:
        ended = []

        def fail():
            with pytest.raises(psycopg.errors.QueryCanceled):
                db.execute(FAILING)
            ended.append(time.perf_counter())

        thread = threading.Thread(target=fail)
        before = seen = text_count(server)
        thread.start()
        while seen < before + 20_000:  # until the first rows have failed
            seen = text_count(server)
            time.sleep(0.005)
        assert seen < before + 900_000, "others run only after all rows have failed"
        began = time.perf_counter()
        db.cancel_safe(timeout=PATIENCE)
        thread.join(PATIENCE)
        assert ended and ended[0] - began < MAX_WORST_SECONDS


def text_count(server):
    return len(server.hub.engine.run(lambda service: service.db.symbols).result(PATIENCE))


def test_rows_that_fail_delay_the_writes_of_others_little(server):
    with connect(server) as db, kpg.connect(server.url, token=ADMIN) as other:
        failed = []

        def fail():
            with pytest.raises(psycopg.errors.NumericValueOutOfRange) as raised:
                db.execute(FAILING)
            failed.append(raised.value)

        thread = threading.Thread(target=fail)
        thread.start()
        worst, number = 0.0, 0
        while thread.is_alive():
            number += 1
            began = time.perf_counter()
            other.insert("side", [(number,)])
            worst = max(worst, time.perf_counter() - began)
            time.sleep(0.002)
        assert number > 20 and worst < MAX_WORST_SECONDS
        assert "integer out of range in g * 2147483647" in str(failed[0])
        assert "It fails for g = " in str(failed[0]) and "999,999 rows fail." in str(failed[0])
        assert db.execute("SELECT count(*) FROM t").fetchone() == (0,)


def test_the_answer_fails_until_the_last_of_many_failing_rows_is_removed():
    """Rows fail in several parts, and are removed in parts that are cut elsewhere."""
    rows = np.arange(100_000)
    with kpg.open() as db:
        a = db.input("a", x=int, y=int)
        answer = a.select("y", q=6 // col("x")).output("sixths")
        a.insert({"x": rows % 2, "y": rows})
        a.insert({"x": rows * 0, "y": rows})  # every other row fails twice
        db.advance()
        assert "100,000 rows fail." in failure_of(answer)
        kept = 70_002
        a.remove({"x": rows * 0, "y": rows})
        db.advance()
        assert "50,000 rows fail." in failure_of(answer)
        for part in np.split(rows[(rows % 2 == 0) & (rows != kept)], [7, 30_000]):
            a.remove({"x": part * 0, "y": part})
            db.advance()
        assert failure_of(answer) == f"It fails for x = 0, y = {kept}."
        a.remove([(0, kept)])
        db.advance()
        assert sorted(answer.rows()) == [(y, 6) for y in range(1, 100_000, 2)]


def failure_of(answer):
    with pytest.raises(kpg.DataError, match="division by zero") as raised:
        answer.rows()
    return raised.value.detail
