"""psycopg 3 against a server: all types both ways in both formats, errors, transactions, cursors, COPY, cancel."""

import datetime as dt
import threading
import time
import uuid
from decimal import Decimal

import psycopg
import pytest
from psycopg.types.json import Jsonb

VALUES = {
    "boolean": [True, False],
    "smallint": [-32768, 32767],
    "integer": [-(2**31), 2**31 - 1],
    "bigint": [-(2**63), 2**63 - 1],
    "real": [1.5, -0.25, float("inf")],
    "double precision": [0.1, -1e300, 1e-7, float("inf")],
    "numeric(20,4)": [Decimal("1.5000"), Decimal("-12345678.9012"), Decimal("0.0000"), Decimal("0.0001")],
    "text": ["", "ä\n\t'\"\\", "x" * 3000],
    "varchar(5)": ["abc"],
    "char(3)": ["ab "],
    "bytea": [b"", b"\0\xff"],
    "date": [dt.date(1, 1, 1), dt.date(2026, 11, 16), dt.date(9999, 12, 31)],
    "time": [dt.time(0, 0), dt.time(23, 59, 59, 999999)],
    "timestamp": [dt.datetime(1999, 12, 31, 23, 59, 59, 1), dt.datetime(2026, 1, 1)],
    "timestamptz": [dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC), dt.datetime(1850, 1, 1, 0, 0, 0, 500000, dt.UTC)],
    "interval": [dt.timedelta(days=3, seconds=4, microseconds=5), dt.timedelta(0)],
    "uuid": [uuid.UUID(int=5)],
    "jsonb": [{"a": [1, None, "x"]}, [], "text"],
    "integer[]": [[1, None, 3], []],
    "text[]": [["a", "b,c", 'd"', "NULL", None]],
    "numeric(9,2)[]": [[Decimal("1.50"), None]],
    "timestamptz[]": [[dt.datetime(2026, 1, 1, tzinfo=dt.UTC)]],
    "uuid[]": [[uuid.UUID(int=7)]],
    "bytea[]": [[b"a\\", b""]],
    "boolean[]": [[True, False, None]],
}


@pytest.mark.parametrize("type_", VALUES)
def test_values_of_every_type_go_both_ways_in_both_formats(connection, type_):
    for given in [*VALUES[type_], None]:
        for sent_binary in (False, True):
            placeholder = "%b" if sent_binary else "%t"
            value = Jsonb(given) if type_ == "jsonb" and given is not None else given
            for binary in (False, True):
                with connection.cursor(binary=binary) as cursor:
                    row = cursor.execute(f"SELECT {placeholder}::{type_} AS v", [value]).fetchone()
                    assert row == (given,), (sent_binary, binary)


def test_parameters_have_the_type_of_their_place(connection):
    connection.execute("CREATE TABLE places (a integer PRIMARY KEY, b text, c numeric(9,2), d date)")
    with connection.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO places VALUES (%s, %s, %s, %s)",
            [(n, f"row {n}", Decimal(n) / 4, dt.date(2026, 1, n)) for n in range(1, 11)],
        )
        assert cursor.rowcount == 10
    found = connection.execute("SELECT a FROM places WHERE d > %s AND c < %s", ["2026-01-05", "2.1"]).fetchall()
    assert sorted(found) == [(6,), (7,), (8,)]
    assert connection.execute("SELECT a FROM places WHERE a = ANY(%s) ORDER BY a", [[2, 3, 99]]).fetchall() == [
        (2,),
        (3,),
    ]
    returned = connection.execute("UPDATE places SET c = %s WHERE a = %s RETURNING a, c", ["1.005", 1]).fetchone()
    assert returned == (1, Decimal("1.01"))
    limited = connection.execute("SELECT a FROM places ORDER BY a LIMIT %s OFFSET %s", [2, 3])
    assert limited.fetchall() == [(4,), (5,)] and limited.description[0].name == "a"
    connection.execute("DROP TABLE places")


def test_statements_that_are_prepared_run_again_with_other_values(connection):
    connection.execute("CREATE TABLE repeated (a integer, b text)")
    for number in range(8):
        connection.execute("INSERT INTO repeated VALUES (%s, %s)", [number, str(number)], prepare=True)
    assert connection.execute("SELECT count(*) FROM repeated", prepare=True).fetchone() == (8,)
    connection.execute("DROP TABLE repeated")
    connection.execute("CREATE TABLE repeated (a text)")
    with pytest.raises(psycopg.Error):
        connection.execute("INSERT INTO repeated VALUES (%s, %s)", [1, "1"], prepare=True)
    connection.execute("DEALLOCATE ALL; DROP TABLE repeated")


def test_errors_have_a_code_a_position_and_a_hint(connection):
    with pytest.raises(psycopg.errors.UndefinedTable) as caught:
        connection.execute("SELECT *\nFROM nowhere")
    diagnosis = caught.value.diag
    assert diagnosis.sqlstate == "42P01" and diagnosis.statement_position == "15"
    assert diagnosis.message_primary == 'relation "nowhere" does not exist'
    with pytest.raises(psycopg.errors.SyntaxError):
        connection.execute("SELECT FROM WHERE")
    with pytest.raises(psycopg.errors.DivisionByZero):
        connection.execute("SELECT 1 / a FROM (VALUES (0)) AS v (a)")
    with pytest.raises(psycopg.errors.InvalidTextRepresentation):
        connection.execute("SELECT %s::integer", ["x"])
    with pytest.raises(psycopg.errors.FeatureNotSupported, match="LISTEN"):
        connection.execute("LISTEN channel")
    with pytest.raises(psycopg.errors.FeatureNotSupported, match="LOCK"):
        connection.execute("LOCK TABLE a")
    connection.execute("CREATE TABLE keyed (a integer PRIMARY KEY); INSERT INTO keyed VALUES (1)")
    with pytest.raises(psycopg.errors.UniqueViolation):
        connection.execute("INSERT INTO keyed VALUES (1)")
    connection.execute("DROP TABLE keyed")


def test_transactions_commit_roll_back_and_stay_failed(pg_address):
    with psycopg.connect(**pg_address) as one, psycopg.connect(**pg_address, autocommit=True) as other:
        other.execute("CREATE TABLE accounts (a integer PRIMARY KEY, b integer)")
        one.execute("INSERT INTO accounts VALUES (1, 10)")
        assert other.execute("SELECT count(*) FROM accounts").fetchone() == (0,)
        one.commit()
        assert other.execute("SELECT b FROM accounts").fetchone() == (10,)
        one.execute("UPDATE accounts SET b = 0")
        one.rollback()
        assert other.execute("SELECT b FROM accounts").fetchone() == (10,)
        with pytest.raises(psycopg.Error):
            one.execute("SELECT 1 / 0")
        assert one.info.transaction_status == psycopg.pq.TransactionStatus.INERROR
        with pytest.raises(psycopg.errors.InFailedSqlTransaction):
            one.execute("SELECT 1")
        one.rollback()
        one.execute("UPDATE accounts SET b = b + 1")
        other.execute("UPDATE accounts SET b = 20")
        with pytest.raises(psycopg.errors.SerializationFailure):
            one.commit()
        with other.transaction():
            other.execute("INSERT INTO accounts VALUES (2, 2)")
            with pytest.raises(psycopg.errors.DivisionByZero), other.transaction():  # a savepoint
                other.execute("INSERT INTO accounts VALUES (3, 3)")
                other.execute("SELECT 1 / 0")
            other.execute("INSERT INTO accounts VALUES (4, 4)")
        assert other.execute("SELECT a FROM accounts ORDER BY a").fetchall() == [(1,), (2,), (4,)]
        other.execute("DROP TABLE accounts")


def test_rows_stream_from_a_cursor_of_the_server(pg_address):
    with psycopg.connect(**pg_address) as connection:
        with connection.cursor("many") as cursor:
            cursor.itersize = 100
            cursor.execute("SELECT n, n * 2 FROM generate_series(1, 1000) AS g (n) ORDER BY n")
            assert cursor.fetchmany(3) == [(1, 2), (2, 4), (3, 6)]
            assert sum(row[0] for row in cursor) == 500500 - 6
        with pytest.raises(psycopg.errors.InvalidCursorName):
            connection.execute("FETCH ALL FROM many")


def test_a_subscription_is_followed_by_a_cursor(connection, pg_address):
    connection.execute("CREATE TABLE followed (a integer, b text)")
    connection.execute("CREATE MATERIALIZED VIEW counted AS SELECT b, count(*) AS n FROM followed GROUP BY b")
    connection.execute("INSERT INTO followed VALUES (1, 'x')")
    connection.execute("DECLARE c CURSOR FOR SUBSCRIBE counted")
    first = connection.execute("FETCH ALL c")
    assert [column.name for column in first.description] == ["epoch", "diff", "b", "n"]
    assert [row[1:] for row in first.fetchall()] == [(1, "x", 1)]
    began = time.monotonic()
    assert connection.execute("FETCH ALL c WITH (timeout = '300ms')").fetchall() == []
    assert time.monotonic() - began > 0.25

    def insert():
        time.sleep(0.2)
        with psycopg.connect(**pg_address, autocommit=True) as other:
            other.execute("INSERT INTO followed VALUES (2, 'x')")

    writer = threading.Thread(target=insert)
    writer.start()
    rows = connection.execute("FETCH ALL c WITH (timeout = '60s')").fetchall()
    writer.join()
    assert [row[1:] for row in rows] == [(-1, "x", 1), (1, "x", 2)]
    connection.execute("CLOSE c")
    connection.execute("DROP MATERIALIZED VIEW counted; DROP TABLE followed")


def test_rows_are_copied_in_and_out_in_three_formats(connection):
    connection.execute("CREATE TABLE copied (a integer PRIMARY KEY, b text, c timestamptz, d numeric(9,2)[])")
    moment = dt.datetime(2026, 1, 1, 0, 0, 0, 250000, dt.UTC)
    rows = [(n, None if n % 5 == 0 else f"row\t\\{n}\n\"'", moment, [Decimal("1.50"), None]) for n in range(5000)]
    with connection.cursor() as cursor:
        with cursor.copy("COPY copied FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)
        assert cursor.rowcount == 5000
        with cursor.copy("COPY copied TO STDOUT") as copy:
            copy.set_types(["integer", "text", "timestamptz", "numeric[]"])
            assert sorted(copy.rows()) == rows
        with cursor.copy("COPY (SELECT * FROM copied ORDER BY a) TO STDOUT (FORMAT binary)") as copy:
            copy.set_types(["integer", "text", "timestamptz", "numeric[]"])
            assert list(copy.rows()) == rows
        cursor.execute("TRUNCATE copied")
        with cursor.copy("COPY copied (a, b) FROM STDIN (FORMAT binary)") as copy:
            copy.set_types(["integer", "text"])
            for row in rows:
                copy.write_row(row[:2])
        assert cursor.execute("SELECT count(*), count(b), count(c) FROM copied").fetchone() == (5000, 4000, 0)
        with cursor.copy(
            "COPY (SELECT a, b FROM copied WHERE a < 2 ORDER BY a) TO STDOUT (FORMAT csv, HEADER)"
        ) as copy:
            assert b"".join(copy) == b'a,b\n0,\n1,"row\t\\1\n""\'"\n'
    connection.execute("DROP TABLE copied")


def test_a_copy_that_fails_changes_nothing_and_the_connection_goes_on(connection):
    connection.execute("CREATE TABLE refused (a integer PRIMARY KEY)")
    for lines, state in ((b"1\nx\n", "22P02"), (b"1\n1\n", "23505"), (b"1\t2\n", "22P04")):
        with pytest.raises(psycopg.Error) as caught, connection.cursor().copy("COPY refused FROM STDIN") as copy:
            copy.write(lines)
        assert caught.value.sqlstate == state
    with pytest.raises(ZeroDivisionError), connection.cursor().copy("COPY refused FROM STDIN") as copy:
        copy.write(b"1\n")
        raise ZeroDivisionError
    with pytest.raises(psycopg.errors.UndefinedTable), connection.cursor().copy("COPY nowhere FROM STDIN") as copy:
        copy.write(b"1\n")
    assert connection.execute("SELECT count(*) FROM refused").fetchone() == (0,)
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        connection.execute("COPY refused FROM '/etc/passwd'")
    connection.execute("DROP TABLE refused")


def test_a_statement_is_cancelled_by_request_and_by_timeout(pg_address):
    many = "generate_series(1, 20000)"
    slow = f"SELECT count(*) FROM {many} a (n) JOIN {many} b (n) ON a.n % 7 = b.n % 7"
    with psycopg.connect(**pg_address, autocommit=True) as connection:
        canceller = threading.Timer(0.5, connection.cancel_safe)
        canceller.start()
        with pytest.raises(psycopg.errors.QueryCanceled):
            connection.execute(slow)
        canceller.join()
        assert connection.execute("SELECT 1").fetchone() == (1,)
        connection.execute("SET statement_timeout = '200ms'")
        with pytest.raises(psycopg.errors.QueryCanceled, match="timeout"):
            connection.execute(slow)
        assert connection.execute("SHOW statement_timeout").fetchone() == ("200",)
        connection.execute("RESET statement_timeout")
        connection.execute("CREATE TABLE awaited (a integer)")
        connection.execute("DECLARE c CURSOR FOR SUBSCRIBE awaited")
        canceller = threading.Timer(0.3, connection.cancel_safe)
        canceller.start()
        with pytest.raises(psycopg.errors.QueryCanceled):
            connection.execute("FETCH c WITH (timeout = '60s')")
        canceller.join()
        connection.execute("CLOSE ALL; DROP TABLE awaited")


def test_pipelines_of_statements_end_at_the_first_error(connection):
    with connection.pipeline():
        connection.execute("CREATE TABLE piped (a integer)")
        cursors = [connection.execute("INSERT INTO piped VALUES (%s)", [n]) for n in range(3)]
    assert [cursor.rowcount for cursor in cursors] == [1, 1, 1]
    with pytest.raises(psycopg.errors.UndefinedColumn), connection.pipeline():
        connection.execute("INSERT INTO piped VALUES (7)")
        connection.execute("SELECT nothing FROM piped")
        connection.execute("INSERT INTO piped VALUES (8)")
    assert connection.execute("SELECT max(a) FROM piped").fetchone() == (7,)
    connection.execute("DROP TABLE piped")
