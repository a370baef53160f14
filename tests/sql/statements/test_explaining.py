"""EXPLAIN tells what a plan reads, shares and would keep, computes nothing unless asked, and leaves nothing behind."""

import pytest

import kpg

QUERY = "SELECT o.who, sum(o.amount) FROM orders o JOIN people p ON p.name = o.who WHERE o.amount > 1 GROUP BY o.who"


@pytest.fixture
def db():
    with kpg.open() as db:
        db.sql(
            "CREATE TABLE orders (id INT PRIMARY KEY, who TEXT, amount INT); CREATE TABLE people (name TEXT, c TEXT)"
        )
        db.sql("INSERT INTO orders VALUES (1, 'ann', 5), (2, 'bob', 1); INSERT INTO people VALUES ('ann', 'x')")
        yield db


def plan(db, statement):
    return [line for (line,) in db.sql(statement).rows()]


def arrangements(db, statement):
    """Return what EXPLAIN says of each arrangement, by its name."""
    lines = plan(db, statement)
    lines = lines[lines.index("Arrangements") + 1 :]
    lines = lines[: lines.index("")] if "" in lines else lines
    pairs = [line.strip().split(")  ", 1) for line in lines if ")  " in line]
    return {name: says.strip() for name, says in pairs}


def installed(db):
    return sorted(dataflow.name for dataflow in db.worker.dataflows.values())


def test_it_shows_the_algebra_after_the_rewrites(db):
    text = "\n".join(plan(db, "EXPLAIN SELECT who FROM (SELECT * FROM orders) AS o WHERE amount > 1"))
    assert "Scan orders(who, amount)" in text  # the column that is not read is gone


def test_an_index_is_new_until_something_else_has_it(db):
    before = arrangements(db, f"EXPLAIN {QUERY}")
    assert "new" in before.values() and not any("shared with" in says for says in before.values())
    db.sql("CREATE INDEX ON people (name)")
    db.sql("CREATE MATERIALIZED VIEW towns AS SELECT o.id, p.c FROM orders o JOIN people p ON p.name = o.who")
    after = arrangements(db, f"EXPLAIN {QUERY}")
    (shared,) = [says for name, says in after.items() if name.startswith("people by name")]
    assert shared.startswith("shared with towns")
    assert any(says == "new" for says in after.values())


def test_a_view_is_shared_with_its_readers(db):
    db.sql("CREATE MATERIALIZED VIEW totals AS SELECT who, sum(amount) AS s FROM orders GROUP BY who")
    db.sql("CREATE MATERIALIZED VIEW large AS SELECT who FROM totals WHERE s > 1")
    says = arrangements(db, "EXPLAIN SELECT count(*) FROM totals")
    (shared,) = [text for name, text in says.items() if name.startswith("totals by")]
    assert shared.startswith("shared with totals") and "large" in shared


def test_a_materialized_view_has_rows_and_bytes(db):
    db.sql("CREATE MATERIALIZED VIEW totals AS SELECT who, sum(amount) AS s FROM orders GROUP BY who")
    says = arrangements(db, "EXPLAIN MATERIALIZED VIEW totals")
    (own,) = [text for name, text in says.items() if name.startswith("totals by")]
    assert "2 rows" in own and "bytes" in own
    assert any("orders" in name and "2 rows" in text for name, text in says.items())
    with pytest.raises(kpg.UndefinedName):
        db.sql("EXPLAIN MATERIALIZED VIEW nothing")


def test_analyze_computes_the_answer_and_plain_explain_does_not(db):
    lines = plan(db, f"EXPLAIN ANALYZE {QUERY}")
    assert lines[-1] == "Answer: 1 row"
    steps = db.worker.steps
    plan(db, f"EXPLAIN {QUERY}")
    assert db.worker.steps == steps


@pytest.mark.parametrize("options", ["", "ANALYZE", "VERBOSE", "(ANALYZE, VERBOSE)"])
def test_it_leaves_nothing_behind(db, options):
    before, epoch = installed(db), db.epoch
    plan(db, f"EXPLAIN {options} {QUERY}")
    plan(db, f"EXPLAIN {options} CREATE MATERIALIZED VIEW v AS {QUERY}")
    assert (installed(db), db.epoch) == (before, epoch)
    assert "v" not in db.outputs


def test_verbose_shows_the_operators(db):
    assert any("operators" in line for line in plan(db, f"EXPLAIN VERBOSE {QUERY}"))


def test_what_cannot_be_explained_is_refused(db):
    for statement in ("EXPLAIN DELETE FROM orders", "EXPLAIN (FORMAT json) SELECT 1"):
        with pytest.raises(kpg.NotSupported):
            db.sql(statement)
    assert len(db.sql("TABLE orders")) == 2


THREE = """
    SELECT c.name, r.name FROM items i, orders o, customers c, regions r WHERE i.o = o.id AND o.c = c.id AND c.r = r.id
"""


def with_three_joins(db):
    for name, columns in {"regions": "name TEXT", "customers": "r INT, name TEXT", "orders": "c INT"}.items():
        db.sql(f"CREATE TABLE {name} (id INT PRIMARY KEY, {columns})")
    db.sql("CREATE TABLE items (o INT, n INT) WITH (retain = none)")
    db.sql("INSERT INTO regions VALUES (1, 'north'); INSERT INTO customers VALUES (1, 1, 'ann'), (2, 1, 'bob')")
    db.sql("INSERT INTO customers SELECT x, 1, 'cid' FROM generate_series(3, 3000) AS g(x)")
    db.sql("INSERT INTO orders SELECT x, 1 + x % 3000 FROM generate_series(1, 6000) AS g(x)")


def test_it_shows_the_order_of_joins_and_what_each_kind_of_plan_keeps():
    with kpg.open() as db:
        with_three_joins(db)
        lines = plan(db, f"EXPLAIN {THREE}")
        at = lines.index("Joins")
        assert lines[at + 1] == "  binary: ((items ⋈ orders) ⋈ customers) ⋈ regions"
        assert "keeps about" in lines[at + 2] and "delta queries would keep about" in lines[at + 2]
        db.sql("SET join_plans = delta")
        lines = plan(db, f"EXPLAIN {THREE}")
        at = lines.index("Joins")
        assert lines[at + 1] == "  delta: items → orders → customers → regions"
        assert [line.split()[0] for line in lines[at + 2 : at + 5]] == ["orders", "customers", "regions"]
        db.sql("RESET join_plans")
        assert "  binary: ((items ⋈ orders) ⋈ customers) ⋈ regions" in plan(db, f"EXPLAIN {THREE}")


def test_a_view_keeps_the_plan_that_it_was_installed_with():
    with kpg.open() as db:
        with_three_joins(db)
        db.sql(f"SET join_plans TO delta; CREATE MATERIALIZED VIEW v (a, b) AS {THREE}; RESET ALL")
        assert any(line.startswith("  delta: ") for line in plan(db, "EXPLAIN MATERIALIZED VIEW v"))
        db.sql("INSERT INTO items VALUES (3000, 1), (6000, 2), (9000, 9), (1, 1)")
        assert sorted(db.sql("SELECT a, count(*) FROM v GROUP BY a").rows()) == [("ann", 2), ("bob", 1)]


def test_tables_are_shared_by_their_keys_unless_the_setting_says_no():
    with kpg.open() as db:
        with_three_joins(db)
        shared = arrangements(db, f"EXPLAIN {THREE}")
        own = [name for name, says in shared.items() if "shared" in says]
        assert [name.split()[0] for name in own] == ["regions", "customers", "orders"]
        db.sql("SET share_arrangements = off")
        copied = arrangements(db, f"EXPLAIN {THREE}")
        joined = "\n".join(plan(db, f"EXPLAIN {THREE}"))
        assert "((items ⋈ orders) ⋈ customers) ⋈ regions" in joined  # the same plan, over copies
        assert sum(says == "new" for says in copied.values()) == sum(says == "new" for says in shared.values()) + 3


def test_settings_are_shown_changed_and_refused():
    with kpg.open() as db:
        assert db.sql("SHOW join_plans").value() == "auto"
        db.sql("SET SESSION join_plans = 'binary'")
        assert db.sql("SHOW join_plans").value() == "binary"
        db.sql("SET join_plans TO DEFAULT; SET share_arrangements = false")
        assert dict(db.sql("SHOW ALL").rows())["join_plans"] == "auto"
        assert db.sql("SHOW share_arrangements").value() == "off"
        db.sql("SET client_encoding = 'utf8'")  # as drivers do
        for statement, sqlstate in (
            ("SET join_plans = nested_loops", "22023"),
            ("SET no_such_setting = 1", "42704"),
            ("SET timezone = 'Europe/Oslo'", "0A000"),
            ("SET LOCAL join_plans = delta", "0A000"),
            ("SET join_plans", "42601"),
        ):
            with pytest.raises(kpg.KpgError) as raised:
                db.sql(statement)
            assert raised.value.sqlstate == sqlstate, statement


def test_the_shares_of_all_workers_are_added_up():
    texts = []
    for options in ({}, {"workers": 2}):
        with kpg.open(**options) as db:
            db.sql("CREATE TABLE t (a INT PRIMARY KEY); INSERT INTO t SELECT * FROM generate_series(1, 100)")
            db.sql("CREATE MATERIALIZED VIEW v AS SELECT a % 10 AS b, count(*) AS n FROM t GROUP BY b")
            texts.append([plan(db, "EXPLAIN SELECT a FROM t WHERE a > 5"), plan(db, "EXPLAIN MATERIALIZED VIEW v")])
            assert "worker 1" not in plan(db, "EXPLAIN VERBOSE SELECT a FROM t")
    without_bytes = [[[line.partition(" rows,")[0] for line in lines] for lines in text] for text in texts]
    assert without_bytes[0] == without_bytes[1]
    assert any("100 rows" in line for line in texts[1][1])


def test_a_query_from_constants_is_explained_on_two_workers():
    query = "WITH RECURSIVE r(a) AS (SELECT 1 UNION SELECT e.dst FROM r JOIN e ON e.src = r.a) SELECT * FROM r"
    with kpg.open(workers=2) as db:
        db.sql("CREATE TABLE e (src INT, dst INT); INSERT INTO e VALUES (1, 2)")
        assert "r: one operator" in str(db.sql(f"EXPLAIN {query}"))
        assert db.sql(query).rows() == [(1,), (2,)]
