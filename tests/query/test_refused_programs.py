"""Wrong programs are refused for the right reason, at the right line and column: the classes of errors of Soufflé."""

import re

import pytest

import kpg
from kpg.query.datalog import parse
from kpg.query.ir.compile import compile

# (program, error, line, column, words of the message)
REFUSED = [
    (".decl p(x: number)\np(x) :- q(x).", kpg.UndefinedName, 2, 9, "no relation is called 'q'"),
    (".decl p(x: number)\np(1).\nq(2).", kpg.UndefinedName, 3, 1, "no relation is called 'q'"),
    (".decl p(x: number)\np(x) :- p(x), !q(x).", kpg.UndefinedName, 2, 16, "no relation is called 'q'"),
    (".decl p(x: number)\np(n) :- n = count : { q(_) }.", kpg.UndefinedName, 2, 23, "no relation is called 'q'"),
    (".decl p(x: number)\n.output q", kpg.UndefinedName, 2, 9, "no relation is called 'q'"),
    (".decl p(x: number)\n.input q", kpg.UndefinedName, 2, 8, "no relation is called 'q'"),
    (".decl p(x: number)\n.printsize q", kpg.UndefinedName, 2, 12, "no relation is called 'q'"),
    (".decl p(x: number)\n.decl p(y: number)", kpg.ProgramError, 2, 7, "relation 'p' is declared twice"),
    (".type p <: number\n.decl p(x: number)", kpg.ProgramError, 2, 7, "relation 'p' has the name of a type"),
    (".decl p(x: number)\np(1, 2).", kpg.TypeMismatch, 2, 1, "p has 1 columns, not 2"),
    (".decl p(x: number)\np().", kpg.TypeMismatch, 2, 1, "p has 1 columns, not 0"),
    (".decl p(x: number)\n.decl q(x: number)\np(x) :- q(x, x).", kpg.TypeMismatch, 3, 9, "q has 1 columns, not 2"),
    (
        ".decl p(x: number)\n.decl q(x: number, y: number)\np(x) :- q(x, _), !q(x).",
        kpg.TypeMismatch, 3, 19, "q has 2 columns, not 1",
    ),
    (".decl p(x: nmber)", kpg.UndefinedName, 1, 12, "no type is called 'nmber'"),
    (".type A <: B", kpg.UndefinedName, 1, 12, "no type is called 'B'"),
    (".type A = number | B", kpg.UndefinedName, 1, 20, "no type is called 'B'"),
    (".type A <: number\n.type A <: number", kpg.ProgramError, 2, 7, "type 'A' is declared twice"),
    (".type number <: symbol", kpg.ProgramError, 1, 7, "type 'number' is built in"),
    (".type A <: A", kpg.ProgramError, 1, 7, "type 'A' is defined by itself"),
    (".type A = B\n.type B = A", kpg.ProgramError, 1, 7, "type 'A' is defined by itself"),
    (
        ".type A <: number\n.type B <: symbol\n.type C = A | B",
        kpg.ProgramError, 3, 7, "the parts of type 'C' are of different kinds",
    ),
    (".decl p(x: number, x: number)", kpg.ProgramError, 1, 20, "p has two columns called 'x'"),
    (".decl p(x: number)\np(\"a\").", kpg.TypeMismatch, 2, 3, "'a' is symbol, not number"),
    (".decl p(x: symbol)\np(1).", kpg.TypeMismatch, 2, 3, "1 is number or unsigned or float, not symbol"),
    (".decl p(x: number)\np(1.5).", kpg.TypeMismatch, 2, 3, "1.5 is float, not number"),
    (".decl p(x: unsigned)\np(-1).", kpg.TypeMismatch, 2, 3, "-1 is number or float, not unsigned"),
    (".decl p(x: number)\np(3u).", kpg.TypeMismatch, 2, 3, "3 is unsigned, not number"),
    (
        ".decl p(x: number)\np(99999999999999999999).",
        kpg.TypeMismatch, 2, 3, "99999999999999999999 is out of the range of number",
    ),
    (
        ".decl p(x: number)\n.decl s(x: symbol)\np(x) :- s(x).",
        kpg.TypeMismatch, 3, 11, "x cannot be both number and symbol",
    ),
    (
        ".decl p(x: number)\n.decl s(x: symbol)\np(x) :- p(x), s(x).",
        kpg.TypeMismatch, 3, 17, "x cannot be both number and symbol",
    ),
    (
        ".decl p(x: number)\n.decl s(x: symbol)\np(x) :- p(x), s(y), x = y.",
        kpg.TypeMismatch, 3, 25, "y cannot be both symbol and number",
    ),
    (
        ".decl p(x: number)\n.decl s(x: symbol)\np(x) :- s(y), x = y + 1.",
        kpg.TypeMismatch, 3, 19, "y cannot be both symbol and number",
    ),
    (
        ".decl p(x: number)\n.decl s(x: symbol)\np(x) :- s(y), x = strlen(1).",
        kpg.TypeMismatch, 3, 26, "1 is number or unsigned or float, not symbol",
    ),
    (
        ".decl p(x: number)\np(x) :- p(x), match(\"a\", x).",
        kpg.TypeMismatch, 2, 26, "x cannot be both number and symbol",
    ),
    (
        ".decl s(x: symbol)\n.decl p(x: number)\np(x) :- s(y), x = cat(y, y).",
        kpg.TypeMismatch, 3, 19, "the result of cat is symbol, not number",
    ),
    (
        ".type A <: number\n.type B <: number\n.decl a(x: A)\n.decl b(x: B)\nb(x) :- a(x).",
        kpg.TypeMismatch, 5, 3, "x is of type A, not B",
    ),
    (".decl p(x: number) output output", kpg.ParseError, 1, 27, "output stands twice"),
    (".decl p(x: number, y: number) brie eqrel", kpg.ParseError, 1, 36, "eqrel after brie"),
    (
        ".type A <: number\n.decl a(x: A)\n.decl n(x: number)\na(x) :- n(x).",
        kpg.TypeMismatch, 4, 3, "x is of type number, not A",
    ),
    (
        ".decl s(x: symbol)\n.decl p(x: number)\np(n) :- n = sum x : { s(x) }.",
        kpg.TypeMismatch, 3, 17, "x cannot be both symbol and number or unsigned or float",
    ),
    (".decl p(x: number)\np(strlen(\"a\", \"b\")).", kpg.TypeMismatch, 2, 3, "strlen takes 1 arguments, not 2"),
    (".decl p(x: number)\np(frob(1)).", kpg.UndefinedName, 2, 3, "no functor is called 'frob'"),
    (".decl p(x: number)\np(as(1, nope)).", kpg.UndefinedName, 2, 3, "no type is called 'nope'"),
    (".decl p(x: number)\np(x).", kpg.UnsafeRule, 2, 3, "variable 'x' in a fact is not bound"),
    (".decl p(x: number)\np(_).", kpg.UnsafeRule, 2, 3, "'_' in a fact"),
    (".decl p(x: number)\np(x) :- p(y).", kpg.UnsafeRule, 2, 3, "variable 'x' in the head is not bound"),
    (".decl p(x: number)\np(_) :- p(_).", kpg.UnsafeRule, 2, 3, "'_' in the head"),
    (".decl p(x: number)\np(x + 1) :- p(y).", kpg.UnsafeRule, 2, 3, "variable 'x' in the head is not bound"),
    (".decl p(x: number)\np(y) :- p(y), !p(z).", kpg.UnsafeRule, 2, 18, "variable 'z' in a negation is not bound"),
    (".decl p(x: number)\np(y) :- p(y), y < z.", kpg.UnsafeRule, 2, 19, "variable 'z' in a comparison is not bound"),
    (".decl p(x: number)\np(x) :- x = y, y = x.", kpg.UnsafeRule, 2, 3, "variable 'x' in the head is not bound"),
    (
        ".decl p(x: number)\np(x) :- x = y + 1, y = x - 1.",
        kpg.UnsafeRule, 2, 3, "variable 'x' in the head is not bound",
    ),
    (".decl p(x: number)\np(x) :- !p(x).", kpg.UnsafeRule, 2, 3, "variable 'x' in the head is not bound"),
    (".decl p(x: number)\np(x) :- x > 3.", kpg.UnsafeRule, 2, 3, "variable 'x' in the head is not bound"),
    (".decl p(x: number)\np(1) :- p(y), _ = y.", kpg.UnsafeRule, 2, 15, "'_' in a comparison"),
    (
        ".decl p(x: number)\np(n) :- n = sum z : { p(y) }.",
        kpg.UnsafeRule, 2, 17, "variable 'z' in an aggregate is not bound",
    ),
    (
        ".decl p(x: number)\np(n) :- n = max y : { p(y), y < w }.",
        kpg.UnsafeRule, 2, 33, "variable 'w' in a comparison is not bound",
    ),
    (
        ".decl p(x: number)\n.decl q(x: number)\np(n) :- n = count : { q(x) }, x > 1.",
        kpg.UnsafeRule, 3, 25, "variable 'x' of the count is not bound outside of it",
    ),
    (".decl p(x: symbol)\np(x) :- match(x, \"a\").", kpg.UnsafeRule, 2, 3, "variable 'x' in the head is not bound"),
    (
        ".decl p(x: number)\n.decl q(x: number)\nq(1).\np(x) :- q(x), !p(x).",
        kpg.NotStratified, 4, 16, "p negates something that depends on it",
    ),
    (
        ".decl p(x: number)\n.decl q(x: number)\nq(x) :- p(x).\np(x) :- q(x), !q(x).\n",
        kpg.NotStratified, 4, 16, "p negates something that depends on it",
    ),
    (
        ".decl p(x: number)\np(n) :- n = count : { p(_) }.",
        kpg.NotStratified, 2, 13, "p takes the count of something that depends on it",
    ),
    (
        ".decl a(x: number)\n.decl b(x: number)\n.decl c(x: number)\na(x) :- b(x), !c(x).\nb(1).\nc(x) :- a(x).",
        kpg.NotStratified, 4, 16, "a negates something that depends on it",
    ),
    (
        ".decl a(x: number)\n.decl b(x: number)\na(n) :- n = max x : { b(x) }.\nb(x) :- a(x).",
        kpg.NotStratified, 3, 13, "a takes the max of something that depends on it",
    ),
    (
        ".decl p(x: number)\np(n) :- p(_), n = sum : { p(_) }.",
        kpg.ParseError, 2, 23, "found ':', expected what to take the sum of",
    ),
    (".decl p(x: number)\np(n) :- p(_), n = count x : { p(x) }.", kpg.ParseError, 2, 25, "count takes no expression"),
    (
        ".decl p(x: number)\n.decl q(x: number)\np(x) :- q(x), 1 = count : { q(z) }, z > 1.",
        kpg.UnsafeRule, 3, 31, "variable 'z' of the count is not bound outside of it",
    ),
    (".decl p(x: number)\np(1)", kpg.ParseError, 2, 5, "found the end of the text, expected ':-', ',' or '.'"),
    (".decl p(x: number)\np(1,).", kpg.ParseError, 2, 5, "found ')', expected a variable, a constant or another term"),
    (".decl p(x number)", kpg.ParseError, 1, 11, "found 'number', expected the type of x, as in x: number"),
    (".decl p(x: number\np(1).", kpg.ParseError, 2, 1, "found 'p', expected ',' or ')'"),
    (".decl p(x: number)\np(x) : p(x).", kpg.ParseError, 2, 6, "found ':', expected ':-', ',' or '.'"),
    (
        ".decl p(x: number)\np(x) :- p(x),.",
        kpg.ParseError, 2, 14, "found '.', expected a variable, a constant or another term",
    ),
    (".decl p(x: number)\np(x) :- (p(x).", kpg.ParseError, 2, 14, "found '.', expected ')'"),
    (".decl p(x: symbol)\np(\"a).", kpg.ParseError, 2, 3, "a string is not closed on its line"),
    (".decl p(x: symbol)\np(\"\\q\").", kpg.ParseError, 2, 4, "no such escape: \\q"),
    (".decl p(x: number)\np(1a).", kpg.ParseError, 2, 3, "'1a' is not a number"),
    (".decl p(x: number)\n/* open", kpg.ParseError, 2, 1, "a comment is not closed"),
    (".decl p(x: number) quick", kpg.ParseError, 1, 20, "no qualifier is called 'quick'"),
    (".frob p", kpg.ParseError, 1, 1, "no directive is called '.frob'"),
    (
        ".decl p(x: number)\n.output p(headers)",
        kpg.ParseError, 2, 18, "found ')', expected '=' and the value of headers",
    ),
    (".decl p(x: number)\n.output p(filename=)", kpg.ParseError, 2, 20, "found ')', expected the value of filename"),
    (".decl p(x: number)\np(0x).", kpg.ParseError, 2, 3, "'0x' is not a number"),
    (".decl 1p(x: number)", kpg.ParseError, 1, 7, "'1p' is not a number"),
    (
        ".decl p(x: number)\np(x) :- x p(x).",
        kpg.ParseError, 2, 11, "found 'p', expected '=', '<' or another comparison",
    ),
    (
        ".decl p(x: number)\np(x) :- p(x), strlen(\"a\").",
        kpg.ParseError, 2, 15, "strlen gives a value, and a body needs a condition",
    ),
    (".decl p(x: number)\n1 :- p(x).", kpg.ParseError, 2, 1, "found '1', expected a rule, fact or directive"),
    (".decl p(x: number)\n!p(1).", kpg.ParseError, 2, 1, "found '!', expected a rule, fact or directive"),
    (
        ".decl p(x: number)\np(x) :- p(x).\n.plan 0: (2)",
        kpg.ProgramError, 3, 10, "the order of a plan does not name each atom of the body once",
    ),
    (".decl p(x: number)\np(x) :- p(x).\n.plan 1: (1)", kpg.ProgramError, 3, 10, "there is no version 1 of this rule"),
    (
        ".decl p(x: number)\n.decl q(x: number)\np(x) :- p(x), q(x).\n.plan 0: (1, 1)",
        kpg.ProgramError, 4, 10, "the order of a plan does not name each atom of the body once",
    ),
    (
        ".decl p(x: number)\n.decl q(x: number)\np(x) :- p(x), q(x).\n.plan 0: (1)",
        kpg.ProgramError, 4, 10, "the order of a plan does not name each atom of the body once",
    ),
    (".decl p(x: number)\np(1).\n.plan 0: (1)", kpg.ParseError, 3, 1, ".plan follows no rule"),
    (
        ".decl p(x: number)\n.decl q(x: number)\np(n) :- n = sum x : { q(x), x < m }, m = sum y : { q(y), y < n }.",
        kpg.NotStratified, 3, 13, "depend on each other's results",
    ),
    (".decl p(x: number) eqrel", kpg.ProgramError, 1, 7, "equivalence relation p has 1 columns"),
    (
        ".decl p(x: number, y: symbol) eqrel",
        kpg.TypeMismatch, 1, 20, "the columns of equivalence relation p have different types",
    ),
    (".decl p(x: number) choice-domain y", kpg.ParseError, 1, 34, "p has no column 'y'"),
    (
        ".decl p(x: number)\n.decl q(x: number)\np(x) <= q(y) :- x < y.",
        kpg.ProgramError, 3, 9, "a row of p cannot be subsumed by a row of q",
    ),
    (".lattice L<> { Bottom -> 0 }", kpg.ParseError, 1, 1, "lattices are not supported (.lattice)"),
    (
        ".decl p(x: number)\n.pragma joins",
        kpg.ParseError, 2, 9, "found 'joins', expected the name of a pragma in quotes",
    ),
    (".pragma \"joins\" \"fast\"", kpg.ParseError, 1, 17, "no join strategy is called 'fast'"),
    (".decl p(x: number, d: number) btree_min", kpg.ParseError, 1, 31, "representations that aggregate are not"),
    ('.decl p(x: number, s: symbol)\np($, "a").', kpg.ProgramError, 2, 3, "a fact cannot have a counter"),
    (".decl p(x: number, l: L<>)", kpg.ParseError, 1, 24, "lattices are not supported (L<>)"),
    (".decl p(x: number)\n.decl d = debug_delta(p)", kpg.ParseError, 2, 9, "relations of new rows are not supported"),
    (".decl p(x: number)\np(__ITERATION__()) :- p(_).", kpg.ParseError, 2, 3, "numbers of iterations are"),
    (".decl p(x: number)\np(@@f x : y, { p(x) }).", kpg.ParseError, 2, 3, "user-defined aggregates are not supported"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "kind", "line", "column", "words"), REFUSED, ids=lambda value: str(value)[:60])
def test_a_wrong_program_is_refused_where_it_is_wrong(text, kind, line, column, words):
    with pytest.raises(kpg.ProgramError, match=re.escape(words)) as caught:
        compile(parse(text))
    assert (type(caught.value), caught.value.line, caught.value.column) == (kind, line, column)


ACCEPTED = [
    ".decl log(x: number)\n.decl neg, exp(x: number)\nlog(1).\nneg(x) :- log(x), !exp(x), log(x); neg(x), (exp(x)).",
    # names of types that only kpg has
    ".type string = symbol\n.type date <: symbol\n.type int8 <: number\n.type bool\n.type binary = string | date\n"
    '.decl p(a: string, b: date, c: int8, d: bool)\np("a", "2024", 1000, "yes").\n.decl q(x: symbol, n: number)\n'
    "q(d, n) :- p(_, d, n, _).",
    '.type A\n.decl p(x: A)\n.type B\np("a").',
    "@[on {a [b]}] .decl p(@[x] x: number)\n@[r(p(1).)]\np(x) :- @![why] x = 1.",
    ".decl p(x: number)\n.decl q(x: number)\np($) :- q(_).",
    ".decl p(x: number) btree_delete\np(x) <= p(y) :- x < y.\n.plan 0: (1, 2)",
    ".decl f(x: float)\n.decl u(x: unsigned)\nf(itof(1)). f(utof(1u)). u(itou(1)). u(ftou(1.5)).",
    # what resembles a refused program, and is right
    ".decl p(x: number)\np(x) :- p(x).\n.plan 0: (1)",
    ".decl p, q(x: number)\np(x) :- q(x), p(x), p(x), !q(x).\n.plan 0: (3, 1, 2), 1: (2, 3, 1)",
    ".decl p, q(x: number)\np(x) :- q(x).\n.plan 7: (9)",  # Soufflé checks recursive rules only
    ".decl p(x: number)\np(x) :- p(x); p(x), p(x).\np(1).",
    ".decl p(x: float)\np(1). p(-2). p(1.5).",
    ".decl p(x: unsigned)\np(1). p(3u).",
    '.decl p(x: symbol)\np(cat("a", "b")).',
    ".decl p(x: number)\np(1 + 2 * 3).",
    ".type A <: number\n.decl a(x: A)\n.decl n(x: number)\nn(x) :- a(x).\na(3).",
    '.pragma "legacy"\n.pragma "magic-transform" "*"\n.decl p(x: number) input\n.number_type N\n.type T',
]


@pytest.mark.parametrize("text", ACCEPTED)
def test_a_right_program_is_accepted(text):
    compile(parse(text))
