"""INSERT, UPDATE and DELETE as queries for the rows that they concern."""

import pytest

import kpg
from kpg.sql.bind.bind_statements import NamedColumns, bind_delete, bind_insert, bind_scalar, bind_update
from kpg.sql.parse.statement_parser import parse_expression, parse_statements
from kpg.sql.relational.scalars import Column
from kpg.sql.relational.show_relations import show_relation, show_scalar
from kpg.sql.sql_types import BIGINT, INTEGER
from tests.sql.bind.table_catalog import TableCatalog

BINDERS = {"INSERT": bind_insert, "UPDATE": bind_update, "DELETE": bind_delete}


@pytest.fixture(scope="module")
def catalog():
    return TableCatalog(
        "CREATE TABLE t (id BIGINT GENERATED ALWAYS AS IDENTITY, a INT PRIMARY KEY DEFAULT 7, b TEXT, n NUMERIC(8,2))",
        "CREATE TABLE s (a INT, x BIGINT)",
        "CREATE VIEW v AS SELECT a FROM s",
    )


def bound(catalog, text, **parameters):
    (statement,) = parse_statements(text)
    word = next(word for word in BINDERS if word in text.upper())
    return BINDERS[word](statement, catalog, parameters)


def test_insert_fills_in_defaults_and_leaves_identities_to_the_caller(catalog):
    insert = bound(catalog, "INSERT INTO t (b, a) VALUES ('x', 1), (NULL, DEFAULT)")
    assert [column.name for column in insert.rows.columns] == ["id", "a", "b", "n"]
    assert insert.given == (False, True, True, True)
    assert "('x', 1), (null, 7)" in show_relation(insert.rows)
    assert show_relation(insert.rows).startswith("Project id=null, a'2=a, b'2=b, n=null\n")


def test_insert_casts_as_assignments_do(catalog):
    insert = bound(catalog, "INSERT INTO t (a, n) SELECT x, '1.5' FROM s")
    assert "a'2=x'2::integer, n=1.50" in show_relation(insert.rows)


def test_a_conflict_sees_the_present_and_the_new_row(catalog):
    insert = bound(
        catalog, "INSERT INTO t (a, n) VALUES (1, 2) ON CONFLICT (a) DO UPDATE SET n = t.n + excluded.n WHERE t.n > 1"
    )
    conflict = insert.on_conflict
    assert conflict.target == ("a",) and show_scalar(conflict.condition) == "n > 1"
    assert [show_scalar(value) for value in conflict.row][:3] == ["id", "a", "b"]
    assert bound(catalog, "INSERT INTO t (a) VALUES (1) ON CONFLICT DO NOTHING").on_conflict.row is None


def test_returning_refers_to_the_written_row(catalog):
    insert = bound(catalog, "INSERT INTO t (a) VALUES (1) RETURNING *, a + 1 AS next")
    assert insert.returning.names == ("id", "a", "b", "n", "next")
    assert show_scalar(insert.returning.values[-1]) == "a + 1"


def test_update_has_old_and_new_rows_of_all_matches(catalog):
    update = bound(catalog, "UPDATE t SET n = n + s.x, b = DEFAULT FROM s WHERE s.a = t.a RETURNING t.n, x")
    assert [column.name for column in update.old] == [column.name for column in update.new] == ["id", "a", "b", "n"]
    assert update.rows.columns == (*update.old, *update.new, *update.rows.columns[8:])
    assert update.returning == ("n", "x")


def test_delete_has_the_rows_that_match(catalog):
    delete = bound(
        catalog, "WITH w AS (SELECT max(a) AS a FROM s) DELETE FROM t AS q USING w WHERE q.a = w.a RETURNING q.b"
    )
    assert [column.name for column in delete.rows.columns] == ["id", "a", "b", "n", "b"]
    assert delete.returning == ("b",)


@pytest.mark.parametrize("text, sqlstate", [
    ("INSERT INTO t (a, a) VALUES (1, 2)", "42701"), ("INSERT INTO t (a) VALUES (1, 2)", "42601"),
    ("INSERT INTO t (a, b) VALUES (1)", "42601"), ("INSERT INTO t (q) VALUES (1)", "42703"),
    ("INSERT INTO t (a) VALUES (true)", "42804"), ("INSERT INTO t (a) VALUES ('x')", "22P02"),
    ("INSERT INTO t (id, a) VALUES (1, 2)", "428C9"), ("INSERT INTO v VALUES (1)", "42809"),
    ("INSERT INTO nothing VALUES (1)", "42P01"), ("UPDATE t SET a = 1, a = 2", "42601"),
    ("UPDATE t SET q = 1", "42703"), ("UPDATE t SET a = count(*)", "42803"), ("UPDATE t SET id = 1", "428C9"),
    ("UPDATE t SET a = t2.a FROM t AS t2", None), ("UPDATE t SET a = t.a FROM t", "42712"),
    ("DELETE FROM t WHERE a", "42804"), ("INSERT INTO t (a) VALUES (1) ON CONFLICT (b) DO NOTHING", "42P10"),
    ("INSERT INTO t (a) VALUES (1) ON CONFLICT (a) DO UPDATE SET n = n + 1", "42702"),
    ("INSERT INTO t (a) VALUES (1) RETURNING excluded.a", "42P01"),
])  # fmt: skip
def test_wrong_changes_have_the_sqlstate_of_postgresql(catalog, postgres, text, sqlstate):
    postgres.reset()
    postgres.rows(
        "CREATE TABLE t (id BIGINT GENERATED ALWAYS AS IDENTITY, a INT PRIMARY KEY DEFAULT 7, b TEXT, n NUMERIC(8,2))"
    )
    postgres.rows("CREATE TABLE s (a INT, x BIGINT)")
    refusal = postgres.checked(text)
    if "INTO v" not in text:
        assert (refusal and refusal.sqlstate) == sqlstate
    if sqlstate is None:
        assert bound(catalog, text) is not None
        return
    with pytest.raises(kpg.ProgramError) as caught:
        bound(catalog, text)
    assert caught.value.sqlstate == sqlstate and "^" in caught.value.detail


def test_single_expressions_have_the_names_of_their_tables(catalog):
    columns = (Column("a", INTEGER), Column("x", BIGINT))
    tables = [NamedColumns("t", columns)]
    assert show_scalar(bind_scalar(parse_expression("t.a + x > 1"), tables, catalog, clause="check")) == "(a + x) > 1"
    assert bind_scalar(parse_expression("'5'"), (), catalog, target=BIGINT, clause="default").type == BIGINT
    for text, clause in (("a", "default"), ("(SELECT 1)", "check"), ("count(*)", "check"), ("q", "check")):
        with pytest.raises(kpg.ProgramError):
            bind_scalar(parse_expression(text), tables, catalog, clause=clause)


def test_a_numeric_column_without_digits_takes_numbers_of_any_scale():
    catalog = TableCatalog("CREATE TABLE p (n NUMERIC)")
    for text in (
        "INSERT INTO p VALUES (1.5), ('2.25'), (3)",
        "INSERT INTO p SELECT n * 1.5 FROM p",
        "UPDATE p SET n = n / 3",
    ):
        assert bound(catalog, text).rows.columns[-1].type.scale == 9
