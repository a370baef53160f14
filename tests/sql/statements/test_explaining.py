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


def test_each_worker_describes_its_share():
    with kpg.open(workers=2) as db:
        db.sql("CREATE TABLE t (a INT PRIMARY KEY); CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM t")
        for statement in ("EXPLAIN SELECT a FROM t", "EXPLAIN MATERIALIZED VIEW v"):
            lines = plan(db, statement)
            assert "worker 0" in lines and "worker 1" in lines
