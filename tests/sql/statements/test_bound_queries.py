"""A text that is executed again is bound and rewritten anew exactly when something that it names has changed."""

import pytest

import kpg
from kpg.sql.bind import bind_statements
from kpg.sql.rewrites import rewritten_queries
from kpg.sql.session import bound_queries


@pytest.fixture
def db():
    with kpg.open() as db:
        db.sql("CREATE TABLE t (id INT PRIMARY KEY, a TEXT); INSERT INTO t VALUES (1, 'x'), (2, 'y'), (3, null)")
        yield db


@pytest.fixture
def calls(monkeypatch):
    """Count the bindings and rewrites."""
    counted = {"bound": 0, "rewritten": 0}

    def bind_query(*arguments, **options):
        counted["bound"] += 1
        return bind_statements.bind_query(*arguments, **options)

    rewrite = rewritten_queries.rewrite_query

    def rewrite_query(query, facts):
        counted["rewritten"] += 1
        return rewrite(query, facts)

    monkeypatch.setattr(bound_queries, "bind_query", bind_query)
    monkeypatch.setattr(rewritten_queries, "rewrite_query", rewrite_query)
    return counted


def test_a_repeated_text_is_bound_and_rewritten_once(db, calls):
    for _ in range(3):
        assert db.sql("SELECT count(*) FROM t").value() == 3
        db.sql("CREATE MATERIALIZED VIEW v AS SELECT a, count(*) AS n FROM t GROUP BY a")
        assert len(db.sql("TABLE v")) == 3
        db.sql("DROP MATERIALIZED VIEW v")
    assert calls == {"bound": 3, "rewritten": 3}


def test_parameters_count_with_their_types(db, calls):
    for value, rows in ((1, 1), (1, 1), ("1", 1), (True, None), (2.5, 0), (2, 1)):
        if rows is None:
            with pytest.raises(kpg.KpgError):
                db.sql("SELECT id FROM t WHERE id = :key", key=value)
        else:
            assert len(db.sql("SELECT id FROM t WHERE id = :key", key=value)) == rows
    assert calls["bound"] == 5


def test_what_a_name_stands_for_decides(db):
    text = "SELECT * FROM v ORDER BY 1"
    db.sql("CREATE VIEW v AS SELECT id FROM t")
    assert db.sql(text).rows() == [(1,), (2,), (3,)]
    db.sql("CREATE OR REPLACE VIEW v AS SELECT id FROM t WHERE id > 1")
    assert db.sql(text).rows() == [(2,), (3,)]
    db.sql("DROP VIEW v; CREATE MATERIALIZED VIEW v AS SELECT a FROM t WHERE a IS NOT NULL")
    assert db.sql(text).rows() == [("x",), ("y",)]
    db.sql("DROP MATERIALIZED VIEW v")
    with pytest.raises(kpg.UndefinedName):
        db.sql(text)
    db.sql("CREATE TABLE v (b INT); INSERT INTO v VALUES (7)")
    assert db.sql(text).rows() == [(7,)]


def test_facts_about_a_table_decide_about_its_rewrites(db):
    """NOT IN is simpler where no null can be: the table of the same name may hold one later."""
    text = "SELECT id FROM t WHERE id NOT IN (SELECT b FROM u) ORDER BY 1"
    db.sql("CREATE TABLE u (b INT NOT NULL); INSERT INTO u VALUES (2)")
    assert db.sql(text).rows() == [(1,), (3,)]
    db.sql("DROP TABLE u; CREATE TABLE u (b INT); INSERT INTO u VALUES (2), (null)")
    assert db.sql(text).rows() == []


def test_only_the_last_queries_are_kept(db):
    for number in range(bound_queries.MAX_KEPT_QUERIES + 50):
        db.sql(f"SELECT {number}")
    (kept,) = [queries for catalog, queries in bound_queries._kept.items() if catalog.db is db]
    assert len(kept) == bound_queries.MAX_KEPT_QUERIES
