"""asyncpg against a server: it describes each statement first, and sends and reads the binary format only."""

import asyncio
import datetime as dt
import uuid
from decimal import Decimal

import asyncpg
import pytest

ROWS = [
    (n, f"row {n}", Decimal(n) / 4, dt.datetime(2026, 1, 1, n % 24, tzinfo=dt.UTC), uuid.UUID(int=n), dt.timedelta(n))
    for n in range(500)
]


def run(pg_address, work):
    async def main():
        address = {name: value for name, value in pg_address.items() if name != "dbname"}
        connection = await asyncpg.connect(**address, database="kpg")
        try:
            return await work(connection)
        finally:
            await connection.close()

    return asyncio.run(asyncio.wait_for(main(), 120))


def test_types_of_parameters_and_columns_are_described(pg_address):
    async def work(connection):
        row = await connection.fetchrow(
            "SELECT $1::integer + 1, $2 || 'x', $3::numeric, $4::jsonb, $5::integer[]",
            4, "y", Decimal("1.5"), '{"a": 1}', [1, None],
        )  # fmt: skip
        assert tuple(row) == (5, "yx", Decimal("1.5"), '{"a": 1}', [1, None])  # arrays need pg_type
        statement = await connection.prepare("SELECT relname FROM pg_class WHERE oid = $1 LIMIT $2")
        assert [kind.name for kind in statement.get_parameters()] == ["int8", "int8"]
        assert await connection.fetchval("SELECT count(*) FROM pg_type WHERE typname = ANY($1)", ["int4", "x"]) == 1

    run(pg_address, work)


def test_rows_are_copied_read_by_a_portal_and_rolled_back_to_a_savepoint(pg_address):
    async def work(connection):
        await connection.execute(
            "CREATE TABLE streamed (a integer PRIMARY KEY, b text, c numeric(9,2), d timestamptz, e uuid, f interval)"
        )
        assert await connection.copy_records_to_table("streamed", records=ROWS) == "COPY 500"
        async with connection.transaction():
            cursor = connection.cursor("SELECT * FROM streamed ORDER BY a", prefetch=70)
            assert [tuple(row) async for row in cursor] == ROWS
            with pytest.raises(asyncpg.DivisionByZeroError):
                async with connection.transaction():
                    await connection.execute("SELECT 1 / 0")
            await connection.execute("DELETE FROM streamed WHERE a >= $1", 10)
        assert await connection.fetchval("SELECT count(*) FROM streamed") == 10
        await connection.execute("DROP TABLE streamed")

    run(pg_address, work)


def test_an_error_leaves_the_connection_usable(pg_address):
    async def work(connection):
        with pytest.raises(asyncpg.UndefinedTableError) as caught:
            await connection.fetch("SELECT * FROM nowhere")
        assert caught.value.position == "15"
        assert await connection.fetchval("SELECT 1") == 1
        await connection.reset()  # CLOSE ALL, UNLISTEN *, RESET ALL

    run(pg_address, work)
