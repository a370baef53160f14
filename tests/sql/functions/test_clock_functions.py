"""Functions of the clock and of chance: fixed in a transaction, one value for each row, refused in views."""

import pytest

import kpg
from kpg.sql.functions.function_tables import SCALAR_FUNCTIONS

UNSTEADY = sorted(
    {entry.name for entries in SCALAR_FUNCTIONS.values() for entry in entries if entry.stable or entry.volatile}
)
ARGUMENTS = {"nextval": "'numbers'", "currval": "'numbers'", "setval": "'numbers', 3"}
WITHOUT_PARENTHESES = ("current_timestamp", "current_date", "localtimestamp", "localtime")


@pytest.fixture(scope="module")
def db():
    """A db with a table of a few rows."""
    with kpg.open() as opened:
        opened.sql("CREATE TABLE t (id INT PRIMARY KEY, at TIMESTAMPTZ, chance DOUBLE PRECISION, u UUID)")
        opened.sql("CREATE SEQUENCE numbers")
        opened.sql("INSERT INTO t (id) SELECT g FROM generate_series(1, 5) g")
        yield opened


def test_now_is_one_moment_in_a_transaction(db):
    db.sql("BEGIN")
    first = db.sql("SELECT now(), current_timestamp, localtimestamp::timestamptz, transaction_timestamp()").rows()
    again = db.sql("SELECT now(), now(), now(), now()").rows()
    db.sql("ROLLBACK")
    assert first == again
    assert len(set(first[0])) == 1
    assert db.sql("SELECT now()").rows()[0][0] > first[0][0]


def test_the_date_and_time_are_those_of_now(db):
    assert db.sql("SELECT current_date = now()::date, localtime = now()::time").rows() == [(True, True)]


def test_volatile_functions_have_a_value_for_each_row(db):
    db.sql("UPDATE t SET chance = random(), u = gen_random_uuid(), at = clock_timestamp()")
    rows = db.sql("SELECT chance, u, at FROM t").rows()
    assert len({chance for chance, _, _ in rows}) == len({u for _, u, _ in rows}) == 5
    assert all(0 <= chance < 1 and u.version == 4 and at is not None for chance, u, at in rows)
    assert sorted(db.sql("SELECT chance, u, at FROM t").rows()) == sorted(rows)


@pytest.mark.parametrize("name", UNSTEADY)
def test_views_may_not_depend_on_them(db, name):
    call = name if name in WITHOUT_PARENTHESES else f"{name}({ARGUMENTS.get(name, '')})"
    with pytest.raises(kpg.NotSupported, match=name) as refusal:
        db.sql(f"CREATE MATERIALIZED VIEW v AS SELECT id, {call} FROM t")
    assert refusal.value.sqlstate == "0A000"
