"""One script of messages for PostgreSQL and for kpg: the replies are the same, message by message."""

import struct

import pytest

from kpg.bench.peers.postgres import SMALL_SETTINGS, server
from kpg.bench.run import PeerAbsent
from kpg.server.tokens import Tokens
from tests.pgwire.raw_client import SYNC, RawClient, bind, describe, execute, message, parse, query, text
from tests.server.serving import served

INT4, INT8, TEXT = 23, 20, 25
SCRIPT = {
    "nothing": query(""),
    "blanks and semicolons": query(" ; ; "),
    "tables": query("CREATE TABLE r (a integer PRIMARY KEY, b text, c numeric(9,2), d date); SELECT 1 AS one"),
    "rows": query("INSERT INTO r VALUES (1, 'x', 1.5, '2026-01-01'), (2, NULL, NULL, NULL)"),
    "text": query("SELECT * FROM r ORDER BY a"),
    "several results": query("SELECT 1 AS a; SELECT 'x' AS b, NULL AS c; UPDATE r SET b = 'y' WHERE a = 2"),
    "types": query(
        "SELECT true, 1::smallint, 1.5::real, 1e100::float8, 'a'::varchar, '\\x00ff'::bytea, interval '1 day 2:00', "
        "time '10:11:12.5', timestamp '2026-01-01 00:00:00.25', timestamptz '2026-01-01 00:00+02', "
        "ARRAY[1,NULL]::integer[], ARRAY['a b', 'NULL']::text[], '{\"a\": 1}'::jsonb, "
        "'00000000-0000-0000-0000-000000000001'::uuid"
    ),
    "a syntax error": query("SELEC 1"),
    "an error in the middle": query("SELECT 1 AS a; SELECT nothing FROM r; SELECT 2"),
    "an unknown table": query("SELECT *\n  FROM nowhere"),
    "a key that is there": query("INSERT INTO r VALUES (1)"),
    "a transaction": query("BEGIN") + query("SELECT 1 AS a") + query("COMMIT"),
    "a failed transaction": query("BEGIN") + query("SELECT nope") + query("SELECT 1") + query("ROLLBACK"),
    "a commit that rolls back": query("BEGIN") + query("SELECT nope") + query("COMMIT"),
    "a savepoint": query("BEGIN") + query("SAVEPOINT s") + query("SELECT nope") + query("ROLLBACK TO s") + query("END"),
    "nothing to commit": query("COMMIT"),
    "begin twice": query("BEGIN") + query("BEGIN") + query("ROLLBACK"),
    "parameters": parse("SELECT $1::integer + 1 AS a, $2 || 'x' AS b") + describe("S")
    + bind((b"4", b"y")) + describe("P") + execute() + SYNC,
    "types of parameters": parse("SELECT b FROM r WHERE a = $1 AND d < $2 AND b LIKE $3") + describe("S") + SYNC,
    "binary": parse("SELECT a, b, c, d FROM r WHERE a = $1", oids=(INT4,))
    + bind((struct.pack("!i", 1),), (1,), (1,)) + describe("P") + execute() + SYNC,
    "mixed formats": parse("SELECT a, b FROM r ORDER BY a") + bind(results=(1, 0)) + execute() + SYNC,
    "a portal some rows at a time": query("BEGIN") + parse("SELECT n FROM generate_series(1, 5) AS g (n) ORDER BY n")
    + bind(portal="p") + execute(2, "p") + execute(2, "p") + execute(2, "p") + SYNC + query("COMMIT"),
    "an empty statement": parse("") + describe("S") + bind() + execute() + SYNC,
    "a named statement": parse("SELECT $1::bigint AS n", "s", (INT8,)) + SYNC
    + bind((b"7",), statement="s") + execute() + SYNC + message(b"C", b"S" + text("s")) + SYNC
    + bind((b"7",), statement="s") + SYNC,
    "a name that is taken": parse("SELECT 1", "t") + SYNC + parse("SELECT 2", "t") + SYNC,
    "a portal that is not there": execute(portal="nothing") + SYNC,
    "skipped until sync": parse("SELECT nothing") + bind() + execute() + query("SELECT 'after'") + SYNC,
    "too few values": parse("SELECT $1::integer") + bind() + SYNC,
    "a value that does not fit": parse("SELECT $1::integer") + bind((b"x",)) + execute() + SYNC,
    "two commands": parse("SELECT 1; SELECT 2") + SYNC,
    "a change with rows": parse("UPDATE r SET b = $1 WHERE a = $2 RETURNING a, b") + describe("S")
    + bind((b"z", b"2")) + describe("P") + execute() + SYNC,
    "no rows": parse("DELETE FROM r WHERE a = 99") + bind() + describe("P") + execute() + SYNC,
    "copy out": query("COPY (SELECT a, b FROM r ORDER BY a) TO STDOUT"),
    "copy in": query("COPY r (a, b) FROM STDIN") + message(b"d", b"10\tten\n11\t\\N\n") + message(b"c"),
    "copy that fails": query("COPY r (a) FROM STDIN") + message(b"f", text("no more")),
    "copy of a wrong value": query("COPY r (a) FROM STDIN") + message(b"d", b"x\n") + message(b"c"),
    "a cursor": query("BEGIN") + query("DECLARE c CURSOR FOR SELECT a FROM r ORDER BY a")
    + query("FETCH 2 FROM c") + query("FETCH ALL FROM c") + query("CLOSE c") + query("COMMIT"),
    "settings": query("SET extra_float_digits = 3") + query("SHOW TRANSACTION ISOLATION LEVEL")
    + query("SHOW server_encoding") + query("SET application_name = 'x'"),
    "the end": query("DROP TABLE r"),
}  # fmt: skip


@pytest.fixture(scope="module")
def clients():
    try:
        with server(SMALL_SETTINGS) as address, served(pg_port=0, tokens=Tokens(), open_to_all=True) as kpg_server:
            postgres = RawClient(f"{address.directory}/.s.PGSQL.{address.port}")
            kpg_client = RawClient(("127.0.0.1", kpg_server.pg_port))
            postgres.socket.sendall(
                query("SET timezone = 'UTC'") + query("SET default_transaction_isolation = 'repeatable read'")
            )
            postgres.until_ready()
            postgres.until_ready()
            yield postgres, kpg_client
            postgres.close()
            kpg_client.close()
    except PeerAbsent as absent:
        pytest.skip(str(absent))


def error_fields(body: bytes) -> dict[str, str]:
    return {part[:1].decode(): part[1:].decode() for part in body.split(b"\0") if part}


def shown(kind: bytes, body: bytes):
    """Return what must be equal in a message."""
    if kind in b"EN":
        fields = error_fields(body)
        return kind, fields["V"], fields["C"], fields.get("P")
    if kind == b"T":  # without the table of origin, and modifiers of computed columns
        columns, at = [], 2
        for _ in range(struct.unpack("!h", body[:2])[0]):
            end = body.index(b"\0", at)
            _, _, oid, size, _, form = struct.unpack("!IhIhih", body[end + 1 : end + 19])
            columns.append((body[at:end], oid, size, form))
            at = end + 19
        return kind, columns
    return kind, body


def test_the_replies_are_those_of_postgresql(clients):
    different = {}
    for name, data in SCRIPT.items():
        replies = []
        for client in clients:
            client.socket.sendall(data)
            skipped = name == "skipped until sync"  # the query is, too
            count = data.count(SYNC) + data.count(b"Q\0\0") - skipped
            answers = [reply for _ in range(count) for reply in client.until_ready()]
            replies.append([shown(*reply) for reply in answers if reply[0] != b"S"])
        if replies[0] != replies[1]:
            different[name] = replies
    assert not different
