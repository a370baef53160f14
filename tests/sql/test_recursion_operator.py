"""WITH RECURSIVE by the recursion operator: after each epoch, the rows of PostgreSQL and those of a loop."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kpg
from kpg.plan.node_traversal import dependencies_first
from kpg.plan.nodes import SaturatedNode
from kpg.plan.rule_loops import why_loops
from kpg.sql.bind.bind_statements import bind_query
from kpg.sql.lower.lower_query import lower_query
from kpg.sql.parse.statement_parser import parse_query
from kpg.sql.session.run_query import CatalogSources
from kpg.sql.session.sql_session import session_of
from tests.sql.truth.twins import Twins

TABLES = {"e": "src INT, dst INT, w INT", "n": "x TEXT, y TEXT NOT NULL", "s": "v BIGINT"}
RULES = [
    "r(a, b) AS (SELECT src, dst FROM e UNION SELECT r.a, e.dst FROM r JOIN e ON r.b = e.src) SELECT * FROM r",
    "r(a, b) AS (SELECT src, dst FROM e UNION SELECT e.src, r.b FROM e, r WHERE e.dst = r.a)"
    " SELECT a, count(*) FROM r GROUP BY a",
    "r(a) AS (SELECT v FROM s UNION SELECT e.dst FROM r JOIN e ON e.src = r.a AND e.w > 0) SELECT * FROM r",
    "r(a) AS (SELECT 1 UNION SELECT e.dst FROM r JOIN e ON e.src = r.a) SELECT a FROM r WHERE a IS NOT NULL",
    "r(a, b) AS (SELECT x, y FROM n UNION SELECT n.x, r.b FROM n JOIN r ON n.y = r.a WHERE n.x <> 'b') SELECT * FROM r",
    "r(a, b) AS (SELECT e.dst, f.dst FROM e JOIN e f USING (src) UNION SELECT e.dst, f.dst"
    " FROM r JOIN e ON e.src = r.a JOIN e f ON f.src = r.b) SELECT * FROM r",
    "r(a, b) AS (SELECT NULL::int, v::int FROM s UNION SELECT r.a, d.dst FROM (SELECT DISTINCT src, dst FROM e) d"
    " JOIN r ON r.b = d.src) SELECT * FROM r",
    "r(a, b) AS (SELECT v, v FROM s UNION SELECT r.a, e.dst FROM r JOIN e ON r.b = e.src JOIN s ON s.v = e.dst)"
    " SELECT * FROM r",
    "r(a, b, c) AS (SELECT src, dst, w FROM e UNION SELECT r.a, e.dst, r.c FROM r JOIN e ON r.b = e.src AND r.c = e.w)"
    " SELECT * FROM r",
    "r(a, b) AS (SELECT v, v FROM s UNION SELECT e.src, e.dst FROM r JOIN e ON r.b = e.src) SELECT * FROM r",
]  # fmt: skip
SETS = [  # by the rules of a loop
    "r(a, b) AS (SELECT src, dst FROM e UNION SELECT r.a, e.dst FROM r JOIN e ON r.b = e.src AND r.a < e.dst"
    " WHERE NOT EXISTS (SELECT 1 FROM s WHERE s.v = e.src)) SELECT * FROM r",
    "r(a, b) AS (SELECT src, dst FROM e UNION SELECT r.a, e.dst FROM r JOIN e ON r.b = e.src"
    " WHERE NOT EXISTS (SELECT 1 FROM e f WHERE f.src = r.a AND f.dst = r.b AND f.w = 1)) SELECT * FROM r",
    "r(a, b) AS (SELECT src, dst FROM e UNION (SELECT r.a, e.dst FROM r JOIN e ON r.b = e.src"
    " EXCEPT SELECT src, w FROM e)) SELECT * FROM r",
    "r(a, b) AS (SELECT src, dst FROM e UNION SELECT r.b, r.a FROM r WHERE r.a <> 2) SELECT * FROM r",
    "r(a, b) AS (SELECT src, w FROM e UNION SELECT r.a, e.dst FROM r JOIN e ON r.b = e.src AND r.a = r.b)"
    " SELECT * FROM r",
    "r(a, b) AS (SELECT src, dst FROM e UNION SELECT r.a, e.dst FROM r JOIN e ON r.b = e.src"
    " WHERE e.src IN (SELECT v FROM s) AND e.w IS NULL) SELECT * FROM r",
]  # fmt: skip
LOOPS = {
    "r(a) AS (SELECT 1 UNION SELECT a + 1 FROM r WHERE a < 5)": "computes values",
    "r(a) AS (SELECT 1 UNION SELECT a + 1 FROM r JOIN s ON s.v = r.a)": "computes values",
    "r(a) AS (SELECT 1.5 UNION SELECT v FROM s JOIN r ON r.a = s.v)": "more than comparisons",
    "r(a) AS (SELECT v FROM s UNION SELECT e.dst FROM r JOIN e ON r.a = e.src OR r.a = e.w)": "more than comparisons",
    "r(a) AS (SELECT 1 UNION ALL SELECT e.dst FROM r JOIN e ON e.src = r.a AND e.dst > e.src)": "UNION",
}
NODE = st.sampled_from(["0", "1", "2", "3", "NULL"])
NAME = st.sampled_from(["'a'", "'b'", "'c'"])
ROWS = {
    "e": st.tuples(NODE, NODE, st.sampled_from(["0", "1", "NULL"])),
    "n": st.tuples(st.one_of(NAME, st.just("NULL")), NAME),
    "s": st.tuples(NODE),
}


@st.composite
def changes(draw):
    """Return a statement that inserts or deletes rows of a table."""
    table = draw(st.sampled_from(list(TABLES)))
    rows = draw(st.lists(ROWS[table], min_size=1, max_size=6))
    if draw(st.booleans()):
        return f"INSERT INTO {table} VALUES " + ", ".join(f"({', '.join(row)})" for row in rows)
    columns = [column.split()[0] for column in TABLES[table].split(", ")]
    same = " AND ".join(
        f"{column} IS NOT DISTINCT FROM {value}" for column, value in zip(columns, rows[0], strict=True)
    )
    return f"DELETE FROM {table} WHERE {same}"


@pytest.fixture(scope="module")
def pair(postgres):
    with kpg.open() as db:
        yield Twins(postgres, db)


def loop_of(db, query):
    """Install a query with a loop for its recursion."""
    catalog = session_of(db).catalog
    bound = bind_query(parse_query(query), catalog)
    return lower_query(db, bound, CatalogSources(catalog), recursion="loop").output()


def uses_operator(db, query):
    root = db.query(query).node
    by_rules = list(why_loops(root, db.symbols).values())
    return by_rules == [None] or any(isinstance(node, SaturatedNode) for node in dependencies_first([root]))


def test_the_operator_has_the_rows_of_postgresql_and_of_the_loop(pair):
    @settings(max_examples=settings.default.max_examples // 4)
    @given(
        st.lists(changes(), max_size=3),
        st.sampled_from(RULES + SETS + SETS),
        st.lists(changes(), min_size=1, max_size=5),
    )
    def same(before, rule, schedule):
        query = f"WITH RECURSIVE {rule}"
        pair.reset()
        pair.create_tables(TABLES)
        pair.run_all(before)
        assert uses_operator(pair.db, query)
        pair.install("answer", query)
        loop = loop_of(pair.db, query)
        for statement in ["DELETE FROM e WHERE false", *schedule]:
            pair.run(statement)
            pair.compare_views()
            assert sorted(map(repr, loop.rows())) == sorted(map(repr, pair.db["answer"].rows()))
        loop.release()

    same()


@pytest.mark.parametrize("rule", LOOPS)
def test_explain_says_why_a_recursion_is_a_loop(rule):
    with kpg.open() as db:
        for name, columns in TABLES.items():
            db.sql(f"CREATE TABLE {name} ({columns})")
        query = f"WITH RECURSIVE {rule} SELECT * FROM r"
        assert not uses_operator(db, query)
        (line,) = [line for line in str(db.sql(f"EXPLAIN {query}")).splitlines() if "r: a loop, because" in line]
        assert LOOPS[rule] in line


def test_explain_names_the_operator_and_what_decides_for_it():
    query = "WITH RECURSIVE r(a) AS (SELECT 1 UNION SELECT e.dst FROM r JOIN e ON e.src = r.a) SELECT * FROM r"
    with kpg.open() as db:
        db.sql("CREATE TABLE e (src INT, dst INT)")
        assert "r: one operator" in str(db.sql(f"EXPLAIN {query}"))
        db.sql("INSERT INTO e SELECT n, n + 1 FROM generate_series(1000, 102000) AS n")
        assert "r: a loop, because it may follow few of 101,001 rows" in str(db.sql(f"EXPLAIN {query}"))
        db.sql("INSERT INTO e VALUES (1, 2), (2, 3)")
        assert db.sql(query).rows() == [(1,), (2,), (3,)]
    with kpg.open(workers=2) as db:
        db.sql("CREATE TABLE e (src INT, dst INT); INSERT INTO e VALUES (1, 2)")
        assert uses_operator(db, query) and db.sql(query).rows() == [(1,), (2,)]


def test_a_row_that_fails_below_the_operator_fails_the_query():
    with kpg.open() as db:
        db.sql("CREATE TABLE e (src INT, dst INT); INSERT INTO e VALUES (1, 2), (2, 0), (0, 5)")
        db.sql(
            "CREATE MATERIALIZED VIEW v AS WITH RECURSIVE r(a) AS (SELECT 1 UNION SELECT d.b FROM r JOIN"
            " (SELECT src AS a, 6 / dst AS b FROM e) d ON d.a = r.a) SELECT * FROM r"
        )
        with pytest.raises(kpg.DataError, match="division by zero"):
            db.sql("SELECT * FROM v")
        db.sql("DELETE FROM e WHERE dst = 0")
        assert db.sql("SELECT * FROM v").rows() == [(1,), (3,)]
