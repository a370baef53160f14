"""Every form of a join equals its denotation, with nulls, duplicates, removal and conditions on pairs."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kpg
from kpg import col
from kpg.testing import denotations
from tests.api.plays import Query, check, examples, plays

SCHEMAS = {"a": {"x": "int64?", "y": int}, "b": {"x": "int64?", "z": int}}
KEYS = st.sampled_from([None, 0, 1, 1])
ROWS = {name: st.tuples(KEYS, st.integers(0, 2)) for name in SCHEMAS}
FORMS = ("inner", "left", "right", "full", "semi", "anti")


def query(how, on, *, where=None, meaning=None, nulls_equal=True, prepare=lambda collection: collection):
    """A join of a and b by x or by nothing, where the condition `where` means `meaning`."""
    key = (0,) if on else ()
    return Query(
        lambda db, r: prepare(r["a"]).join(prepare(r["b"]), on, how, where=where, nulls_equal=nulls_equal),
        lambda a, b: denotations.join_where(a, b, key, key, how, (2, 2), meaning, nulls_equal),
        ("a", "b"),
    )


def less(a, b):
    return a[1] < b[1]


JOINS = {f"{how} join": query(how, "x") for how in FORMS}
JOINS |= {f"{how} join as in SQL": query(how, "x", nulls_equal=False) for how in FORMS}
JOINS |= {f"{how} join by nothing": query(how, ()) for how in FORMS}

CONDITIONS = {
    f"{how} join by x where y < z": query(how, "x", where=col("y") < col("z"), meaning=less, nulls_equal=False)
    for how in FORMS
}
CONDITIONS |= {f"{how} join where y < z": query(how, None, where=col("y") < col("z"), meaning=less) for how in FORMS}
CONDITIONS |= {
    f"{how} join where z": query(how, None, where=col("z") == 1, meaning=lambda a, b: b[1] == 1) for how in FORMS
}
CONDITIONS |= {
    f"{how} join where the right key is null or less": query(
        how,
        None,
        where=col("x_right") < col("y"),
        meaning=lambda a, b: None if b[0] is None else b[0] < a[1],
    )
    for how in FORMS
}
OF_INDEXES = {
    f"{how} join of indexes": query(how, "x", nulls_equal=False, prepare=lambda r: r.arrange("x")) for how in FORMS
}
OF_INDEXES |= {
    f"{how} join of filtered indexes": Query(
        lambda db, r, how=how: r["a"].arrange("x").join(r["b"].arrange("x").filter(col("z") > 0), "x", how),
        lambda a, b, how=how: denotations.join_where(
            a, denotations.filter(b, lambda row: row[1] > 0), (0,), (0,), how, (2, 2)
        ),
        ("a", "b"),
    )
    for how in FORMS
}
OF_INDEXES |= {
    f"{how} join with groups": Query(
        lambda db, r, how=how: r["a"].join(r["b"].count("x"), "x", how),
        lambda a, b, how=how: denotations.join_where(a, denotations.count(b, (0,)), (0,), (0,), how, (2, 2)),
        ("a", "b"),
    )
    for how in FORMS
}


@examples(0.3)
@given(plays(ROWS, max_size=7, negative=False))
def test_joins_of_all_forms(play):
    check(play, SCHEMAS, JOINS)


@examples(0.2)
@given(plays(ROWS, max_size=7, negative=False))
def test_joins_with_conditions_on_pairs(play):
    check(play, SCHEMAS, CONDITIONS)


@examples(0.2)
@given(plays(ROWS, max_size=7, negative=False))
def test_joins_that_read_indexes(play):
    check(play, SCHEMAS, OF_INDEXES)


@examples(0.1)
@given(plays(ROWS, coordinates=2, largest=2, max_size=5, negative=False))
def test_joins_of_all_forms_where_times_have_two_coordinates(play):
    check(play, SCHEMAS, JOINS | CONDITIONS)


WIDE_SCHEMAS = {"a": {"x": "decimal(38,2)?", "y": "decimal(30,1)"}, "b": {"x": "decimal(38,2)?", "z": "decimal(30,1)"}}
WIDE_KEYS = st.sampled_from([None, Decimal(-1), Decimal(10) ** 30])
WIDE_ROWS = {name: st.tuples(WIDE_KEYS, st.sampled_from([Decimal("0.5"), Decimal(10) ** 25])) for name in WIDE_SCHEMAS}


@examples(0.1)
@given(plays(WIDE_ROWS, max_size=6, negative=False))
def test_joins_of_columns_of_several_lanes(play):
    of_keys = {f"{how} join": query(how, "x", nulls_equal=False) for how in FORMS}
    with_condition = {f"{how} join where": query(how, "x", where=col("y") < col("z"), meaning=less) for how in FORMS}
    check(play, WIDE_SCHEMAS, of_keys | with_condition)


@pytest.fixture
def db():
    with kpg.open() as db:
        yield db


def test_outer_joins_read_the_indexes_that_exist(db):
    a = db.input("a", x=int, y=int)
    b = db.input("b", x=int, z=int)
    with a.arrange("x"), b.arrange("x"):
        for how in ("left", "right", "full", "semi", "anti"):
            with a.join(b, "x", how).output("answer") as answer:
                assert "a by x" in answer.explain() and "b by x" in answer.explain()
                assert "arrange x ← import" not in answer.explain()


def test_types_of_a_side_that_may_be_missing_are_nullable(db):
    a = db.input("a", x=int, y=str)
    b = db.input("b", x="int64?", y=float)
    assert repr(a.join(b, "x", "left").schema) == "(x: int64, y: string, y_right: float64?)"
    assert repr(a.join(b, "x", "right", suffix="_b").schema) == "(x: int64?, y: string?, y_b: float64)"
    assert repr(a.join(b, {"x": "x"}, "full").schema) == "(x: int64?, y: string?, y_right: float64?)"
    assert a.join(b, "x", "semi").schema == a.schema


@pytest.mark.parametrize("how", FORMS)
def test_null_never_meets_the_least_number(db, how):
    a = db.input("a", x=int)
    b = db.input("b", x="int64?", y=int)
    a.insert([(-(2**63),)])
    b.insert([(None, 1)])
    db.advance()
    wanted = {"left": 1, "right": 1, "anti": 1}.get(how, 0)
    if how != "full":  # in a full join, the key cannot be distinguished from null
        assert len(a.join(b, "x", how).output().rows()) == wanted


def test_a_condition_that_fails_on_a_pair_is_an_error_of_that_pair_only(db):
    a = db.input("a", x=int, y=int)
    b = db.input("b", x=int, z=int)
    answers = {
        how: a.join(b, "x", how, where=(col("z") != 7) & (col("y") // col("z") > 1)).output(how) for how in FORMS
    }
    a.insert([(1, 8), (2, 8)])
    b.insert([(1, 2), (1, 7), (3, 0)])
    db.advance()
    assert answers["left"].rows() == [(1, 8, 2), (2, 8, None)]  # (3, 0) has no pair, so nothing is divided by 0
    b.insert([(1, 0)])
    db.advance()
    for answer in answers.values():
        with pytest.raises(kpg.DataError, match="division by zero"):
            answer.rows()
    b.remove([(1, 0)])
    db.advance()
    assert answers["semi"].rows() == [(1, 8)] and answers["anti"].rows() == [(2, 8)]
    assert set(answers["full"].rows()) == {(1, 8, 2), (1, None, 7), (2, 8, None), (3, None, 0)}


def test_mistakes_of_joins(db):
    a = db.input("a", x=int)
    b = db.input("b", x=int)
    with pytest.raises(kpg.BadPlan, match="no join is called 'outer'"):
        a.join(b, "x", "outer")
    with pytest.raises(kpg.BadPlan, match="without columns"):
        a.join(b)
    with pytest.raises(kpg.BadPlan, match="cross join has no key"):
        a.join(b, "x", "cross")
    with pytest.raises(kpg.TypeMismatch, match="a condition is a bool"):
        a.join(b, where=col("x") + 1)
    with pytest.raises(kpg.UndefinedName):
        a.join(b, "x", "semi", where=col("y") == 1)
