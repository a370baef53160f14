"""Errors are data: a row on which an expression fails makes the answer fail while the row is present, and only then.

For every time t:  if some row that fails is in the input at t, reading the answer as of t raises DataError with the row
and the reason; else the answer is that of the other rows.
"""

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kpg
from kpg.testing.model import accumulate
from tests.api.plays import examples, install, plays, push

col = kpg.col
SCHEMAS = {"a": {"x": int, "y": int}}
ROWS = {"a": st.tuples(st.integers(0, 2), st.integers(0, 1))}
LARGE = 2**62


def halves(table: pa.Table):
    """Return 2 // x rows for each row."""
    x = table["x"].to_numpy()
    if (x == 0).any():
        raise ZeroDivisionError("nothing to halve")
    counts = 2 // x
    return np.repeat(np.arange(len(x)), counts), pa.table({"x": np.repeat(x, counts)})


def refuses_zero(key, rows):
    if key == (0,):
        raise ValueError("zero is refused")
    return [(sum(count for _, count in rows),)]


def upside_down(a):
    """The failing operator twice, on rows and on their negatives: the errors must not cancel."""
    return a.consolidate().select(q=2 // col("x")).concat(a.negate().consolidate().select(q=2 // col("x")))


def in_a_loop(a):
    """Divide each node until it is 1; zero fails in the second round."""
    return a.select("x").iterate(
        lambda v: (
            v.filter(col("x") > 0)
            .select(x=kpg.when(col("x") < 3, col("x")).otherwise(6 // (col("x") - 3)))
            .concat(a.select(x=2 // col("x")))
            .distinct()
        )
    )


FAILING = {
    "select": lambda a: a.select(q=2 // col("x")),
    "filter": lambda a: a.filter(2 // col("x") > 1),
    "flat_map": lambda a: a.flat_map(halves, x=int),
    "overflow": lambda a: a.select(q=kpg.when(col("x") == 0, LARGE).otherwise(1) * 4),
    "after a join": lambda a: a.join(a.rename(y="z"), on="x").select(q=2 // col("x"), z="z"),
    "before a join": lambda a: a.select("y", q=2 // col("x")).join(a, on="y"),
    "before a count": lambda a: a.select(q=2 // col("x")).count("q"),
    "reduce": lambda a: a.group_by("x").reduce(refuses_zero, n=int),
    "sum": lambda a: a.concat(a).select("x", v=kpg.when(col("x") == 0, LARGE).otherwise(1)).group_by("x").sum("v"),
    "in an arrangement": lambda a: a.select("y", q=2 // col("x")).arrange("q").select("q"),
    "through two arrangements": lambda a: (
        a.select("y", q=2 // col("x")).arrange("q").count("y").arrange("y").join(a, on="y")
    ),
    "upside down": upside_down,
    "in a loop": in_a_loop,
    "in nested loops": lambda a: a.iterate(
        lambda v: v.iterate(lambda w: w.select(x=2 // col("x") * 0 + col("x"), y=col("y")), name="inner"), name="outer"
    ),
    "delay": lambda a: a.delay(2 // col("x") * 0),
}  # fmt: skip


@examples(0.4)
@given(plays(ROWS, negative=False, largest=2, max_size=5, history=st.none()))
def test_answers_fail_while_failing_rows_are_present(play):
    healthy_rows = [((x, y), time, diff) for (x, y), time, diff in play.streams["a"] if x != 0]
    with kpg.open(history=None, effort=play.effort) as db, kpg.open(history=None) as twin:
        a, b = db.input("a", x=int, y=int), twin.input("a", x=int, y=int)
        answers = {name: build(a).output(name) for name, build in FAILING.items()}
        wanted = {name: build(b).output(name) for name, build in FAILING.items()}
        bystander = a.count("y").output("bystander")
        late = {}
        for index, frontier in enumerate([*play.clock[1:], None]):
            push(db, {"a": a}, play.pushes[index])
            if index == play.install:
                late, _ = install(db, {"a": a}, {name: lambda db, r, f=f: f(r["a"]) for name, f in FAILING.items()})
            if play.idle[index]:
                db.idle(play.idle[index])
            if frontier is not None:
                db.advance_to(frontier)
        for row, time, diff in healthy_rows:
            b.update_at([row], time, diff)
        twin.advance_to(play.clock[-1])
        for epoch in range(play.clock[-1].elements[0][0]):
            failing = any(x == 0 for x, _ in accumulate(play.streams["a"], (epoch,)))
            for which in (answers, late):
                for name, answer in which.items():
                    if not failing:
                        assert counted(answer, epoch) == counted(wanted[name], epoch), name
                    else:
                        try:
                            assert not counted(answer, epoch), f"{name} does not fail at {epoch}"
                        except kpg.DataError as error:
                            assert f"has no answer at {epoch}" in str(error)
            bystander.snapshot(as_of=epoch)


def counted(answer, epoch):
    return answer.snapshot(as_of=epoch, counts=True).to_pydict()


def test_an_answer_has_a_value_again_when_the_row_is_removed():
    with kpg.open() as db:
        a = db.input("a", x=int)
        answer = a.select(q=6 // col("x")).output("sixths")
        a.insert([(2,), (0,)])
        db.advance()
        with pytest.raises(kpg.DataError) as raised:
            answer.rows()
        assert "sixths has no answer at 0" in raised.value.what and "division by zero" in raised.value.what
        assert raised.value.detail == "It fails for x = 0."
        assert "Remove or correct the row" in raised.value.hint
        a.remove([(0,)])
        a.insert([(3,)])
        db.advance()
        assert answer.rows() == [(2,), (3,)]


def test_an_answer_that_keeps_nothing_fails_too():
    with kpg.open() as db:
        a = db.input("a", x=int)
        answer = a.select(q=6 // col("x")).output(keep=False)
        a.insert([(2,), (0,)])
        db.advance()
        with pytest.raises(kpg.DataError, match="division by zero"):
            answer.changes()
        a.remove([(0,)])
        db.advance()
        assert list(answer.changes()) == [((3,), 0, 1)]


def test_a_function_of_the_user_fails_on_its_rows_alone():
    with kpg.open() as db:
        a = db.input("a", s=str)
        parsed = a.select(n=kpg.udf(lambda texts: [int(text) for text in texts], returns=int)(col("s"))).output()
        doubled = a.flat_map(halves_of_text, s=str).output()
        a.insert([("1",), ("two",), ("3",)])
        db.advance()
        with pytest.raises(kpg.DataError, match="invalid literal for int.*two"):
            parsed.rows()
        with pytest.raises(kpg.DataError, match="ValueError: two is refused"):
            doubled.rows()
        a.remove([("two",)])
        db.advance()
        assert parsed.rows() == [(1,), (3,)]
        assert sorted(doubled.rows()) == [("1",), ("1",), ("3",), ("3",)]


def halves_of_text(table: pa.Table):
    if "two" in table["s"].to_pylist():
        raise ValueError("two is refused")
    return np.repeat(np.arange(table.num_rows), 2), pa.table({"s": np.repeat(table["s"].to_numpy(), 2)})


def test_an_inspect_function_that_raises_stops_its_own_dataflow():
    with kpg.open() as db:
        a = db.input("a", x=int)
        shown = a.inspect(lambda *update: {}["missing"]).output()
        other = a.output("other")
        a.insert([(1,)])
        db.advance()
        with pytest.raises(kpg.DataError, match="inspect.* raised KeyError: 'missing'"):
            shown.rows()
        assert other.rows() == [(1,)]


def test_a_reader_of_failed_rows_can_be_installed_and_released_at_any_time():
    with kpg.open() as db:
        a = db.input("a", x=int)
        shared = a.select(q=6 // col("x")).arrange("q")
        a.insert([(0,), (2,)])
        db.advance()
        late = shared.count("q").output("late")
        with pytest.raises(kpg.DataError):
            late.rows()
        with pytest.raises(kpg.DataError):
            shared.lookup(3)
        with pytest.raises(kpg.DataError):
            shared.scan()
        late.release()
        a.remove([(0,)])
        db.advance()
        assert shared.lookup(3).num_rows == 1
        assert shared.count("q").output("later").rows() == [(3, 1)]


def test_a_reducer_that_raises_fails_its_group_until_it_succeeds():
    with kpg.open() as db:
        a = db.input("a", k=int, v=int)

        def only_one(key, rows):
            [(row, count)] = rows
            return [row]

        answer = a.group_by("k").reduce(only_one, v=int).output()
        a.insert([(1, 5), (2, 7)])
        db.advance()
        assert answer.rows() == [(1, 5), (2, 7)]
        a.insert([(1, 6)])
        db.advance()
        with pytest.raises(kpg.DataError, match="ValueError: too many values to unpack"):
            answer.rows()
        a.remove([(1, 5)])
        db.advance()
        assert answer.rows() == [(1, 6), (2, 7)]


def test_a_reducer_that_returns_unfitting_rows_fails_its_group():
    with kpg.open() as db:
        a = db.input("a", k=int, v=int)
        answer = a.group_by("k").reduce(lambda key, rows: [("text", 1)], v=int).output()
        a.insert([(1, 5)])
        db.advance()
        with pytest.raises(kpg.DataError, match="SchemaMismatch"):
            answer.rows()


def test_sums_and_products_that_leave_their_type_fail_until_the_rows_are_removed():
    with kpg.open() as db:
        a = db.input("a", k=int, v=int, d=kpg.decimal(38, 2))
        whole = a.group_by("k").sum("v").output()
        exact = a.group_by("k").sum("d").output()
        square = a.select(s=col("v") * col("v")).output()
        large, most = 2**62, Decimal("9" * 36 + ".99")
        a.insert([(1, large, most), (1, large - 1, Decimal("0.01"))])
        db.advance()
        assert whole.rows() == [(1, 2**63 - 1)]
        with pytest.raises(kpg.DataError):
            square.rows()
        with pytest.raises(kpg.DataError):
            exact.rows()  # has 39 digits
        a.insert([(1, 1, Decimal("-0.01"))])
        db.advance()
        with pytest.raises(kpg.DataError, match="the sum does not fit its type"):
            whole.rows()
        assert exact.rows() == [(1, most)]
        a.remove([(1, 1, Decimal("-0.01"))])
        a.remove([(1, large, most)])
        db.advance()
        assert whole.rows() == [(1, large - 1)]


def test_an_iteration_keeps_the_errors_of_its_rounds_until_the_input_changes():
    """A row that fails in one round is missing in the next: without the error, the answer would look complete."""
    with kpg.open() as db:
        a = db.input("a", x=int)
        answer = a.iterate(lambda v: v.select(x=kpg.when(col("x") == 1, 1).otherwise(6 // (col("x") - 4)))).output()
        a.insert([(4,), (1,)])
        db.advance()
        with pytest.raises(kpg.DataError, match="division by zero"):
            answer.rows()
        a.remove([(4,)])
        db.advance()
        assert answer.rows() == [(1,)]
