"""Errors of rows name the rule, the expression as written, and the tuple by variables and values."""

from decimal import Decimal

import pytest

import kpg
from kpg.query.datalog import parse
from kpg.query.installed_program import InstalledProgram
from kpg.query.ir.compile import compile

DECLARED = """\
.decl a(x: number, y: number)
.decl n(name: symbol, x: number)
.decl f(v: float)
.decl u(x: unsigned)
.decl p(x: number)
.decl w(x: unsigned)
.decl g(v: float)
.input a
.input n
.input f
.input u
.output p
.output w
.output g
"""

# (rule, rows, output, position, reason, row)
MOST = 2**63 - 1
FAILING = [
    ("p(z) :- a(x, y), z = x/y.", {"a": (8, 0)}, "p", "15:22", "division by zero in x/y", "x = 8, y = 0"),
    ("p(x % (y - y)) :- a(x, y).", {"a": (8, 1)}, "p", "15:3", "division by zero in x % (y - y)", "x = 8, y = 1"),
    ("p(x) :- a(x, y), x * y > 3.", {"a": (MOST, 2)}, "p", "15:18", "int64 overflow in x * y", f"x = {MOST}, y = 2"),
    ("p(-x) :- a(x, _).", {"a": (-(2**63), 1)}, "p", "15:3", "int64 overflow in -x", f"x = {-(2**63)}"),
    ("p(x) :- a(x, y), a(x+1, y).", {"a": (MOST, 2)}, "p", "15:20", "int64 overflow in x+1", f"x = {MOST}"),
    ("p(to_number(s)) :- n(s, _).", {"n": ("ten", 1)}, "p", "15:3", "to_number(s)", 's = "ten"'),
    ("g(v / 0.0) :- f(v).", {"f": (1.5,)}, "g", "15:3", "division by zero in v / 0.0", "v = 1.5"),
    ("w(x - 2) :- u(x).", {"u": (1,)}, "w", "15:3", "in x - 2", "x = 1"),
    ("p(x ^ y) :- a(x, y).", {"a": (10, 30)}, "p", "15:3", "overflow in x ^ y", "x = 10, y = 30"),
    ("p(c) :- a(x, _), c = sum (x / y) : { a(x, y) }.", {"a": (8, 0)}, "p", "15:27", "in x / y", "x = 8"),
    ("p(m) :- m = max (d/e) : { a(d, e) }.", {"a": (8, 0)}, "p", "15:18", "division by zero in d/e", "d = 8, e = 0"),
    ("p(z) :- c = count : { a(_, 5) }, z = 10 / c.", {"a": (8, 0)}, "p", "15:38", "division by zero in 10 / c", None),
    ("p(s) :- a(x, _), s = sum y : { a(x, y) }.", {"a": (1, MOST), "a ": (1, 1)}, "p", "15:22", "its type", "x = 1"),
    ("p(z) :- a(x, y), z = x / y, z > 3, x/(y-1) > 0.", {"a": (-8, 0)}, "p", "15:22", "in x / y", "x = -8, y = 0"),
]  # fmt: skip
INTERNAL = ("col(", "lit(", "lanes", "abs()", "//", "$", "#", "@")


@pytest.mark.parametrize(("rule", "rows", "output", "position", "reason", "row"), FAILING, ids=lambda v: str(v)[:30])
@pytest.mark.parametrize("joins", ["auto", "delta"])
def test_errors_name_the_rule_the_expression_and_the_tuple(rule, rows, output, position, reason, row, joins):
    with kpg.open() as db, InstalledProgram(db, compile(parse(DECLARED + rule, "p.dl")), joins=joins) as installed:
        for name, values in rows.items():
            installed.inputs[name.strip()].insert([values])
        db.advance()
        with pytest.raises(kpg.DataError) as caught:
            installed.rows(output)
        error = caught.value
        assert error.what.startswith(f"{output} has no answer at 0: p.dl:{position}: ") and error.what.endswith(reason)
        assert row is None or f"It fails for {row}" in error.detail
        assert rule in error.detail and "^" in error.detail
        assert not [word for word in INTERNAL if word in str(error).replace(rule, "")], str(error)


def test_errors_of_python_show_the_expression_and_the_columns():
    with kpg.open() as db:
        rows = db.input("rows", name=str, price=kpg.decimal(9, 2), amount="int64?", born="date?")

        answer = rows.select("name", share=100 // kpg.col("amount")).output("shares")
        rows.insert([("Zoë", Decimal("12.50"), 0, None)])
        db.advance()
        with pytest.raises(kpg.DataError) as caught:
            answer.rows()
        assert caught.value.what == 'shares has no answer at 0: division by zero in 100 // col("amount")'
        assert caught.value.detail == 'It fails for name = "Zoë", price = 12.50, amount = 0, born = null.'


def test_each_output_has_the_errors_that_it_depends_on():
    text = DECLARED + "p(x / y) :- a(x, y).\ng(v) :- f(v).\nw(x) :- u(x), p(_)."
    with kpg.open() as db, InstalledProgram(db, compile(parse(text))) as installed:
        installed.inputs["a"].insert([(1, 0)])
        installed.inputs["f"].insert([(1.5,)])
        db.advance()
        assert installed.rows("g") == [(1.5,)]
        for name in ("p", "w"):
            with pytest.raises(kpg.DataError, match=f"{name} has no answer at 0: .*division by zero in x / y"):
                installed.rows(name)
        installed.inputs["a"].remove([(1, 0)])
        db.advance()
        assert installed.rows("p") == [] == installed.rows("w")
