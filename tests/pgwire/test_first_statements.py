"""What tools ask first: their own statements, and JDBC's DatabaseMetaData; compared with PostgreSQL if it is there."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from kpg.bench.peers import postgres as peer
from kpg.bench.run import PeerAbsent
from tests.pgwire.first_statements import TOOLS

DRIVER = Path("/usr/share/java/postgresql.jar")
PROGRAM = Path(__file__).parent / "JdbcMetadata.java"
TABLES = [
    "CREATE TABLE people (id integer PRIMARY KEY, name text NOT NULL, born date, level integer DEFAULT 3, "
    "score numeric(9,2), at timestamp, ok boolean, x float8, code varchar(7))",
    "CREATE INDEX people_by_name ON people (name)",
    "INSERT INTO people (id, name) VALUES (1, 'ann'), (2, 'bob')",
    "CREATE VIEW names AS SELECT name FROM people",
]


@pytest.fixture(scope="module")
def tables(pg_address: dict[str, Any]) -> Iterator[psycopg.Connection[Any]]:
    """A connection to kpg, with tables."""
    with psycopg.connect(**pg_address, autocommit=True) as connection:
        for statement in TABLES:
            connection.execute(statement)
        yield connection
        connection.execute("DROP VIEW names")
        connection.execute("DROP TABLE people")


@pytest.fixture(scope="module")
def postgres() -> Iterator[Any]:
    """A PostgreSQL with the same tables, and its address."""
    try:
        with peer.server(peer.SMALL_SETTINGS) as address:
            with psycopg.connect(address.dsn, autocommit=True) as connection:
                for statement in TABLES:
                    connection.execute(statement)
            yield address
    except PeerAbsent as absent:
        pytest.skip(str(absent))


def oids(connection: psycopg.Connection[Any]) -> dict[str, str]:
    (schema,) = connection.execute("SELECT oid FROM pg_namespace WHERE nspname = 'public'").fetchone() or ("",)
    (table,) = connection.execute("SELECT oid FROM pg_class WHERE relname = 'people'").fetchone() or ("",)
    return {"$SCHEMA": str(schema), "$TABLE": str(table)}


def answers(connection: psycopg.Connection[Any], statements: list[str]) -> list[tuple[str, list[str] | None, int]]:
    """Return the columns of each statement, and how many rows it returns."""
    numbers = oids(connection)
    results = []
    for statement in statements:
        text = statement
        for name, oid in numbers.items():
            text = text.replace(name, oid)
        cursor = connection.execute(text)  # type: ignore[call-overload]
        while cursor.nextset():
            pass
        names = None if cursor.description is None else [column.name for column in cursor.description]
        results.append((statement, names, cursor.rowcount if names else 0))
    return results


@pytest.mark.parametrize("tool", TOOLS)
def test_the_first_statements_of_a_tool_are_answered(tool: str, tables: psycopg.Connection[Any]) -> None:
    for statement, names, _ in answers(tables, TOOLS[tool]):
        assert names is None or all(names), statement


@pytest.mark.parametrize("tool", TOOLS)
def test_the_answers_have_the_columns_of_postgresql(tool: str, tables: psycopg.Connection[Any], postgres: Any) -> None:
    with psycopg.connect(postgres.dsn, autocommit=True) as connection:
        for ours, theirs in zip(answers(tables, TOOLS[tool]), answers(connection, TOOLS[tool]), strict=True):
            if "*" in ours[0]:  # the columns of the catalog differ between releases
                assert set(ours[1] or ()) & set(theirs[1] or ()), ours[0]
            else:
                assert ours[1] == theirs[1], ours[0]


def test_a_tool_finds_the_table_its_columns_and_its_settings(tables: psycopg.Connection[Any]) -> None:
    found = {statement: rows for tool in TOOLS.values() for statement, _, rows in answers(tables, tool)}

    def rows(part: str) -> int:
        return next(count for statement, count in found.items() if part in statement)

    assert rows("FROM information_schema.columns") == 10  # of people and of names
    assert rows("partition_expr") == 2 and rows("def_value") == 9
    assert rows("reset_val") == 1 and rows("can_signal_backend") == 1 and rows("as type") == 1


def metadata(url: str, user: str, password: str) -> dict[str, list[list[str]]]:
    """Return what DatabaseMetaData says: rows by method."""
    done = subprocess.run(
        ["java", "-XX:TieredStopAtLevel=1", "-cp", str(DRIVER), str(PROGRAM), url, user, password],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines: dict[str, list[list[str]]] = {}
    for line in done.stdout.splitlines():
        method, *values = line.split("\t")
        lines.setdefault(method, []).append(values)
    return lines


def test_jdbc_describes_tables_as_it_does_those_of_postgresql(
    tables: psycopg.Connection[Any], pg_address: dict[str, Any], postgres: Any
) -> None:
    if not DRIVER.exists() or shutil.which("javac") is None:
        pytest.skip("needs a JDK and PostgreSQL's JDBC driver: apt install default-jdk libpostgresql-jdbc-java")
    ours = metadata(f"jdbc:postgresql://127.0.0.1:{pg_address['port']}/kpg", "kpg", pg_address["password"])
    theirs = metadata(postgres.jdbc, "kpg", "")
    for method in ("tables", "columns", "keys", "indexes", "read", "refused"):
        assert ours[method] == theirs[method], method
    assert ours["refused"] == [["25006"]]
    assert "imported" not in ours and "exported" not in ours
    assert ["public"] in ours["schemas"] and ours["catalogs"] == [["kpg"]]
    types = dict(theirs["types"])
    differing = {name: (number, types[name]) for name, number in ours["types"] if types.get(name, number) != number}
    assert len(ours["types"]) > 15 and not differing
