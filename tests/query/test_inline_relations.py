"""Inline relations: answers are those without `inline`, and what cannot be inlined is refused with its reason."""

import re

import pytest
from hypothesis import Phase, given, note, settings
from hypothesis import strategies as st

import kpg
from kpg.query.datalog import parse
from kpg.query.installed_program import InstalledProgram
from kpg.query.ir.compile import compile
from kpg.testing.datalog_oracle import evaluate
from tests.query.input_states import advance_through, assert_answers
from tests.query.random_programs import LAYERS, programs

DERIVED = sorted(name for layer in LAYERS for name in layer)


def inlined(text: str, names: list[str]) -> str:
    """Return a program with inline relations, which have no output."""
    for name in names:
        text = re.sub(rf"(\.decl {name}\(.*\))\n\.output {name}", r"\1 inline", text)
    return text


@settings(max_examples=12, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(programs(), st.lists(st.sampled_from(DERIVED), min_size=1, max_size=3, unique=True))
def test_answers_are_those_without_inlining(random_program, names):
    """A program that may be inlined has the same answers at every epoch, while its inputs change."""
    note(inlined(random_program.text, names))
    try:
        program = compile(parse(inlined(random_program.text, names)))
    except kpg.ProgramError as error:
        assert re.search("depend on each other|inside an aggregate|negated|alternatives", str(error))
        return
    expected_program = parse(random_program.text)
    with kpg.open() as db, InstalledProgram(db, program) as installed:
        states = [{name: state[name] for name in installed.inputs} for state in random_program.epochs]
        for state, _ in zip(random_program.epochs, advance_through(db, installed, states), strict=True):
            assert_answers(installed, evaluate(expected_program, state))


DECLARED = ".decl e(x: number, y: number)\n.decl p(x: number)\n.output p\ne(1, 2). e(2, 3). e(7, 7).\n"

PROGRAMS = [
    (".decl i(x: number) inline\ni(x) :- e(x, x).\np(x) :- i(x).", {7}),
    (".decl i(x: number, y: number) inline\ni(x, x + 1) :- x < 9.\np(y) :- e(x, _), i(x, y).", {2, 3, 8}),
    (".decl i(x: number) inline\ni(1). i(2).\np(x) :- e(x, _), i(x).", {1, 2}),
    (".decl i(x: number) inline\ni(1). i(x) :- x > 5.\np(x) :- e(x, _), !i(x).", {2}),
    (".decl i(x: number, y: number) inline\ni(x, y) :- x < y; x = 7.\np(x) :- e(x, y), !i(x, y).", set()),
    (".decl i, j(x: number) inline\ni(x) :- j(x), x > 1.\nj(x) :- e(x, _).\np(x) :- i(x).", {2, 7}),
    (".decl i(x: number) inline\ni(x) :- e(x, y), y < 3.\np(x) :- i(x); e(x, x), !e(x, 1).", {1, 7}),
    (".decl i(x: number, y: number) inline\ni(x, x) :- e(x, _).\np(x) :- i(x, 7); e(_, x), i(x, x), x < 3.", {2, 7}),
    (".decl i(x: number, y: number) inline\ni(x, y) :- e(x, y).\np(x) :- i(x, _), i(_, x).", {2, 7}),
    (".decl i(x: number, y: number) inline\ni(x, y) :- e(x, z), e(z, y).\np(x) :- i(x, y), i(y, y), e(x, y).", {7}),
    (".decl i() inline\ni() :- e(1, _).\np(5) :- i().\np(6) :- !i().", {5}),
    (".decl i(x: number, n: number) inline\ni(x, n) :- n = count : { e(x, _) }.\np(n) :- e(x, _), i(x, n).", {1}),
    (".decl i(x: number) inline\np(x) :- e(x, _), !i(x).", {1, 2, 7}),
    (".comp C { .decl i(x: number) inline\ni(x) :- e(x, x). }\n.init c = C\np(x) :- c.i(x).", {7}),
    (".decl i(x: number) inline\ni(x), p(x) :- e(x, x).\np(x + 1) :- i(x).", {7, 8}),
    # a record with a wildcard, which occurs twice after inlining
    (
        ".type R = [a: number, b: number]\n.decl i(r: R) inline\n.decl j(r: R)\nj([x, y]) :- e(x, y).\n"
        "i(r) :- j(r), r != [1, 2].\np(x) :- i([x, _]).",
        {2, 7},
    ),
    # recursion through a relation that is not inline
    (".decl i(x: number, y: number) inline\ni(x, y) :- p(x), e(x, y).\np(1).\np(y) :- i(_, y).", {1, 2, 3}),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), PROGRAMS)
def test_inline_relations_are_replaced_by_their_rules(text, expected):
    program = compile(parse(DECLARED + text))
    assert "i" not in program.by_name()
    with kpg.open() as db, InstalledProgram(db, program) as installed:
        installed.insert_facts()
        db.advance()
        assert {row[0] for row in installed.rows("p")} == expected


I1 = ".decl i(x: number) inline\n"
REFUSED = [
    (I1 + ".output i\ni(1).", 5, 7, "is inline and has .output"),
    (I1 + ".input i", 5, 7, "is inline and has .input"),
    (I1 + ".printsize i\ni(1).", 5, 7, "is inline and has .printsize"),
    (I1 + "i(x) :- i(x).\np(x) :- i(x).", 5, 7, "depend on each other: i -> i"),
    (I1 + ".decl j(x: number) inline\ni(x) :- j(x).\nj(x) :- !i(x), e(x, _).", 5, 7, "i -> j -> i"),
    (I1 + "i(x) :- e(x, y), y > 2.\np(x) :- e(x, _), !i(x).", 7, 19, "a rule of it has variables of its own"),
    (".decl i(x: number, y: number) inline\ni(x, y) :- x < y.\np(x) :- e(x, _), !i(x, _).", 7, 24, "with a wildcard"),
    (I1 + "i(x) :- e(x, _).\np(n) :- n = count : { i(_) }.", 7, 23, "inside an aggregate"),
    (I1 + "i(x) :- e(x, _).\np(n) :- n = max x : { e(x, _), !i(x) }.", 7, 33, "inside an aggregate"),
    (I1 + "i(autoinc()) :- e(_, _).\np(x) :- i(x).", 6, 3, "cannot use a counter"),
    (I1 + "i(x) :- x > 3.\np(x) :- i(x).", 7, 3, "not bound"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "line", "column", "words"), REFUSED)
def test_what_cannot_be_inlined_is_refused(text, line, column, words):
    with pytest.raises(kpg.ProgramError, match=re.escape(words)) as caught:
        compile(parse(DECLARED + text))
    assert (caught.value.line, caught.value.column) == (line, column)
