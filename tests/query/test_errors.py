"""Errors of a program have a position and a hint, and are raised before any data is read: A8.4, A8.5."""

import pytest

import kpg
from kpg.api.memory import resident_bytes
from kpg.query.datalog import parse
from kpg.query.installed_program import InstalledProgram
from kpg.query.ir.compile import compile

DECLARED = """\
.decl e(x: number, y: number)
.decl n(x: symbol)
.decl p(x: number, y: number)
.output p
"""

WRONG = [
    # (what is added to the declarations, error, line, column, words of the message)
    ("p(x, y) :- e(x, z).", kpg.UnsafeRule, 5, 6, ["variable 'y' in the head is not bound", "positive atom"]),
    ("p(x, x) :- e(x, _), !e(x, z).", kpg.UnsafeRule, 5, 27, ["'z' in a negation"]),
    ("p(x, x) :- e(x, _), x < z.", kpg.UnsafeRule, 5, 25, ["'z' in a comparison"]),
    ("p(x, _) :- e(x, _).", kpg.UnsafeRule, 5, 6, ["'_' in the head"]),
    ("p(x, y) :- e(x, z), y = w + 1.", kpg.UnsafeRule, 5, 6, ["'y' in the head"]),
    ("p(x, n) :- e(x, _), n = sum z : { e(z, _), z < w }, e(w2, w2).", kpg.UnsafeRule, 5, None, ["'w'"]),
    ("p(x, n) :- n = count : { e(x, _) }.", kpg.UnsafeRule, 5, None, ["'x' of the count is not bound outside"]),
    ("p(x, y) :- e(x, y), !p(y, x).", kpg.NotStratified, 5, 22, ["p negates", "The cycle is p -> p"]),
    ("p(x, n) :- e(x, _), n = count : { p(x, _) }.", kpg.NotStratified, 5, 25, ["takes the count", "p -> p"]),
    (".decl q(x: number)\nq(x) :- e(x, _), !p(x, x).\np(x, x) :- q(x).", kpg.NotStratified, 6, 19, ["q", "p"]),
    ("p(x, y) :- edge(x, y).", kpg.UndefinedName, 5, 12, ["no relation is called 'edge'", "There are e, n, p."]),
    ("p(x, y) :- e(x, y, z).", kpg.TypeMismatch, 5, 12, ["e has 2 columns, not 3", "e(x: number, y: number)"]),
    ("p(x, y) :- e(x, y), n(y).", kpg.TypeMismatch, 5, 23, ["y cannot be both number and symbol", "as x of n"]),
    ('p(x, "a") :- e(x, _).', kpg.TypeMismatch, 5, 6, ["'a' is symbol, not number"]),
    ("p(x, 1.5) :- e(x, _).", kpg.TypeMismatch, 5, 6, ["1.5 is float, not number"]),
    ("p(x, y) :- e(x, y), cat(x, \"a\") = \"b\".", kpg.TypeMismatch, 5, 25, ["argument of cat"]),
    ("p(x, y) :- e(x, y), z = strle(x).", kpg.UndefinedName, 5, 25, ["no functor", "Did you mean 'strlen'?"]),
    ("p(x, y) :- e(x, y), z = substr(\"a\", 1).", kpg.TypeMismatch, 5, 25, ["substr takes 3 arguments, not 2"]),
    ("p(x, 99999999999999999999) :- e(x, _).", kpg.TypeMismatch, 5, 6, ["out of the range of number"]),
    ("p(x, y) :- e(x, y)", kpg.ParseError, 5, 19, ["the end of the text", "'.' at its end"]),
    ("p(x, y) :- e(x, y))", kpg.ParseError, 5, 19, ["found ')'"]),
    ("p(x, y) :- e(x, 'a').", kpg.ParseError, 5, 17, ["unexpected character", "Strings are written"]),
    ("p(x, y) :- e(x, größe).", kpg.ParseError, 5, 19, ["unexpected character 'ö'", "Names have the letters"]),
    ('n("abc).', kpg.ParseError, 5, 3, ["not closed on its line"]),
    ('n("a\\q").', kpg.ParseError, 5, 5, ["no such escape: \\q"]),
    ("/* never closed", kpg.ParseError, 5, 1, ["a comment is not closed"]),
    (".dcl q(x: number)", kpg.ParseError, 5, 1, ["no directive is called '.dcl'", "Did you mean '.decl'?"]),
    (".decl q(x: numbr)", kpg.UndefinedName, 5, 12, ["no type is called 'numbr'", "Did you mean 'number'?"]),
    (".decl e(x: number)", kpg.ProgramError, 5, 7, ["declared twice", "First at program:1:7"]),
    (".decl q(x: number, x: number)", kpg.ProgramError, 5, 20, ["two columns called 'x'"]),
    ("p(x, y) :- c.e(x, y).", kpg.UndefinedName, 5, 12, ["no relation is called 'c.e'"]),
    (".decl q(x: number) eqrel", kpg.ProgramError, 5, 7, ["equivalence relation q has 1 columns"]),
    (".decl q(x: number, y: number) inline eqrel", kpg.ProgramError, 5, 7, ["inline and an equivalence relation"]),
    (".decl q(x: number, y: symbol) eqrel", kpg.TypeMismatch, 5, 20, ["different types"]),
    (".decl q(x: number, y: number) choice-domain z", kpg.ParseError, 5, 45, ["q has no column 'z'"]),
    (".decl q(x: number) eqrel choice-domain x", kpg.ProgramError, 5, 26, ["and have a choice domain"]),
    ("p(x, count(y)) :- e(x, y). p(x, y) :- e(x, y).", kpg.ProgramError, 5, 28, ["p has a count in its head"]),
    (".decl q(x: symbol) q(count(y)) :- e(_, y).", kpg.TypeMismatch, 5, 22, ["the count is number, not symbol"]),
    ("p(x, count(y)) :- e(x, y), p(x, _).", kpg.NotStratified, 5, 6, ["takes the count", "p -> p"]),
    ("p(x, z) :- x = sum y : { e(y, z) }.", kpg.UnsafeRule, 5, None, ["'z' of the sum is not bound outside"]),
    ("p(x, x) :- x = sum y : { e(y, _), y < x }.", kpg.NotStratified, 5, 16, ["the sum depends on its own result"]),
    (
        "p(x, z) :- x = sum y : { e(y, _), y < z }, z = min y : { e(y, _), y > x }.",
        kpg.NotStratified, 5, 16, ["the sum and the min at program:5:48 depend on each other's results"],
    ),
    (".decl q(x: number, y: number) eqrel q(x, min(y)) :- e(x, y).", kpg.ProgramError, 5, 37, ["it is an equivalence"]),
    ("p(x, min(y)) :- e(x, y). p(a, b) <= p(c, d) :- a < c.", kpg.ProgramError, 5, 26, ["aggregates in its heads"]),
    ("p(x, min(y)) :- e(x, y). p(x, max(y)) :- e(x, y).", kpg.ProgramError, 5, 26, ["different aggregates"]),
    (".type R = [a: number, a: symbol]", kpg.ProgramError, 5, 26, ["two fields are called 'a'"]),
    ("p(x, y) :- e(x, y), z = [x, y].", kpg.TypeMismatch, 5, 25, ["no record type has 2 fields", "Declare one"]),
    ("p(x, y) :- e(x, y), z = @g(x).", kpg.UndefinedName, 5, 25, ["no functor @g is declared", ".functor g("]),
    ("p(x, y) <= e(x, z) :- y < z.", kpg.ProgramError, 5, 12, ["cannot be subsumed by a row of e"]),
    (".functor f(x: number): nothing", kpg.UndefinedName, 5, 24, ["no type is called 'nothing'"]),
    ("#defne A 1", kpg.ParseError, 5, 1, ["no preprocessor directive is called #defne"]),
    ('.include "nowhere.dl"', kpg.ParseError, 5, 10, ["cannot include 'nowhere.dl'"]),
    (".output q", kpg.UndefinedName, 5, 9, ["no relation is called 'q'"]),
    ("p(x, y) :- e(x, y), strlen(\"a\").", kpg.ParseError, 5, 21, ["strlen gives a value"]),
    ("p(x, n) :- e(x, _), n = count x : { e(x, _) }.", kpg.ParseError, 5, 31, ["count takes no expression"]),
    ("p(x, n) :- e(x, _), n = sum : { e(x, _) }.", kpg.ParseError, 5, 29, ["what to take the sum of"]),
    (".type A <: number\n.decl q(x: A)\nq(x) :- e(x, _).\n", kpg.TypeMismatch, 7, 3, ["is of type number, not A"]),
    (
        ".type A <: symbol\n.type B <: symbol\n.decl a(x: A)\n.decl b(x: B)\n.decl q(x: symbol)\nq(x) :- a(x), b(x).",
        kpg.TypeMismatch, 10, 17, ["cannot be of the types A and B at once"],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("text", "kind", "line", "column", "words"), WRONG, ids=lambda value: str(value)[:40])
def test_errors_have_a_position_and_words_of_the_user(text, kind, line, column, words):
    """A8.4, A8.5: unbound heads, unstratified negation and other errors are refused."""
    with pytest.raises(kpg.ProgramError) as caught:
        compile(parse(DECLARED + text))
    error = caught.value
    assert type(error) is kind
    assert error.line == line and column in (None, error.column), (error.line, error.column)
    assert all(word in str(error) for word in words), str(error)
    assert f"program:{line}:" in error.what and "^" in (error.detail or "")


def test_the_caret_stands_under_the_position():
    with pytest.raises(kpg.UndefinedName) as caught:
        compile(parse(DECLARED + "p(x, y) :-\tedgee(x, y)."))
    shown, marks = str(caught.value).splitlines()[1:3]
    assert shown[marks.index("^")] == "e" and shown[: marks.index("^")].endswith(":- ")


def test_a_recursion_that_does_not_end_is_stopped_and_named():
    """A8.3: the limit of rounds; the error names the relation and the position of its rule."""
    program = compile(parse(".decl n(x: number)\n.output n\nn(0).\nn(x + 1) :- n(x).", "endless.dl"))
    with kpg.open() as db:
        installed = InstalledProgram(db, program, max_rounds=40)
        installed.insert_facts()
        db.advance()
        with pytest.raises(
            kpg.TooManyRounds, match=r"the recursion of n \(endless.dl:4:1\) did not reach a fixed point within 40"
        ):
            installed.rows("n")


def test_a_row_with_failing_arithmetic_fails_the_answer_until_it_is_removed():
    program = compile(parse(".decl a(x: number)\n.input a\n.decl p(x: number)\n.output p\np(10 / x) :- a(x)."))
    with kpg.open() as db, InstalledProgram(db, program) as installed:
        installed.inputs["a"].insert([(0,), (3,)])
        db.advance()
        with pytest.raises(kpg.DataError):
            installed.rows("p")
        installed.inputs["a"].remove([(0,)])
        db.advance()
        assert installed.rows("p") == [(3,)]


def test_a_negative_unsigned_number_fails_its_row():
    text = ".decl a(x: unsigned)\n.input a\n.decl p(x: unsigned)\n.output p\np(x - 2) :- a(x)."
    with kpg.open() as db, InstalledProgram(db, compile(parse(text))) as installed:
        installed.inputs["a"].insert([(5,)])
        db.advance()
        assert installed.rows("p") == [(3,)]
        installed.inputs["a"].insert([(1,)])
        db.advance()
        with pytest.raises(kpg.DataError):
            installed.rows("p")


def test_reading_a_relation_that_is_no_output_lists_the_outputs():
    with kpg.open() as db, InstalledProgram(db, compile(parse(DECLARED + "p(x, y) :- e(x, y)."))) as installed:
        with pytest.raises(kpg.UndefinedName, match="'e' is not an output"):
            installed.rows("e")


def test_an_unbounded_product_meets_the_memory_limit():
    """A cross product is allowed, explain shows it, and a memory limit stops it."""
    text = ".decl a(x: number)\n.input a\n.decl p(x: number, y: number)\n.output p\np(x, y) :- a(x), a(y)."
    with (
        kpg.open() as db,
        InstalledProgram(db, compile(parse(text))) as installed,
    ):  # what it runs on is loaded before it counts
        installed.inputs["a"].insert([(1,)])
        db.advance()
        assert installed.rows("p") == [(1, 1)]
    with kpg.open(memory_limit=resident_bytes() + 150_000_000) as db:
        installed = InstalledProgram(db, compile(parse(text)))
        installed.inputs["a"].insert([(number,) for number in range(40_000)])  # more than freed memory
        with pytest.raises(kpg.OverBudget):
            db.advance()
            installed.rows("p")
