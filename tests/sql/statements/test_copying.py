"""COPY writes the bytes that PostgreSQL writes, and reads what it reads; errors name line, column and value."""

import io
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kpg

TYPES = {
    "b": "BOOLEAN", "i2": "SMALLINT", "i4": "INT", "i8": "BIGINT", "r": "REAL", "d": "DOUBLE PRECISION",
    "n": "NUMERIC(12,3)", "w": "NUMERIC(38,10)", "t": "TEXT", "v": "VARCHAR(8)", "x": "BYTEA", "day": "DATE",
    "hour": "TIME", "at": "TIMESTAMP", "z": "TIMESTAMPTZ", "span": "INTERVAL", "u": "UUID", "j": "JSONB",
}  # fmt: skip
ROWS = [
    "(true, 1, -2, 9223372036854775807, 1.5, 0.1, 1.500, 12345678901234567890.5, 'a,b', 'q\"uote', '\\x00ff',"
    " '2024-02-29', '12:30:00.25', '2024-01-01 10:00:00', '2024-01-01 10:00:00+02', '1 month 2 days 03:00',"
    " '00000000-0000-0000-0000-0000000000ff', '{\"a\": [1, null]}')",
    "(false, -32768, 2147483647, 0, -1e-10, 1e300, -0.001, -1, '', ' x ', '', '0001-01-01', '00:00',"
    " '1999-12-31 23:59:59.999999', '1970-01-01 00:00+00', '-1 year', 'ffffffff-ffff-ffff-ffff-ffffffffffff', '\"s\"')",
    "(NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
    "(true, 0, 0, 0, 0, 0, 0, 0, E'two\\nlines\\ttab\\\\back', '\\N', '\\x0a', '2024-06-01', '23:59:59',"
    " '2024-06-01', '2024-06-01', '0', '00000000-0000-0000-0000-000000000000', 'null')",
]
OPTIONS = [
    "FORMAT csv", "FORMAT csv, HEADER", "FORMAT csv, DELIMITER ';', NULL 'nil'", "FORMAT csv, QUOTE '''', HEADER",
    "FORMAT csv, ESCAPE '\\'", "FORMAT csv, DELIMITER E'\\t', NULL 'x'", "FORMAT text", "FORMAT text, DELIMITER '|'",
    "FORMAT text, NULL '', HEADER",
]  # fmt: skip
COLUMNS = ", ".join(f"{name} {kind}" for name, kind in TYPES.items())


def postgres_copy_out(postgres, statement):
    with postgres.connection.cursor() as cursor, cursor.copy(statement) as copied:
        return b"".join(bytes(part) for part in copied)


@pytest.fixture(scope="module")
def db():
    with kpg.open() as db:
        yield db


@pytest.fixture(scope="module")
def filled(db, postgres):
    for run in (db.sql, postgres.connection.execute):
        run("DROP TABLE IF EXISTS every_type")
        run(f"CREATE TABLE every_type ({COLUMNS})")
        for row in ROWS:
            run(f"INSERT INTO every_type VALUES {row}")
    return db


@pytest.mark.parametrize("options", OPTIONS)
def test_all_types_are_written_and_read_as_postgresql_does(filled, postgres, tmp_path, options):
    path = tmp_path / "rows.csv"
    filled.sql(f"COPY every_type TO '{path}' WITH ({options})")
    written = postgres_copy_out(postgres, f"COPY every_type TO STDOUT WITH ({options})")
    assert sorted(path.read_bytes().split(b"\n")) == sorted(written.split(b"\n"))
    path.write_bytes(written)
    filled.sql(f"DROP TABLE IF EXISTS again; CREATE TABLE again ({COLUMNS})")
    assert filled.sql(f"COPY again FROM '{path}' WITH ({options})").tag == f"COPY {len(ROWS)}"
    compare_loaded(filled, postgres, path, COLUMNS, options)


def test_all_types_survive_parquet(filled, tmp_path):
    path = tmp_path / "rows.parquet"
    filled.sql(f"COPY every_type TO '{path}'")
    filled.sql(f"DROP TABLE IF EXISTS again; CREATE TABLE again ({COLUMNS}); COPY again FROM '{path}'")
    assert same_rows(filled, "again", "every_type")


def compare_loaded(db, postgres, path, columns, options):
    """Let PostgreSQL load the file too, and compare the rows of both as CSV."""
    postgres.connection.execute(f"DROP TABLE IF EXISTS again; CREATE TABLE again ({columns})")
    with postgres.connection.cursor() as cursor, cursor.copy(f"COPY again FROM STDIN WITH ({options})") as copied:
        copied.write(path.read_bytes())
    db.sql(f"COPY again TO '{path}' WITH (FORMAT csv, NULL 'nil')")
    expected = postgres_copy_out(postgres, "COPY again TO STDOUT WITH (FORMAT csv, NULL 'nil')")
    assert sorted(path.read_bytes().split(b"\n")) == sorted(expected.split(b"\n"))


def same_rows(db, left, right):
    return Counter(map(repr, db.sql(f"TABLE {left}").rows())) == Counter(map(repr, db.sql(f"TABLE {right}").rows()))


TEXTS = st.none() | st.text(alphabet="a,;\"'\\\n\r\tNé", max_size=6)


@settings(max_examples=25)
@given(st.lists(st.tuples(TEXTS, TEXTS), max_size=5), st.sampled_from(OPTIONS))
def test_any_texts_are_written_as_postgresql_writes_them_and_come_back(db, postgres, tmp_path_factory, rows, options):
    for run in (db.sql, postgres.connection.execute):
        run("DROP TABLE IF EXISTS texts")
        run("CREATE TABLE texts (a TEXT, b TEXT)")
    for row in rows:
        db.sql("INSERT INTO texts VALUES ($1,$2)", *row)
        postgres.connection.execute("INSERT INTO texts VALUES (%s, %s)", row)
    path = tmp_path_factory.mktemp("copy") / "texts.csv"
    db.sql(f"COPY texts TO '{path}' WITH ({options})")
    written = postgres_copy_out(postgres, f"COPY texts TO STDOUT WITH ({options})")
    assert sorted(path.read_bytes()) == sorted(written) and len(path.read_bytes()) == len(written)
    path.write_bytes(written)
    db.sql("DROP TABLE IF EXISTS again; CREATE TABLE again (a TEXT, b TEXT)")
    db.sql(f"COPY again FROM '{path}' WITH ({options})")
    compare_loaded(db, postgres, path, "a TEXT, b TEXT", options)


@pytest.mark.parametrize(
    ("content", "state", "parts"),
    [
        ("1,2\nx,3\n", "22P02", ["line 2", "column a", '"x"']),
        ('1,"two\nlines"\n2,ok\nx,3\n', "22P02", ["line 4", "column a", '"x"']),
        ("99999999999,2\n", "22003", ["line 1", "column a", '"99999999999"']),
        ("1\n", "22P04", ["columns"]),
        ("1,2,3\n", "22P04", ["columns"]),
        ("1,a\n1,b\n", "23505", ["(1)"]),
        (",b\n", "23502", ["null"]),
        ("1,longer text\n", "22001", ["line 1", "column b"]),
    ],
)
def test_a_bad_file_is_refused_as_a_whole(db, tmp_path, content, state, parts):
    db.sql("DROP TABLE IF EXISTS k; CREATE TABLE k (a INT PRIMARY KEY, b VARCHAR(9))")
    path = tmp_path / "bad.csv"
    path.write_text(content)
    with pytest.raises(kpg.KpgError) as failure:
        db.sql(f"COPY k FROM '{path}'")
    assert failure.value.sqlstate == state
    assert all(part in str(failure.value) for part in parts), str(failure.value)
    assert len(db.sql("TABLE k")) == 0


@pytest.mark.parametrize(
    ("statement", "state"),
    [
        ("COPY k FROM '{path}.missing.csv'", "58P01"),
        ("COPY k FROM '{path}' WITH (DELIMITER 'ab')", "22023"),
        ("COPY k FROM '{path}' WITH (FORMAT text, QUOTE '|')", "22023"),
        ("COPY k FROM '{path}' WITH (FORMAT excel)", "0A000"),
        ("COPY k FROM '{path}' WITH (FREEZE)", "0A000"),
        ("COPY k FROM '{path}' WITH (HEADER match)", "22P04"),
        ("COPY k (nothing) FROM '{path}'", "42703"),
        ("COPY missing FROM '{path}'", "42P01"),
        ("COPY k FROM '{path}' WITH (ENCODING 'klingon')", "22P04"),
        ("COPY k TO '/nowhere/at/all.csv'", "58030"),
    ],
)
def test_wrong_options_and_files_are_refused(db, tmp_path, statement, state):
    db.sql("DROP TABLE IF EXISTS k; CREATE TABLE k (a INT PRIMARY KEY, b VARCHAR(9))")
    path = tmp_path / "rows.csv"
    path.write_text("x,y\n1,2\n")
    with pytest.raises(kpg.KpgError) as failure:
        db.sql(statement.format(path=path))
    assert failure.value.sqlstate == state


def test_columns_may_be_chosen_and_others_have_defaults(db, tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("b,a\nx,1\ny,2\n")
    db.sql("DROP TABLE IF EXISTS k")
    db.sql("CREATE TABLE k (id INT GENERATED ALWAYS AS IDENTITY, a INT, b TEXT, c TEXT DEFAULT 'd')")
    db.sql(f"COPY k (b, a) FROM '{path}' WITH (HEADER match)")
    assert sorted(db.sql("TABLE k").rows()) == [(1, 1, "x", "d"), (2, 2, "y", "d")]
    db.sql(f"COPY (SELECT b, a FROM k ORDER BY a DESC) TO '{path}' WITH (HEADER)")
    assert path.read_text() == "b,a\ny,2\nx,1\n"
    db.sql(f"COPY k (c, a) TO '{path}'")
    assert sorted(path.read_text().splitlines()) == ["d,1", "d,2"]


def test_a_load_is_one_epoch_and_part_of_a_transaction(db, tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("1\n2\n")
    db.sql("DROP TABLE IF EXISTS k; CREATE TABLE k (a INT)")
    db.sql("BEGIN")
    db.sql(f"COPY k FROM '{path}'")
    db.sql("ROLLBACK")
    assert len(db.sql("TABLE k")) == 0
    before = db.epoch
    db.sql(f"COPY k FROM '{path}'")
    assert db.epoch == before + 1 and len(db.sql("TABLE k")) == 2


def test_a_long_load_shows_its_progress_on_a_terminal(db, tmp_path, monkeypatch):
    path = tmp_path / "many.csv"
    path.write_text("1234567\n" * 1_500_000)  # several blocks
    shown = io.StringIO()
    shown.isatty = lambda: True
    monkeypatch.setattr("sys.stderr", shown)
    monkeypatch.setattr("kpg.terminal.BAR_DELAY_SECONDS", 0)
    db.sql(f"DROP TABLE IF EXISTS k; CREATE TABLE k (a BIGINT); COPY k FROM '{path}'")
    assert "reading many.csv" in shown.getvalue()
