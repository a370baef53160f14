"""Recursive rules with min and max in their heads: where they keep least values, they are one operator."""

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

import kpg
from kpg.errors import DataError
from kpg.query.datalog import parse
from kpg.query.explain_program import explain
from kpg.query.installed_program import InstalledProgram
from kpg.query.ir.compile import compile
from kpg.testing.datalog_oracle import evaluate
from tests.query.input_states import advance_through, assert_answers

HEAD = """
.decl e(x: number, y: number, w: number)
.input e
.decl start(x: number, v: number)
.input start
.decl d(node: number, value: number)
.output d
"""
ONE_OPERATOR = {
    "weights": "d(x, min(v)) :- start(x, v). d(y, min(v + w)) :- d(x, v), e(x, y, w).",
    "steps": "d(x, min(0)) :- start(x, _). d(y, min(1 + v)) :- e(x, y, _), d(x, v).",
    "labels, both ways": """d(x, min(x)) :- e(x, _, _). d(y, min(y)) :- e(_, y, _).
        d(y, min(c)) :- d(x, c), e(x, y, _). d(x, min(c)) :- d(y, c), e(x, y, _).""",
    "greatest": "d(x, max(v)) :- start(x, v). d(y, max(v)) :- d(x, v), e(x, y, _).",
    "weights and steps": """d(x, min(v)) :- start(x, v). d(y, min(v + w)) :- d(x, v), e(x, y, w).
        d(x, min(v + 2)) :- d(y, v), e(x, y, 1).""",
    "a value first": """.decl r(value: number, node: number) .output r
        r(min(v), x) :- start(x, v). r(min(w + v), y) :- r(v, x), e(x, y, w).""",
    "all pairs": """.decl p(x: number, y: number, v: number) .output p
        p(x, y, min(w)) :- e(x, y, w). p(x, z, min(v + w)) :- p(x, y, v), e(y, z, w).""",
    "all pairs, backward": """.decl p(x: number, y: number, v: number) .output p
        p(x, y, min(w)) :- e(x, y, w). p(x, z, min(v + w)) :- e(x, y, w), p(y, z, v).""",
    "roots": """.decl p(root: number, y: number, v: number) .output p
        p(x, x, min(0)) :- start(x, _). p(r, z, min(v + 1)) :- p(r, y, v), e(y, z, _).""",
    "a product": """.decl p(x: number, y: number, v: number) .output p
        .decl f(x: number, y: number, u: number, v: number, w: number)
        f(x, a, y, b, w) :- e(x, y, w), start(a, b).
        p(x, a, min(a)) :- e(x, _, _), start(a, _). p(y, b, min(v + w)) :- p(x, a, v), f(x, a, y, b, w).""",
    "greatest of several columns": """.decl p(x: number, y: number, v: number) .output p
        p(x, y, max(w)) :- e(x, y, w). p(x, z, max(v)) :- p(x, y, v), e(y, z, _).""",
    "comparisons": """d(x, min(v)) :- start(x, v).
        d(y, min(v + w)) :- d(x, v), e(x, y, w), x != y, w > 0, y < 4.""",
    "negations": """d(x, min(v)) :- start(x, v).
        d(y, min(v + w)) :- d(x, v), e(x, y, w), !start(y, _), !e(y, x, w), !e(x, x, _).""",
    "further atoms": """d(x, min(v)) :- start(x, v).
        d(y, min(v + w)) :- d(x, v), e(x, y, w), e(y, _, u), u >= 1.
        d(y, min(v)) :- start(x, _), d(x, v), e(x, y, _).""",
    "roots and conditions": """.decl p(root: number, y: number, v: number) .output p
        p(x, x, min(0)) :- start(x, _). p(r, z, min(v + w)) :- p(r, y, v), e(y, z, w), !start(z, w), e(z, _, _).""",
}
LOOPS = {
    "two collections from outside have columns of their own": """d(x, max(v)) :- start(x, v).
        d(z, max(v)) :- d(x, v), e(x, y, w), e(y, z, w), x != z, !start(z, w).""",
    "computed in another way": "d(x, min(v)) :- start(x, v). d(y, min(v * 2)) :- d(x, v), e(x, y, _).",
    "neither joined nor kept": """.decl p(x: number, y: number, v: number) .output p
        p(x, y, min(w)) :- e(x, y, w). p(y, z, min(v + w)) :- p(x, y, v), e(y, z, w).""",
    "different columns of its key": """.decl p(x: number, y: number, v: number) .output p
        p(x, y, min(w)) :- e(x, y, w). p(x, z, min(v + w)) :- p(x, y, v), e(y, z, w).
        p(z, y, min(v + w)) :- p(x, y, v), e(x, z, w).""",
    "a condition of its body reads value": """d(x, min(v)) :- start(x, v).
        d(y, min(v + w)) :- d(x, v), e(x, y, w), v < 3.""",
    "a condition of its body reads root": """.decl p(root: number, y: number, v: number) .output p
        p(x, x, min(0)) :- start(x, _). p(r, z, min(v + w)) :- p(r, y, v), e(y, z, w), r != z.""",
    "improves on each cycle": "d(x, max(v)) :- start(x, v). d(y, max(v + 1)) :- d(x, v), e(x, y, _).",
}
edges = st.sets(st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(0, 3)), max_size=8)
starts = st.sets(st.tuples(st.integers(0, 4), st.integers(0, 3)), max_size=2)
states = st.lists(st.builds(lambda e, start: {"e": e, "start": start}, edges, starts), min_size=1, max_size=4)


def notes(db):
    """Return the choices of all dataflows of a db."""
    return "\n".join(line for dataflow in db.worker.dataflows.values() for line in dataflow.notes)


@pytest.mark.parametrize("name", ONE_OPERATOR)
@settings(max_examples=25)
@given(states=states)
def test_least_values_of_rules_are_one_operator_with_the_answers_of_the_oracle(name, states):
    text = HEAD + ONE_OPERATOR[name]
    note(text)
    program = parse(text)
    with kpg.open() as db, InstalledProgram(db, compile(program)) as installed:
        assert "is one operator: keeps the least value of each key" in notes(db)
        for state in advance_through(db, installed, states):
            assert_answers(installed, evaluate(program, state))


@pytest.mark.parametrize("reason", LOOPS)
def test_other_aggregates_in_recursions_stay_loops_and_say_why(reason):
    program = parse(HEAD + LOOPS[reason])
    rows = {"e": {(1, 2, 3), (2, 3, 1), (1, 3, 9)}, "start": {(1, 0)}}
    with kpg.open() as db, InstalledProgram(db, compile(program)) as installed:
        assert reason in notes(db)
        for state in advance_through(db, installed, [rows]):
            assert_answers(installed, evaluate(program, state))


def test_texts_are_nodes():
    text = (
        HEAD.replace("x: number", "x: symbol").replace("y: number", "y: symbol").replace("node: number", "node: symbol")
    )
    with kpg.open() as db, InstalledProgram(db, compile(parse(text + ONE_OPERATOR["weights"]))) as installed:
        assert "is one operator" in notes(db)
        installed.inputs["start"].insert([("a", 1)])
        installed.inputs["e"].insert([("a", "b", 2), ("b", "c", 5), ("a", "c", 9)])
        db.advance()
        assert installed.rows("d") == [("a", 1), ("b", 3), ("c", 8)]


@pytest.mark.parametrize("name", ["weights", "comparisons", "negations"])
def test_an_overflow_names_the_rule_and_its_values(name):
    with kpg.open() as db, InstalledProgram(db, compile(parse(HEAD + ONE_OPERATOR[name]))) as installed:
        installed.inputs["start"].insert([(1, 2**63 - 2)])
        installed.inputs["e"].insert([(1, 2, 9)])
        db.advance()
        with pytest.raises(DataError, match=r"int64 overflow in v \+ w") as caught:
            installed.rows("d")
        shown = str(caught.value).replace("x = 1, ", "")  # where a condition reads x
        assert "It fails for v = 9223372036854775806, w = 9, y = 2." in shown
        installed.inputs["e"].remove([(1, 2, 9)])
        db.advance()
        assert installed.rows("d") == [(1, 2**63 - 2)]


def test_explain_says_which_evaluator_runs_and_why():
    assert "one operator: keeps the least value of each key" in explain(compile(parse(HEAD + ONE_OPERATOR["weights"])))
    shown = explain(compile(parse(HEAD + LOOPS["neither joined nor kept"])))
    assert "a loop: it aggregates inside its recursion, and x is neither joined nor kept" in shown
    assert "a loop on several workers" in explain(compile(parse(HEAD + ONE_OPERATOR["a product"])))
    divided = explain(compile(parse(HEAD + ONE_OPERATOR["roots"])))
    assert "keeps the least value of each key; each of several workers has the rows of its values of root" in divided
