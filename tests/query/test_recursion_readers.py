"""Rules that read a recursion inside its operator, and programs that are loaded once: both answer as the oracle."""

import pytest
from hypothesis import Phase, given, note, settings

import kpg
from kpg.plan.nodes import SaturatedNode
from kpg.query.datalog import parse
from kpg.query.explain_program import explain
from kpg.query.installed_program import InstalledProgram
from kpg.query.ir.compile import compile
from kpg.testing.datalog_oracle import evaluate
from tests.query.input_states import advance_through, assert_answers
from tests.query.random_programs import programs
from tests.query.test_output_demand import SKIP, recursions

PHASES = [Phase.explicit, Phase.reuse, Phase.generate]
SKIP_OF_PAIRS = """
    .decl next(a1: number, a2: number, b1: number, b2: number)
    .input next
    .decl hasValue(a1: number, a2: number)
    .input hasValue
    .decl skip(a1: number, a2: number, b1: number, b2: number)
    .decl nextVisible(a1: number, a2: number, b1: number, b2: number)
    .output nextVisible
    skip(a1, a2, b1, b2) :- next(a1, a2, b1, b2).
    skip(a1, a2, c1, c2) :- skip(b1, b2, c1, c2), next(a1, a2, b1, b2), !hasValue(b1, b2).
    nextVisible(a1, a2, b1, b2) :- hasValue(a1, a2), skip(a1, a2, b1, b2), hasValue(b1, b2).
"""
CLOSURE = """
    .decl e(x: number, y: number)
    .input e
    .decl a(x: number)
    .input a
    .decl tc(x: number, y: number)
    .decl out(x: number, y: number)
    .output out
    tc(x, y) :- e(x, y).
    tc(x, z) :- tc(x, y), e(y, z).
"""


def in_operator(installed, name):
    """Return whether the operator of a recursion computes a relation."""
    return isinstance(installed.collections[name].node, SaturatedNode)


def check_one_load(written):
    """Compare the answers of a program that is loaded once with those of the oracle."""
    note(written.text)
    program = parse(written.text)
    for state in written.epochs[:1]:
        with kpg.open() as db, InstalledProgram(db, compile(program), one_load=True, restrict=False) as installed:
            for _ in advance_through(db, installed, [state]):
                assert_answers(installed, evaluate(program, state))


@settings(max_examples=60, phases=PHASES)
@given(recursions())
def test_recursions_with_readers_that_are_loaded_once_have_the_answers_of_the_oracle(written):
    check_one_load(written)


@settings(max_examples=60, phases=PHASES)
@given(programs())
def test_random_programs_that_are_loaded_once_have_the_answers_of_the_oracle(written):
    check_one_load(written)


@settings(max_examples=60, phases=PHASES)
@given(recursions())
def test_recursions_with_readers_grow_as_the_oracle_says(written):
    note(written.text)
    program, rows, states = parse(written.text), {}, []
    for state in written.epochs:
        rows = {name: rows.get(name, set()) | more for name, more in state.items()}
        states.append(rows)
    with kpg.open() as db, InstalledProgram(db, compile(program), insert_only=True, restrict=False) as installed:
        for state in advance_through(db, installed, states):
            assert_answers(installed, evaluate(program, state))


@pytest.mark.parametrize("text", [SKIP, SKIP_OF_PAIRS])
def test_the_reader_of_a_recursion_that_negates_is_in_its_operator_if_loaded_once(text):
    ids = [(n,) if text is SKIP else (n, n % 3) for n in range(20)]
    rows = {"next": {(*a, *b) for a, b in zip(ids, ids[1:], strict=False)}, "hasValue": set(ids[::4])}
    with kpg.open() as db, InstalledProgram(db, compile(parse(text)), one_load=True, restrict=False) as installed:
        assert in_operator(installed, "nextVisible")
        for state in advance_through(db, installed, [rows]):
            assert_answers(installed, evaluate(parse(text), state))
        assert len(installed.rows("nextVisible")) == 4


def test_a_negated_relation_that_grows_after_the_load_is_refused():
    with kpg.open() as db, InstalledProgram(db, compile(parse(SKIP)), one_load=True, restrict=False) as installed:
        installed.inputs["next"].insert([(1, 2), (2, 3)])
        installed.inputs["hasValue"].insert([(1,), (3,)])
        db.advance()
        assert installed.rows("nextVisible") == [(1, 3)]
        installed.inputs["hasValue"].insert([(2,)])
        db.advance()
        with pytest.raises(kpg.InsertOnly, match="reads as complete"):
            installed.rows("nextVisible")


@pytest.mark.parametrize(
    ("rule", "inside"),
    [
        ("out(x, y) :- a(x), tc(x, y).", True),
        ("out(x, y) :- tc(x, z), tc(z, y), x < y.", True),
        ("out(x, y) :- e(x, y). out(x, y) :- tc(y, x).", True),
        ("out(x, y) :- e(x, y), !tc(y, x).", False),
        ("out(x, y + 1) :- tc(x, y).", False),
        ("out(x, n) :- a(x), n = count : { tc(x, _) }.", False),
        ("out(x, y) :- e(x, y).", False),
        (".decl odd(x: number) odd(x) :- a(x), !tc(x, x). out(x, y) :- odd(x), tc(x, y).", False),
    ],
)
def test_rules_of_joins_that_read_a_recursion_are_in_its_operator(rule, inside):
    program = parse(CLOSURE + rule)
    rows = {"e": {(1, 2), (2, 3), (3, 1), (4, 5)}, "a": {(1,), (4,)}}
    with kpg.open() as db, InstalledProgram(db, compile(program), insert_only=True, restrict=False) as installed:
        assert in_operator(installed, "out") == inside
        for state in advance_through(db, installed, [rows]):
            assert_answers(installed, evaluate(program, state))


def test_readers_do_not_count_as_rounds():
    text = CLOSURE + "out(x, y) :- a(x), tc(x, y)."
    for rounds in (3, 4):
        with (
            kpg.open() as db,
            InstalledProgram(
                db, compile(parse(text)), insert_only=True, restrict=False, max_rounds=rounds
            ) as installed,
        ):
            installed.inputs["e"].insert([(1, 2), (2, 3), (3, 4), (4, 5)])
            installed.inputs["a"].insert([(1,)])
            db.advance()
            if rounds == 4:
                assert len(installed.rows("out")) == 4
            else:
                with pytest.raises(kpg.TooManyRounds):
                    installed.rows("out")


def test_explain_names_the_readers_in_an_operator():
    text = '.pragma "insert-only"' + CLOSURE + "out(x, y) :- a(x), tc(x, y)."
    assert "the operator also derives out, which reads it" in explain(compile(parse(text)))
