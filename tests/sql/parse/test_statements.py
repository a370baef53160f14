"""Statements of SQL: what each becomes, what is refused by name, and where errors point."""

import pytest

import kpg
from kpg.sql import sql_types
from kpg.sql.parse.statement_parser import parse_expression, parse_query, parse_statements


def one(text):
    (statement,) = parse_statements(text)
    return statement


def test_a_script_is_split_at_semicolons_and_spans_are_its_text():
    statements = parse_statements("SELECT 1; ;\n-- a comment; with a semicolon\nVALUES (';')")
    assert [statement.span.text() for statement in statements] == ["SELECT 1", "VALUES (';')"]


def test_a_table_has_columns_keys_checks_and_options():
    table = one("""
        CREATE TABLE IF NOT EXISTS Orders (
            id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
            "Who" VARCHAR(20) NOT NULL DEFAULT 'a' || 'b',
            amount NUMERIC(12,2) CHECK (amount > 0),
            at TIMESTAMP WITH TIME ZONE,
            CONSTRAINT early CHECK (at < '2030-01-01')
        ) WITH (retain = none)""")
    assert (table.name.text, table.if_not_exists, table.options) == ("orders", True, {"retain": "none"})
    assert [(c.name.text, c.type, c.not_null, c.identity) for c in table.columns] == [
        ("id", sql_types.BIGINT, True, "always"),
        ("Who", sql_types.varchar(20), True, None),
        ("amount", sql_types.numeric(12, 2), False, None),
        ("at", sql_types.TIMESTAMPTZ, False, None),
    ]
    assert table.columns[1].default.text == "'a' || 'b'"
    assert [key.text for key in table.primary_key] == ["id"]
    assert [(c.name, c.condition.text) for c in table.checks] == [
        (None, "amount > 0"),
        ("early", "at < '2030-01-01'"),
    ]


def test_a_numeric_column_without_digits_has_one_scale():
    table = one("CREATE TABLE t (n NUMERIC, m DECIMAL(5), l NUMERIC[])")
    default = sql_types.numeric(38, 9)
    assert [c.type for c in table.columns] == [default, sql_types.numeric(5, 0), sql_types.array_of(default)]


def test_a_view_keeps_the_text_of_its_query():
    view = one("CREATE OR REPLACE MATERIALIZED VIEW v (x, y) AS  SELECT a, 'it''s' FROM t -- why\n ;")
    assert (view.materialized, view.or_replace, [c.text for c in view.columns]) == (True, True, ["x", "y"])
    assert view.query.text == "SELECT a, 'it''s' FROM t"


def test_insert_has_a_conflict_and_returns():
    insert = one(
        "INSERT INTO t AS x (a, b) VALUES (1, DEFAULT) "
        "ON CONFLICT (a) DO UPDATE SET b = excluded.b, (c, d) = (1, DEFAULT) WHERE x.b > 1 RETURNING *, a + 1 AS next"
    )
    assert ([c.text for c in insert.columns], insert.alias.text) == (["a", "b"], "x")
    assert [(a.column.text, a.value and a.value.text) for a in insert.on_conflict.assignments] == [
        ("b", "excluded.b"), ("c", "1"), ("d", None),
    ]  # fmt: skip
    assert [item.text for item in insert.returning.items] == ["*", "a + 1 AS next"]
    assert one("INSERT INTO t DEFAULT VALUES").rows is None
    assert one("INSERT INTO t (SELECT 1)").columns is None


def test_update_and_delete_have_sources():
    update = one("UPDATE t x SET a = 1, b = DEFAULT FROM u JOIN v USING (k) WHERE x.k = u.k RETURNING x.a")
    assert (update.table.text, update.alias.text, update.sources[0].text) == ("t", "x", "FROM u JOIN v USING (k)")
    delete = one("WITH w AS (SELECT 1) DELETE FROM t USING u WHERE true")
    assert (delete.sources[0].text, delete.condition.text, delete.ctes.text) == (
        "USING u", "true", "WITH w AS (SELECT 1)",
    )  # fmt: skip


@pytest.mark.parametrize("text, snapshot, progress, as_of, up_to", [
    ("SUBSCRIBE t", True, False, None, None),
    ("SUBSCRIBE TO t WITH (SNAPSHOT = false, PROGRESS) AS OF 3 UP TO 5", False, True, "3", "5"),
    ("SUBSCRIBE (SELECT a FROM t) AS OF :e", True, False, ":e", None),
])  # fmt: skip
def test_subscribe_has_options_and_epochs(text, snapshot, progress, as_of, up_to):
    statement = one(text)
    epochs = [epoch and epoch.text for epoch in (statement.as_of, statement.up_to)]
    assert (statement.snapshot, statement.progress, *epochs) == (snapshot, progress, as_of, up_to)


def test_as_of_is_a_clause_and_of_may_be_a_label():
    assert one("SELECT a FROM t AS OF 3").as_of.text == "3"
    assert one("SELECT 1 AS of").as_of is None
    assert one("SELECT a AS of FROM t AS OF $1").as_of.text == "$1"


@pytest.mark.parametrize("text, kind", [
    ("BEGIN", "begin"), ("START TRANSACTION ISOLATION LEVEL SERIALIZABLE, READ WRITE", "begin"), ("COMMIT", "commit"),
    ("END WORK", "commit"), ("ROLLBACK", "rollback"), ("ABORT", "rollback"),
])  # fmt: skip
def test_transactions_have_synonyms(text, kind):
    assert one(text).kind == kind


def test_explain_show_copy_drop_and_truncate():
    assert one("EXPLAIN (ANALYZE, FORMAT json) SELECT 1").options == {"analyze": "true", "format": "json"}
    assert one("EXPLAIN VERBOSE (SELECT 1)").options == {"verbose": "true"}
    assert (one("SHOW INDEXES FROM t").what, one("SHOW INDEXES FROM t").of.text) == (("indexes",), "t")
    assert one("SHOW CREATE MATERIALIZED VIEW v").what == ("create", "materialized", "view")
    copy = one("COPY t (a, b) FROM 'x.csv' WITH (FORMAT csv, HEADER)")
    assert (copy.direction, copy.path, copy.options) == ("from", "x.csv", {"format": "csv", "header": "true"})
    assert one("COPY (SELECT 1) TO STDOUT CSV HEADER").query.text == "SELECT 1"
    drop = one("DROP MATERIALIZED VIEW IF EXISTS a, public.b CASCADE")
    assert (drop.kind, [n.text for n in drop.names], drop.cascade) == ("materialized view", ["a", "b"], True)
    assert one("TRUNCATE TABLE t RESTART IDENTITY").restart_identity


@pytest.mark.parametrize("text, name", [
    ("DECLARE c BINARY CURSOR FOR SELECT 1", "BINARY"), ("FETCH PRIOR FROM c", "PRIOR"),
        ("SET LOCAL x = 1", "SET LOCAL"),
    ("CREATE TABLE t (a INT REFERENCES u)", "FOREIGN KEY"), ("CREATE TABLE t (FOREIGN KEY (a) REFERENCES u)", "KEY"),
    ("CREATE TABLE t (a INT UNIQUE NULLS NOT DISTINCT)", "NULLS"), ("SELECT sum(a) OVER () FROM t", "window function"),
    ("SELECT a INTO b FROM t", "SELECT INTO"), ("SELECT * FROM t FOR UPDATE", "FOR UPDATE"),
    ("CREATE SEQUENCE s OWNED BY t", "OWNED"), ("SELECT a::xml FROM t", "type xml"), ("SELECT (ROW(1)).x", "a field"),
    ("SELECT * FROM t TABLESAMPLE system (1)", "TABLESAMPLE"), ("INSERT INTO t (a[1]) VALUES (1)", "syntax error"),
    ("LOCK TABLE t", "LOCK"), ("PREPARE TRANSACTION 'x'", "PREPARE"), ("CREATE TABLE t AS SELECT 1", "TABLE AS"),
])  # fmt: skip
def test_what_is_not_there_is_refused_by_name(text, name):
    with pytest.raises(kpg.ProgramError, match=name) as caught:
        parse_statements(text)
    assert caught.value.sqlstate in ("0A000", "42601")
    assert caught.value.line == 1 and "^" in caught.value.detail


def test_an_error_has_a_caret_under_its_token():
    with pytest.raises(kpg.ParseError) as caught:
        parse_statements("SELECT a\nFROM t\nWHERE a BETWEEN 1 2", name="script.sql")
    assert str(caught.value).splitlines() == [
        "script.sql:3:19: syntax error at or near '2'",
        "detail: 3 | WHERE a BETWEEN 1 2",
        "                              ^",
        "hint: Expected AND.",
    ]


def test_a_query_or_an_expression_is_a_whole_text():
    assert parse_query("SELECT 1").text == "SELECT 1"
    assert parse_expression("a + 1").text == "a + 1"
    for parse, text in ((parse_query, "SELECT 1; SELECT 2"), (parse_expression, "a b"), (parse_query, "")):
        with pytest.raises(kpg.ParseError):
            parse(text)
