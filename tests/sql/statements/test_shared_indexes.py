"""Queries share the indexes of tables: by keys, by the first columns of keys, and by columns that a query asked for."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kpg
from kpg.plan.render import Renderer

SUPPLIES = "CREATE TABLE supplies (part INT, supplier INT, cost INT, PRIMARY KEY (part, supplier))"
PARTS = "CREATE TABLE parts (part INT PRIMARY KEY, name TEXT)"
BY_PART = "SELECT p.name, s.supplier, s.cost FROM parts p JOIN supplies s ON s.part = p.part"
BY_SUPPLIER = "SELECT a.part, b.part, b.cost FROM supplies a JOIN supplies b ON a.supplier = b.supplier"
SMALL = st.integers(0, 3)
PAIRS = st.dictionaries(st.tuples(SMALL, SMALL), SMALL, max_size=8)
NAMES = st.dictionaries(SMALL, st.sampled_from("xy"), max_size=4)


def names(db):
    return [entry["name"] for entry in db.describe()["arrangements"] if not entry["name"].startswith("errors of")]


def replace_rows(db, table, rows):
    """Make a table hold exactly some rows, by one transaction."""
    before, now = db.sql(f"TABLE {table}").rows(), rows
    source = db[table]
    source.remove([row for row in before if row not in now])
    source.insert([row for row in now if row not in before])
    db.advance()


def expected(supplies, parts):
    by_part = [(parts[part], supplier, cost) for (part, supplier), cost in supplies.items() if part in parts]
    pairs = [((a, b), c) for (a, b), c in supplies.items()]
    by_supplier = [(a, b, cost) for (a, s), _ in pairs for (b, t), cost in pairs if s == t]
    return Counter(by_part), Counter(by_supplier)


@pytest.mark.parametrize("workers", [1, 2])
@settings(max_examples=15)
@given(epochs=st.lists(st.tuples(PAIRS, NAMES), min_size=1, max_size=4), late=st.integers(0, 3))
def test_joins_by_part_of_a_key_follow_their_tables(databases, workers, epochs, late):
    """One query is there from the beginning, and the others arrive after some changes."""
    db = databases(workers)
    try:
        db.sql(f"{SUPPLIES}; {PARTS}; CREATE MATERIALIZED VIEW early AS {BY_PART}")
        installed = False
        for number, (supplies, parts) in enumerate(epochs):
            if number >= min(late, len(epochs) - 1) and not installed:
                db.sql(f"CREATE MATERIALIZED VIEW late AS {BY_PART}")
                db.sql(f"CREATE MATERIALIZED VIEW pairs (a, b, c) AS {BY_SUPPLIER}")
                installed = True
            replace_rows(db, "supplies", [(*pair, cost) for pair, cost in supplies.items()])
            replace_rows(db, "parts", list(parts.items()))
        by_part, by_supplier = expected(*epochs[-1])
        for view, answer in {"early": by_part, "late": by_part, "pairs": by_supplier}.items():
            assert Counter(db.sql(f"TABLE {view}").rows()) == answer, view
    finally:
        db.sql("DROP TABLE supplies CASCADE; DROP TABLE parts CASCADE")


@pytest.fixture(scope="module")
def databases():
    """Return a function that returns a db on some workers; each is opened once."""
    opened = {}

    def database(workers):
        if workers not in opened:
            opened[workers] = kpg.open(workers=workers)
        return opened[workers]

    yield database
    for db in opened.values():
        db.close()


def test_a_join_by_the_first_columns_of_a_key_builds_no_index():
    with kpg.open() as db:
        db.sql(f"{SUPPLIES}; {PARTS}")
        before = names(db)
        db.sql(f"CREATE MATERIALIZED VIEW v AS {BY_PART}")
        new = [name for name in names(db) if name not in before and not name.startswith(("v by", "output"))]
        assert set(new) <= {"supplies by part, supplier", "parts by part"}


def test_an_index_that_a_query_asked_for_serves_others_and_ends_with_the_last():
    with kpg.open() as db:
        db.sql(f"{SUPPLIES}; INSERT INTO supplies VALUES (1, 1, 5), (2, 1, 6), (3, 2, 7)")
        db.sql(f"CREATE MATERIALIZED VIEW first (a, b, c) AS {BY_SUPPLIER}")
        assert names(db).count("supplies by supplier") == 1
        db.sql(f"CREATE MATERIALIZED VIEW second (a, b, c) AS {BY_SUPPLIER} WHERE b.cost > 5")
        assert names(db).count("supplies by supplier") == 1
        (index,) = [entry for entry in db.describe()["arrangements"] if entry["name"] == "supplies by supplier"]
        assert set(index["shared_by"]) == {"first", "second"}
        db.sql("DROP MATERIALIZED VIEW first")
        assert Counter(db.sql("TABLE second").rows()) == Counter([(1, 2, 6), (2, 2, 6), (3, 3, 7)])
        db.sql("INSERT INTO supplies VALUES (4, 2, 9)")
        assert db.sql("SELECT count(*) FROM second").value() == 6
        db.sql("DROP MATERIALIZED VIEW second")
        assert "supplies by supplier" not in names(db)
        db.sql("DROP TABLE supplies")


def test_a_query_that_cannot_be_installed_leaves_no_index(monkeypatch):
    with kpg.open() as db:
        db.sql(SUPPLIES)
        before = names(db)
        finish = Renderer.finish

        def fail(self):
            if self.dataflow.name == "v":
                raise kpg.OverLimit("no memory is left")
            finish(self)

        monkeypatch.setattr(Renderer, "finish", fail)
        with pytest.raises(kpg.OverLimit):
            db.sql(f"CREATE MATERIALIZED VIEW v (a, b, c) AS {BY_SUPPLIER}")
        monkeypatch.undo()
        assert set(names(db)) <= {*before, "supplies by part, supplier"}
        db.sql(f"CREATE MATERIALIZED VIEW v (a, b, c) AS {BY_SUPPLIER}")


def test_one_index_of_a_stream_serves_lookups_by_the_first_columns_of_its_key():
    with kpg.open() as db:
        db.sql(f"{SUPPLIES}; {PARTS}; CREATE TABLE sales (a INT, b INT, n INT) WITH (retain = none)")
        db.sql("SET join_plans = delta; INSERT INTO parts VALUES (1, 'x')")
        db.sql("""
            CREATE MATERIALIZED VIEW v AS SELECT p.name, s.cost, f.n FROM sales f, parts p, supplies s
            WHERE f.a = p.part AND s.part = f.a AND s.supplier = f.b
        """)
        lines = [line for (line,) in db.sql("EXPLAIN MATERIALIZED VIEW v").rows()]
        assert [line.strip().split(" (")[0] for line in lines if " (a, b, n)" in line] == ["intermediate rows by a, b"]
        db.sql("INSERT INTO sales VALUES (1, 5, 10), (2, 5, 20)")
        db.sql("INSERT INTO supplies VALUES (1, 5, 100), (2, 5, 200)")
        assert db.sql("TABLE v").rows() == [("x", 100, 10)]
        db.sql("INSERT INTO parts VALUES (2, 'y')")
        assert sorted(db.sql("TABLE v").rows()) == [("x", 100, 10), ("y", 200, 20)]
        db.sql("DELETE FROM supplies WHERE part = 1")
        assert db.sql("TABLE v").rows() == [("y", 200, 20)]
