"""psql against a server: what it shows of the catalog, \\copy, \\watch and errors."""

import shutil
import subprocess

import pytest

pytestmark = pytest.mark.skipif(shutil.which("psql") is None, reason="psql is not installed")


@pytest.fixture
def psql(pg_environment):
    def run(*commands, check=True, **options):
        arguments = [part for command in commands for part in ("-c", command)]
        done = subprocess.run(
            ["psql", "-X", "-q", *arguments], env=pg_environment, capture_output=True, text=True, timeout=120, **options
        )
        assert not check or done.returncode == 0, done.stderr
        return done.stdout if check else done.stderr

    return run


def test_describes_tables_views_indexes_and_sequences(psql):
    psql(
        "CREATE TABLE shown (a integer PRIMARY KEY DEFAULT 5, b varchar(5) NOT NULL, c numeric(10,2), UNIQUE (b, c))",
        "CREATE INDEX shown_c ON shown (c)",
        "CREATE MATERIALIZED VIEW shown_rows AS SELECT b, count(*) AS n FROM shown GROUP BY b",
        "CREATE VIEW shown_text AS SELECT b FROM shown",
        "CREATE SEQUENCE shown_numbers",
    )
    described = psql(r"\d shown")
    for line in (
        " a      | integer              |           | not null | 5",
        " b      | character varying(5) |           | not null | ",
        " c      | numeric(10,2)        |           |          | ",
        '    "shown_pkey" PRIMARY KEY, btree (a)',
        '    "shown_b_c_key" UNIQUE CONSTRAINT, btree (b, c)',
        '    "shown_c" btree (c)',
    ):
        assert line in described.splitlines(), described
    assert " public | shown | table | kpg" in psql(r"\dt shown")
    listed = psql(r"\d")
    assert " shown_rows    | materialized view |" in listed and " shown_numbers | sequence          |" in listed
    assert "SELECT b FROM shown" in psql(r"\d+ shown_text")
    psql("DROP MATERIALIZED VIEW shown_rows", "DROP VIEW shown_text", "DROP TABLE shown", "DROP SEQUENCE shown_numbers")
    assert "shown" not in psql(r"\dt")


def test_copies_files_of_the_client(psql, tmp_path):
    (tmp_path / "in.csv").write_text("a,b\n1,x\n2,\n")
    psql("CREATE TABLE filed (a integer, b text)", rf"\copy filed FROM '{tmp_path}/in.csv' CSV HEADER")
    psql(rf"\copy (SELECT * FROM filed ORDER BY a) TO '{tmp_path}/out.txt'")
    assert (tmp_path / "out.txt").read_text() == "1\tx\n2\t\\N\n"
    assert psql("COPY filed FROM STDIN", input="3\ty\n\\.\n") == ""
    assert "     3" in psql("SELECT count(*) FROM filed")
    psql("DROP TABLE filed")


def test_watches_a_query(pg_environment):
    process = subprocess.Popen(
        ["psql", "-X", "-t", "-A"], env=pg_environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write("SELECT 40 + 2 \\watch 0.1\n")
    process.stdin.flush()
    answers = 0
    while answers < 3:
        line = process.stdout.readline()
        assert line, "psql has ended"
        answers += line.strip() == "42"
    process.kill()
    process.wait()


def test_shows_where_a_mistake_is(psql):
    error = psql("SELECT a,\n  nothing FROM pg_class", check=False)
    assert 'column "a" does not exist' in error and "LINE 1: SELECT a," in error
