"""Aggregates in every position of a rule, against the oracle; witnesses of minima and maxima."""

import pytest

import kpg
from kpg.query.datalog import parse
from kpg.query.installed_program import InstalledProgram
from kpg.query.ir.compile import compile
from kpg.testing.datalog_oracle import evaluate

FACTS = {"a": [(1, 2), (1, 3), (2, 5), (3, 3)], "p": [(1,), (2,), (3,), (4,)]}
DECLARED = """
.decl a(x: number, y: number) input
.decl p(x: number) input
.decl r(x: number, n: number)
.output r
"""
RULES = [
    "r(n, m) :- a(n, m), p(s), 2 * s = 2 * sum s : { a(n, s) } + 2.",
    "r(n, 0) :- p(n), a(n, max q : { a(n, q) }).",
    "r(x, n) :- p(x), n = count : { a(x, count : { a(x, _) }) }.",
    "r(0, s) :- s = sum y : { p(n), y = sum z : { p(z), z < n }, y < 10 }.",
    "r(x, n) :- p(x), n = 1 + count : { a(x, _) } * 2.",
    "r(x, 0) :- p(x), count : { a(x, _) } > 1.",
    "r(x, 0) :- p(x), !(count : { a(x, _) } > 1).",
    "r(x, 0) :- p(x), !a(x, count : { a(x, _) }).",
    "r(x, n) :- p(x), n = sum 1 : { a(x, _) }.",
    "r(x, n) :- p(x), n = sum y + x : { p(y), !a(x, y) }.",
    "r(x, max y : { a(x, y); a(y, x) }) :- p(x).",
    "r(a, b) :- a = min x : { p(x) }, b = max x : { p(x), x > a }.",
    "r(a, b) :- p(c), a = min x : { p(x), x > c }, b = count : { p(x), x < a }.",
    "r(x, n) :- p(x), n = min y : { a(x, z), y = max w : { a(z, w); p(w), w < z } }.",
    "r(x, n) :- p(x), (n = count : { a(x, _) }; n = count : { a(_, x) }).",
    "r(x, n) :- p(x), n = max(count : { a(x, _) }, count : { a(_, x) }).",
    "r(x, n) :- p(x), n = count : { a(x, _) }, n = count : { a(_, x) }.",
    "r(x, to_number(mean z : { a(x, z) })) :- p(x).",
    "r(n, n) :- n = count : { true }.",
    "r(n, 0) :- n = sum x : { x = range(0, 5) }.",
    "r(x, n) :- p(x), n = sum y : { a(_, y), y = x }.",
    "r(x, n) :- p(x), n = count : { a(x, y), to_float(y) > mean z : { a(x, z) } }, count : { p(_) } = 4.",
]


@pytest.mark.parametrize("rule", RULES)
def test_an_aggregate_may_stand_wherever_a_value_may(rule):
    program = parse(DECLARED + rule)
    with kpg.open() as db, InstalledProgram(db, compile(program)) as installed:
        state = {name: set(rows) for name, rows in FACTS.items()}
        for name, rows in FACTS.items():
            installed.inputs[name].insert(rows)
        for removed in (None, ("a", (1, 3)), ("p", (2,))):
            if removed is not None:
                installed.inputs[removed[0]].remove([removed[1]])
                state[removed[0]].discard(removed[1])
            db.advance()
            assert set(installed.rows("r")) == evaluate(program, state)["r"]


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("r(x, n) :- n = max y : { a(x, y) }.", {(2, 5)}),
        ("r(x, y) :- 3 = min z : { a(x, z), z > 2, p(x) }, y = 3.", {(1, 3), (3, 3)}),
        ("r(x, n) :- n = max y : { a(x, y), y < 4; a(y, x), y < 2 }.", {(1, 3), (3, 3)}),
        ("r(x, n) :- n = max 10 * x + y : { a(x, y) }.", {(3, 33)}),
        ("r(x, y) :- _ = max 10 * x + y : { a(x, y) }.", {(3, 3)}),
        ("r(x, n) :- p(x), n = max x + y : { a(x, y) }.", {(1, 7), (2, 7), (3, 7), (4, 7)}),
    ],
)
def test_witnesses_attain_the_minimum_or_maximum(rule, expected):
    with kpg.open() as db, InstalledProgram(db, compile(parse(DECLARED + rule))) as installed:
        for name, rows in FACTS.items():
            installed.inputs[name].insert(rows)
        db.advance()
        assert set(installed.rows("r")) == expected


def test_the_aggregated_variable_is_no_witness():
    with pytest.raises(kpg.UnsafeRule, match="'y' in the head is not bound"):
        compile(parse(DECLARED + "r(y, n) :- n = min y : { a(_, y) }."))
