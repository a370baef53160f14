"""WITH RECURSIVE by the recursion operator: after each epoch, the rows of PostgreSQL and those of a loop."""

from random import Random

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
NOT_NULL = {
    "e": "src INT NOT NULL, dst INT NOT NULL, w INT NOT NULL",
    "n": "x TEXT NOT NULL, y TEXT NOT NULL",
    "s": "v BIGINT NOT NULL",
}
MIXED = {"e": "src INT NOT NULL, dst INT NOT NULL, w INT", "n": "x TEXT NOT NULL, y TEXT NOT NULL", "s": "v BIGINT"}
VARIANTS = {"null": TABLES, "not null": NOT_NULL, "mixed": MIXED}
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
    "r(a, b) AS (SELECT src, dst FROM e UNION SELECT r.a, e.dst FROM r JOIN e ON r.b = e.src"
    " WHERE r.a IN (SELECT v FROM s)) SELECT * FROM r",
    "r(a, b) AS (SELECT src, dst FROM e UNION SELECT r.a, e.dst FROM r JOIN e ON r.b = e.src"
    " WHERE EXISTS (SELECT 1 FROM s WHERE s.v = r.a) AND NOT EXISTS (SELECT 1 FROM s WHERE s.v = e.dst))"
    " SELECT * FROM r",
    "r(a, b) AS (SELECT src, w FROM e UNION SELECT 1, e.dst FROM r JOIN e ON r.b = e.src) SELECT * FROM r",
    "r(a, b) AS (SELECT 'x', v::int FROM s UNION SELECT 'y', e.dst FROM r JOIN e ON r.b = e.src) SELECT * FROM r",
    "r(a, b) AS (SELECT src, dst FROM e UNION SELECT NULL, e.dst FROM r JOIN e ON r.b = e.src AND e.w > 0)"
    " SELECT * FROM r",
    "r(a, b) AS (SELECT w, src FROM e UNION SELECT e.dst, r.b FROM r JOIN e ON r.a = e.src AND e.src <> r.b)"
    " SELECT * FROM r",
    "r(a, b) AS (SELECT src, w FROM e UNION SELECT r.a, e.dst FROM r LEFT JOIN e ON r.b = e.src) SELECT * FROM r",
]  # fmt: skip
NOT_IN = [  # over columns that are never null
    "r(a, b) AS (SELECT src, dst FROM e UNION SELECT r.a, e.dst FROM r JOIN e ON r.b = e.src"
    " WHERE e.dst NOT IN (SELECT v FROM s)) SELECT * FROM r",
    "r(a, b) AS (SELECT src, dst FROM e UNION SELECT r.a, e.dst FROM r JOIN e ON r.b = e.src"
    " WHERE r.a NOT IN (SELECT v FROM s)) SELECT * FROM r",
    "r(a, b) AS (SELECT src, dst FROM e UNION SELECT w, 1 FROM e UNION SELECT r.a, e.dst FROM r JOIN e ON r.b = e.src"
    " WHERE r.b NOT IN (SELECT v FROM s)) SELECT * FROM r",
]
QUERIES = {"null": RULES + SETS + SETS, "not null": RULES + SETS + SETS + NOT_IN, "mixed": RULES + SETS + SETS}
LOOPS = {
    "r(a) AS (SELECT 1 UNION SELECT a + 1 FROM r WHERE a < 5)": "computes values",
    "r(a) AS (SELECT 1 UNION SELECT a + 1 FROM r JOIN s ON s.v = r.a)": "computes values",
    "r(a) AS (SELECT 1.5 UNION SELECT v FROM s JOIN r ON r.a = s.v)": "more than comparisons",
    "r(a) AS (SELECT v FROM s UNION SELECT e.dst FROM r JOIN e ON r.a = e.src OR r.a = e.w)": "more than comparisons",
    "r(a) AS (SELECT v FROM s UNION SELECT e.dst FROM r JOIN e ON r.a = e.src AND e.src NOT IN (SELECT w FROM e))": (
        "more than comparisons"
    ),
    "r(a, b) AS (SELECT 1, dst FROM e UNION SELECT r.a, r.a FROM r WHERE r.b <> 2)": "never null",
    "r(a) AS (SELECT 1 UNION ALL SELECT e.dst FROM r JOIN e ON e.src = r.a AND e.dst > e.src)": "UNION",
}
NAMES = ["'a'", "'b'", "'c'"]
VALUES = {
    "src": ["0", "1", "2", "3"],
    "dst": ["0", "1", "2", "3"],
    "w": ["0", "1"],
    "x": NAMES,
    "y": NAMES,
    "v": ["0", "1", "2", "3"],
}


def rows_of(columns):
    """Return random rows of a table."""
    parts = [column.split(maxsplit=1) for column in columns.split(", ")]
    return st.tuples(*[st.sampled_from(VALUES[name] + ["NULL"] * ("NOT NULL" not in type_)) for name, type_ in parts])


@st.composite
def changes(draw, tables):
    """Return a statement that inserts or deletes rows of a table."""
    table = draw(st.sampled_from(list(tables)))
    rows = draw(st.lists(rows_of(tables[table]), min_size=1, max_size=6))
    if draw(st.booleans()):
        return f"INSERT INTO {table} VALUES " + ", ".join(f"({', '.join(row)})" for row in rows)
    columns = [column.split()[0] for column in tables[table].split(", ")]
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


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_operator_has_the_rows_of_postgresql_and_of_the_loop(pair, variant):
    tables = VARIANTS[variant]

    @settings(max_examples=settings.default.max_examples // 4)
    @given(
        st.lists(changes(tables), max_size=3),
        st.sampled_from(QUERIES[variant]),
        st.lists(changes(tables), min_size=1, max_size=5),
    )
    def same(before, rule, schedule):
        query = f"WITH RECURSIVE {rule}"
        pair.reset()
        pair.create_tables(tables)
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


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_shape_runs_in_the_operator(variant):
    with kpg.open() as db:
        for name, columns in VARIANTS[variant].items():
            db.sql(f"CREATE TABLE {name} ({columns})")
        assert not [rule for rule in QUERIES[variant] if not uses_operator(db, f"WITH RECURSIVE {rule}")]


def test_a_column_is_null_in_no_round_if_it_is_in_neither_term():
    rule = (
        "r(a, b, c, d) AS (SELECT src, dst, dst, w FROM e UNION SELECT r.b, e.dst, r.d, r.d"
        " FROM r JOIN e ON r.a = e.src WHERE r.a <> 3)"
    )
    with kpg.open() as db:
        for name, columns in MIXED.items():
            db.sql(f"CREATE TABLE {name} ({columns})")
        schema = db.query(f"WITH RECURSIVE {rule} SELECT * FROM r").schema
        assert [str(type_) for type_ in schema.types] == ["int64", "int64", "int64?", "int64?"]
        turned = rule.replace("r.b, e.dst, r.d, r.d", "r.b, r.c, r.d, e.dst")
        schema = db.query(f"WITH RECURSIVE {turned} SELECT * FROM r").schema
        assert all(type_.nullable for type_ in schema.types)  # null moves from d to a in three rounds
        assert uses_operator(db, f"WITH RECURSIVE {turned} SELECT * FROM r")


def test_a_value_that_stands_for_null_fails_where_a_column_may_be_null():
    """A column of integers of Python may hold -2**63, which is encoded as null is."""
    rule = "r(a) AS (SELECT v FROM s UNION SELECT e.dst FROM r JOIN e ON e.src = r.a AND e.dst <> 5) SELECT * FROM r"
    with kpg.open() as db:
        edges, starts = db.input("e", src=int, dst=int), db.input("s", v="int64?")
        assert uses_operator(db, f"WITH RECURSIVE {rule}")
        answer = db.query(f"WITH RECURSIVE {rule}").output()
        edges.insert([(1, 2), (2, -(2**63))])
        starts.insert([(1,), (None,)])
        db.advance()
        with pytest.raises(kpg.DataError, match="cannot hold -2"):
            answer.rows()
        edges.remove([(2, -(2**63))])
        db.advance()
        assert sorted(answer.rows(), key=str) == [(1,), (2,), (None,)]


@pytest.mark.parametrize("variant", VARIANTS)
def test_two_workers_have_the_rows_of_the_loop(variant):
    """Random rows of both tables come and go."""
    random, tables = Random(variant), {name: VARIANTS[variant][name] for name in ("e", "s")}
    rules = [rule for rule in SETS + NOT_IN * (variant == "not null") if "FROM n" not in rule]
    with kpg.open(workers=2) as db:
        for name, columns in tables.items():
            db.sql(f"CREATE TABLE {name} ({columns})")
        queries = [f"WITH RECURSIVE {rule}" for rule in rules]
        pairs = [(db.query(query).output(), loop_of(db, query)) for query in queries]
        for number in range(8):
            for name, columns in tables.items():
                parts = [column.split(maxsplit=1) for column in columns.split(", ")]
                for _ in range(4 if name == "e" else 1):
                    values = [random.choice(VALUES[of] + ["NULL"] * ("NOT" not in type_)) for of, type_ in parts]
                    same = " AND ".join(
                        f"{of} IS NOT DISTINCT FROM {value}" for (of, _), value in zip(parts, values, strict=True)
                    )
                    db.sql(
                        f"DELETE FROM {name} WHERE {same}"
                        if number % 3 == 2
                        else f"INSERT INTO {name} VALUES ({', '.join(values)})"
                    )
            for query, (operator, loop) in zip(queries, pairs, strict=True):
                assert sorted(map(repr, operator.rows())) == sorted(map(repr, loop.rows())), query


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
