"""SQL by clients: the request of a call, and statements of synchronous and asynchronous connections to one server."""

import asyncio
import datetime as dt
import json
from decimal import Decimal

import pytest

import kpg
from kpg.client import calls, procedures
from kpg.client.conversation import Conversation
from kpg.protocol import parts, replies
from kpg.protocol.message_codec import encode
from tests.server.serving import ADMIN, served


@pytest.fixture(scope="module")
def server():
    with served() as running:
        yield running


def rows(table):
    return [tuple(column[at].as_py() for column in table.columns) for at in range(table.num_rows)]


def test_a_statement_is_one_request_with_its_parameters_by_name():
    procedure = procedures.ask(Conversation(), calls.sql("SELECT $1, :when", 7, when=dt.datetime(2024, 1, 1), limit=3))
    assert json.loads(next(procedure).text) == {
        "type": "sql", "id": 0, "text": "SELECT $1, :when", "limit": 3,
        "parameters": {"1": 7, "when": {"timestamp_ntz": "2024-01-01T00:00:00"}},
    }  # fmt: skip


def test_the_pages_of_a_reply_are_one_table_with_its_tag():
    conversation = Conversation()
    procedure = procedures.ask(conversation, calls.sql("SELECT a FROM t"))
    next(procedure)
    columns = (parts.ColumnSpec("a", "int64"),)
    conversation.receive(encode(replies.RowsReply(0, columns, ((1,),), 4, more=True)))
    conversation.receive(encode(replies.RowsReply(0, columns, ((2,),), 4, tag="SELECT 2")))
    with pytest.raises(StopIteration) as end:
        while True:
            next(procedure)
    assert rows(end.value.value) == [(1,), (2,)]
    assert end.value.value.schema.metadata[b"tag"] == b"SELECT 2"


def test_a_connection_runs_statements_and_keeps_its_own_transaction_and_numbers(server):
    with kpg.connect(server.url, token=ADMIN) as one, kpg.connect(server.url, token=ADMIN) as two:
        one.sql("CREATE SEQUENCE s; CREATE TABLE c (id BIGINT PRIMARY KEY DEFAULT nextval('s'), n NUMERIC(6,2))")
        one.sql("CREATE MATERIALIZED VIEW m AS SELECT id, n FROM c ORDER BY n DESC")
        assert (
            one.sql("INSERT INTO c (n) VALUES ($1), (:n)", Decimal("1.50"), n=2).schema.metadata[b"tag"]
            == b"INSERT 0 2"
        )
        assert rows(two.sql("INSERT INTO c (n) VALUES (9) RETURNING id, currval('s')")) == [(3, 3)]
        assert rows(one.sql("SELECT currval('s')")) == [(2,)]
        one.sql("BEGIN; UPDATE c SET n = 0 WHERE id = 1")
        assert rows(two.sql("TABLE m")) == [(3, Decimal("9.00")), (2, Decimal("2.00")), (1, Decimal("1.50"))]
        one.sql("COMMIT")
        assert rows(two.sql("SELECT id FROM m")) == [(3,), (2,), (1,)]
        cut = two.sql("SELECT id FROM c", limit=2)
        assert cut.num_rows == 2 and cut.schema.metadata[b"cut"] == b"true"
        with pytest.raises(kpg.ConstraintViolation) as failure:
            two.sql("INSERT INTO c VALUES (1, 1)")
        assert failure.value.sqlstate == "23505"
        two.sql("DROP MATERIALIZED VIEW m; DROP TABLE c; DROP SEQUENCE s")


def test_statements_can_be_awaited(server):
    async def work():
        async with await kpg.connect_async(server.url, token=ADMIN) as db:
            await db.sql("CREATE TABLE a (x INT PRIMARY KEY, t TEXT)")
            await asyncio.gather(*(db.sql("INSERT INTO a VALUES ($1, :t)", k, t="é" * k) for k in range(5)))
            await db.sql("CREATE MATERIALIZED VIEW n AS SELECT count(*) AS n, max(length(t)) AS longest FROM a")
            follows = await db.interest("n")
            assert rows(await db.sql("SELECT * FROM n")) == [(5, 4)]
            await db.sql("BEGIN")
            await db.sql("DELETE FROM a WHERE x = 4")
            await db.sql("COMMIT")
            async for _ in follows:
                if await follows.rows() == [(4, 3)]:
                    break
            with pytest.raises(kpg.ParseError) as failure:
                await db.sql("SELEC 1")
            assert failure.value.sqlstate == "42601"
            await follows.close()
            await db.sql("DROP MATERIALIZED VIEW n; DROP TABLE a")
            return rows(await db.sql("SHOW TABLES"))

    assert asyncio.run(work()) == []
