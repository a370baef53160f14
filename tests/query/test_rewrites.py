"""Each rewrite, by its result; and the verifier, by the violations it detects."""

from dataclasses import replace

import pytest

from kpg.query.binary_joins import is_set
from kpg.query.datalog import parse
from kpg.query.explain_program import explain
from kpg.query.ir.compile import REWRITES, compile
from kpg.query.ir.literals import Conjunction
from kpg.query.ir.program import Program
from kpg.query.ir.show import show_program, show_rule
from kpg.query.ir.verify import verify
from kpg.query.join_strategy import plan_rule

HEAD = """.decl e(x: number, y: number) .input e
.decl p(x: number) .decl q(x: number, y: number) .output p .output q
"""


def after(text: str, last: str) -> Program:
    """Return a program after the rewrites up to and including `last`."""
    program = parse(HEAD + text)
    for rewrite in REWRITES:
        program = rewrite(program)
        if rewrite.__name__ == last:
            return program
    raise AssertionError(last)


@pytest.mark.parametrize(("last", "text", "expected"), [
    ("single_head", "p(x), q(x, x) :- e(x, _).", ["p(x) :- e(x, _).", "q(x, x) :- e(x, _)."]),
    ("expand_disjunction", "p(x) :- e(x, _), (x > 1; x < 0).",
     ["p(x) :- e(x, _), x > 1.", "p(x) :- e(x, _), x < 0."]),
    ("expand_disjunction", "p(x) :- e(x, _), !(x > 1; e(x, x)).", ["p(x) :- e(x, _), x <= 1, !e(x, x)."]),
    ("expand_disjunction", "p(x) :- e(x, _), false.", []),
    ("separate_scopes", "q(x, n) :- e(x, _), n = sum y : { e(x, y), e(y, _) }.",
     ["q(x, n) :- e(x, _), n = sum y#1 : { e(x, y#1), e(y#1, _#1.1) }."]),
    ("infer_types", "p(x + 1) :- e(x, _).", ["p((x + 1)) :- e(x, _)."]),
    ("lift_aggregates", "q(x, n) :- e(x, _), n = count : { e(x, _) }.",
     ["@1.body(x, _#1.1) :- e(x, _#1.1).", "q(x, n) :- e(x, _), n = count#@1, @1(x, count#@1).",
      "q(x, n) :- e(x, _), n = 0, !@1(x, _)."]),
    ("lift_aggregates", "q(x, n) :- e(x, _), n = min y : { e(_, y), y > x }.",
     ["@1.seed(x) :- e(x, _).",
      "@1.body(x, _#1.1, y#1, value#@1) :- @1.seed(x), e(_#1.1, y#1), y#1 > x, value#@1 = y#1.",
      "q(x, n) :- e(x, _), n = min#@1, @1(x, min#@1)."]),
    ("flatten_arguments", "p(x) :- e(x, x + 1).", ["p(x) :- e(x, value#0), value#0 = (x + 1)."]),
    ("solve_equations", "p(x) :- e(y, z), x = y, z = 3, 1 < 2.", ["p(y) :- e(y, 3)."]),
    ("solve_equations", "p(x) :- e(x, _), 1 > 2.", []),
    ("blank_unused", "p(x) :- e(x, y).", ["p(x) :- e(x, _)."]),
    ("order_joins", "q(x, w) :- e(x, y), e(z, w), e(y, z), x < y, !p(z).",
     ["q(x, w) :- e(x, y), x < y, e(y, z), !p(z), e(z, w)."]),
    ("order_joins", "p(x) :- e(x, y), e(y, 3).", ["p(x) :- e(y, 3), e(x, y)."]),
    ("drop_unread", ".decl unread(x: number)\nunread(x) :- e(x, _).", []),
])  # fmt: skip
def test_the_result_of_each_rewrite(last, text, expected):
    assert [show_rule(rule) for rule in after(text, last).rules] == expected


def test_strata_come_after_what_they_read():
    program = after("p(x) :- e(x, _), !q(x, x).\nq(x, y) :- e(x, y).\nq(x, z) :- q(x, y), q(y, z).", "stratify")
    assert [(stratum.relations, stratum.recursive) for stratum in program.strata] == [
        (("e",), False), (("q",), True), (("p",), False)
    ]  # fmt: skip


def test_the_verifier_detects_violations_of_each_invariant():
    program = compile(parse(HEAD + "p(x) :- e(x, y), e(y, x)."))
    done = tuple(rewrite.__name__ for rewrite in REWRITES)
    verify(program, done)
    (rule,) = program.rules
    wrong = [
        program.with_rules((replace(rule, heads=()),)),
        program.with_rules((replace(rule, kinds=()),)),
        program.with_rules((replace(rule, heads=(replace(rule.head, relation="nowhere"),)),)),
        program.with_rules((replace(rule, heads=(replace(rule.head, arguments=()),)),)),
        program.with_rules((replace(rule, body=Conjunction((Conjunction(()),))),)),
        replace(program, strata=program.strata[:1]),
        replace(program, strata=program.strata[::-1]),
        replace(program, relations=program.relations * 2),
    ]
    for broken in wrong:
        with pytest.raises((AssertionError, ValueError)):
            verify(broken, done)


@pytest.mark.parametrize(("rule", "expected"), [
    ("q(x, y) :- e(x, y).", True), ("p(x) :- e(x, _).", False), ("p(x) :- e(x, y), e(y, x).", False),
    ("q(x, y) :- e(x, y), e(y, x).", True), ("q(x, 1) :- e(x, y), x = y.", True), ("p(x) :- e(x, 3).", True),
    ("q(x, z) :- e(x, y), y = x + 1, z = 4.", True), ("q(x + 0, y) :- e(x, y).", False),
])  # fmt: skip
def test_a_rule_is_a_set_if_its_head_determines_each_solution(rule, expected):
    program = compile(parse(HEAD + rule))
    assert is_set(program.rules[0]) == expected


def test_a_plan_has_a_strategy_and_a_reason():
    program = compile(parse(HEAD + "q(x, w) :- e(x, y), e(y, z), e(z, w).\np(x) :- e(x, _), e(_, 7)."))
    three, product = map(plan_rule, program.rules)
    assert three.strategy == "delta" and "3 pipelines, no intermediate results" in three.reason
    assert len(product.products()) == 1
    shown = explain(program, "binary")
    assert "note: product with e(x, _), because no variable connects them" in shown
    assert "index of e by x, shared by 2" in shown and show_program(program).count(".decl") == 3
