"""Any text is a program or raises a KpgError, never another error."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import kpg
from kpg.query.datalog import parse
from kpg.query.datalog.change_files import transactions
from kpg.query.ir.compile import compile
from kpg.query.ir.constructors import Signatures
from kpg.query.ir.program import Relation, RelationColumn

WORDS = [
    ".decl", ".input", ".output", ".type", ".printsize", "p", "q", "x", "y", "_", "(", ")", ",", ".", ":-", ";", "!",
    "=", "<", "<=", "!=", "<:", "|", ":", "{", "}", "count", "sum", "min", "max", "mean", "range", "cat", "number",
    "symbol", "float", "unsigned", "1", "2.5", '"a"', "+", "-", "*", "/", "%", "^", "true", "false", "to_number",
    "as", "0x", "$", "[", "]", "nil", "inline", "\n", " ", "//", "/*", "*/", "#include", '"', "\\", "@", "é", "\0", "𝕏",
    "p(x)", "q(x, y)", "p(x) :- q(x, y).", ".decl p(x: number)", ".decl q(x: number, y: symbol)", "match", "land",
    "$A", "$B(1)", "[x, nil]", "l([x, y])", "t($A)", "x = [1, y]", "@f(x)", ".functor f(x: number): number", "as(x, L)",
    "R", "L", "T", "range(0, x)", "1.2.3.4", "{ l([x, _]) }",
]  # fmt: skip
DECLARED = (
    ".decl p(x: number)\n.decl q(x: number, y: symbol)\n.decl r(x: float)\n.output p\n"
    ".type L = [h: number, t: L]\n.type R = [a: number, b: symbol]\n.type T = A {} | B {x: number}\n"
    ".decl l(x: L)\n.decl t(x: T)\n.output l\n"
)


def accepted(text: str) -> bool:
    try:
        compile(parse(text))
    except kpg.KpgError as error:
        assert str(error)
        return False
    return True


@settings(max_examples=300)
@given(st.text(max_size=60))
@example("(" * 5000)
@example("p(" * 5000)
@example(DECLARED + "p(x) :- " + "!" * 5000 + "p(x).")
@example(DECLARED + "p(x) :- " + "(" * 3000 + "p(x)" + ")" * 3000 + ".")
@example(DECLARED + "p(x) :- q(x, _), x = " + "-" * 5000 + "1.")
@example(DECLARED + "p(" + "9" * 5000 + ").")
@example(DECLARED + "p(x) :- p(x), " + ", ".join("(p(x); p(x); p(x))" for _ in range(20)) + ".")
@example(DECLARED + "p(x) :- x = 1" + " + 1" * 3000 + ".")
@example(DECLARED + "p(x) :- x = 2" + " ^ 2" * 3000 + ".")
@example(".type A = B\n.type B = A")
def test_any_text_is_a_program_or_an_error(text):
    accepted(text)


@settings(max_examples=400)
@given(st.lists(st.sampled_from(WORDS), max_size=25).map(" ".join))
def test_any_words_are_a_program_or_an_error(text):
    accepted(text)
    accepted(DECLARED + text)


MACRO_WORDS = [
    "#define", "#undef", "#if", "#ifdef", "#ifndef", "#elif", "#else", "#endif", "#include", "#pragma", "#error",
    "#line", "#", "##", "defined", "A", "B", "A(x)", "B(x, y)", "(", ")", ",", "1", "0", "&&", "||", "!", "+", "/",
    "%", "<<", "?", ":", '"a"', '"', "'", "\\", "\n", "\n", "\n", "p(x)", ".", "...", "__VA_ARGS__", "__LINE__",
    "__FILE__", "once", "/*", "*/", "//",
]  # fmt: skip


@settings(max_examples=400)
@given(st.lists(st.sampled_from(MACRO_WORDS), max_size=25).map(" ".join))
def test_any_lines_of_the_preprocessor_are_accepted_or_an_error(text):
    accepted("#define A 1\n" + text)
    accepted(DECLARED + "#define B(x, y) A(x) + y\n" + text)


COMPONENT_WORDS = [
    ".comp", ".comp C {", ".comp D<T> : C {", ".comp E<T> : T {", "}", ".init", ".init c = C", ".init d = D<number>",
    ".init e = E<C>", "C", "D<T>", "<", ">", ":", ",", "=", ".override r", ".decl r(x: number)", "overridable",
    "inline", ".decl s(x: T)", "r(x) :- s(x).", "r(1).", "c.r(x)", "c.r(x) :- d.s(x).", "d.c.r(1).", ".output r",
    ".type T = number", ".plan 0: (1)", ".once", ".", "\n",
]  # fmt: skip


@settings(max_examples=400)
@given(st.lists(st.sampled_from(COMPONENT_WORDS), max_size=25).map(" ".join))
def test_any_components_are_a_program_or_an_error(text):
    accepted(text)


@settings(max_examples=300)
@given(st.lists(st.sampled_from([word for word in WORDS if word[0] not in ".#/"]), max_size=14).map(" ".join))
def test_any_body_is_a_rule_or_an_error(text):
    accepted(f"{DECLARED}p(x) :- q(x, y), {text}.")


def test_the_words_can_form_programs():
    """Otherwise the tests above would only see errors."""
    assert accepted(DECLARED + "p(x) :- q(x, y), x = count : { q(_, _) } .")


@settings(max_examples=200)
@given(st.lists(st.sampled_from(["begin", "commit", "abort", "put", "p", "q", "1", ",", "+1", "-1", '"', " ", "\n"])))
def test_any_changes_are_transactions_or_an_error(words):
    relations = {"p": Relation("p", (RelationColumn("x", "number", "number"),)), "q": Relation("q", ())}
    lines = "".join(words).split("\n")
    try:
        committed = transactions(lines, "f", relations, Signatures())
        assert all(transaction.rows.keys() <= relations.keys() for transaction in committed)
    except kpg.KpgError as error:
        assert "f:" in str(error)


@pytest.mark.parametrize("size", [2_000])
def test_parsing_takes_time_in_proportion_to_the_text(size):
    text = DECLARED + "".join(f"p({number}).\np(x) :- q(x, _), x > {number}.\n" for number in range(size))
    assert len(parse(text).rules) == size
