"""Records and algebraic types: constructed, matched, kept up to date, on several workers, in files and in errors."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kpg
from kpg.query.datalog import parse
from kpg.query.datalog.run_files import run
from kpg.query.installed_program import InstalledProgram
from kpg.query.ir.compile import compile
from kpg.testing.datalog_oracle import evaluate
from tests.query.input_states import advance_through, assert_answers

LISTS = """
.type List = [head: number, tail: List]
.type Pair = [a: symbol, b: float]
.decl e(x: number, y: number)
.input e
.decl chain(l: List)
.output chain
chain([x, nil]) :- e(x, _).
chain([y, [x, t]]) :- chain([x, t]), e(x, y), y > x.
.decl length(l: List, n: number)
.output length
length(l, 1) :- chain(l), l = [_, nil].
length(l, n + 1) :- chain(l), l = [_, t], length(t, n).
.decl longest(l: List)
.output longest
longest(l) :- length(l, n), n = max m : { length(_, m) }.
.decl second(x: number, c: number)
.output second
second(x, c) :- chain([_, [x, _]]), c = count : { chain([_, [x, _]]) }.
.decl dead(l: List)
.output dead
dead([x, t]) :- chain([x, t]), !chain([x + 1, [x, t]]).
.decl pair(p: Pair, n: number)
.output pair
pair([cat("k", to_string(x)), to_float(y) / 2.0], x) :- e(x, y).
.decl back(s: symbol, f: float)
.output back
back(s, f) :- pair([s, f], n), n > 0.
"""

TREES = """
.type Expr = Num { value: number } | Add { l: Expr, r: Expr } | Neg { of: Expr } | Zero {}
.decl e(x: number, y: number)
.input e
.decl expr(t: Expr, depth: number)
.output expr
expr($Num(x), 0) :- e(x, _).
expr($Zero, 0) :- e(_, 0).
expr($Neg(t), d + 1) :- expr(t, d), d < 2, t != $Zero.
expr($Add($Num(x), t), d + 1) :- e(x, y), expr(t, d), t = $Num(y), d < 2.
.decl val(t: Expr, v: number)
.output val
val(t, v) :- expr(t, _), t = $Num(v).
val($Zero, 0) :- expr($Zero, _).
val($Neg(t), -v) :- expr($Neg(t), _), val(t, v).
val($Add(l, r), a + b) :- expr($Add(l, r), _), val(l, a), val(r, b).
.decl folded(t: Expr)
.output folded
folded($Add(x, x)) :- expr($Add(x, x), _).
folded($Neg($Neg(t))) :- expr($Neg($Neg(t)), _).
.decl kinds(n: number, m: number)
.output kinds
kinds(n, m) :- n = count : { expr($Num(_), _) }, m = sum v : { expr($Num(v), _); expr($Neg($Num(v)), _) }.
"""

edges = st.sets(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=6)


def expected(text: str, rows: set[tuple[int, int]]) -> dict[str, list[tuple]]:
    return {name: sorted(relation_rows) for name, relation_rows in evaluate(parse(text), {"e": rows}).items()}


@pytest.mark.parametrize("text", [LISTS, TREES], ids=["lists", "trees"])
@settings(max_examples=8, deadline=None)
@given(steps=st.lists(edges, min_size=1, max_size=3))
def test_answers_follow_the_oracle_while_rows_come_and_go(text, steps):
    with kpg.open() as db, InstalledProgram(db, compile(parse(text))) as installed:
        for state in advance_through(db, installed, ({"e": rows} for rows in steps)):
            assert_answers(installed, evaluate(parse(text), state))


def test_records_are_equal_on_all_workers():
    rows = {(0, 1), (1, 2), (2, 3), (0, 2), (3, 0)}
    oracle = expected(LISTS, rows)
    with kpg.open(workers=2) as db, InstalledProgram(db, compile(parse(LISTS))) as installed:
        installed.inputs["e"].insert(list(rows))
        db.advance()
        assert {name: sorted(installed.rows(name)) for name in installed.answers} == {
            name: oracle[name] for name in installed.answers
        }
        installed.inputs["e"].remove([(1, 2)])
        db.advance()
        assert sorted(installed.rows("length")) == expected(LISTS, rows - {(1, 2)})["length"]


def test_files_hold_records_in_souffles_notation(tmp_path: Path):
    (tmp_path / "p.dl").write_text("""
        .type T = [s: symbol, x: unsigned, f: float, rest: T]
        .type B = On { t: T } | Off {}
        .decl r(b: B, n: number)
        .input r
        .output r
        .decl s(t: T)
        .output s
        s(t) :- r($On([_, _, _, t]), _).
    """)
    (tmp_path / "r.facts").write_text(
        '$On([a b, 18446744073709551615, 1.5, nil])\t1\n$On( ["x, ]", 0x10,2 , [q,0,-1,nil]] )\t-0x2\n$Off\t3\n'
    )
    (tmp_path / "changes.txt").write_text("begin\nput r $On([z, 1, 0, [w, 2, 0, nil]]),4 +1\nput r $Off,3 -1\ncommit\n")
    run(tmp_path / "p.dl", facts=tmp_path, out=tmp_path / "out", changes=tmp_path / "changes.txt")
    assert sorted((tmp_path / "out/r.csv").read_text().splitlines()) == [
        "$On([a b, 18446744073709551615, 1.5, nil])\t1",
        "$On([x, ], 16, 2, [q, 0, -1, nil]])\t-2",
        "$On([z, 1, 0, [w, 2, 0, nil]])\t4",
    ]
    assert (tmp_path / "out/s_t1.csv").read_text() == "[w, 2, 0, nil]\t+1\n"


@pytest.mark.parametrize("line", ["$On([a, -1, 0, nil])\t1", "$Of\t1", "[1, 2]\t1", "$On([a, 1, 0, nil]\t1", "nil\t1"])
def test_a_malformed_record_in_a_file_is_refused_with_its_line(tmp_path: Path, line: str):
    (tmp_path / "p.dl").write_text("""
        .type T = [s: symbol, x: unsigned, f: float, rest: T]
        .type B = On { t: T } | Off {}
        .decl r(b: B, n: number)
        .input r
    """)
    (tmp_path / "r.facts").write_text(f"$Off\t1\n{line}\n")
    with pytest.raises(kpg.SchemaMismatch) as raised:
        run(tmp_path / "p.dl", facts=tmp_path, out=tmp_path)
    assert "r.facts:2" in raised.value.what


TYPES = """.type L = [h: number, t: L]
.type P = [x: number, y: symbol]
.type T = A { x: number } | B {}
.decl l(x: L)
.decl p(x: P)
.decl t(x: T)
.decl n(x: number)
"""


NARROWED = """
.type A <: number
.type Pair = [x: A, y: A]
.type Box = Full {x: A} | Empty {}
.decl n(x: number) input
.decl p(q: Pair, b: Box, x: A)
.output p
p([x, x], $Full(x), x) :- n(x).
"""


def test_a_field_in_the_head_narrows_the_type_of_a_variable():
    with kpg.open() as db, InstalledProgram(db, compile(parse(NARROWED))) as installed:
        installed.inputs["n"].insert([(4,)])
        db.advance()
        assert installed.rows("p") == [("[4, 4]", "$Full(4)", 4)]


@pytest.mark.parametrize(("rule", "error", "column", "words"), [
    ("l([1, 2]).", kpg.TypeMismatch, 7, ["2 is number", "L"]),
    ("l([1, 2, 3]).", kpg.TypeMismatch, 3, ["no record type has 3 fields"]),
    ("t($C(1)).", kpg.UndefinedName, 3, ["no type has a branch $C"]),
    ("t($A(1, 2)).", kpg.TypeMismatch, 3, ["$A takes 1 arguments, not 2", "A {x: number}"]),
    ("t($A).", kpg.TypeMismatch, 3, ["$A takes 1 arguments, not 0"]),
    ("t(nil).", kpg.TypeMismatch, 3, ["nil"]),
    ("n(x) :- t(x).", kpg.TypeMismatch, 11, ["x cannot be both number and T"]),
    ("n(x) :- l([x, t]), p([x, t]).", kpg.TypeMismatch, 26, ["t cannot be both"]),
    ("n(1) :- l(x), l(y), x < y.", kpg.TypeMismatch, 21, ["x cannot be both L and number"]),
    ("l([x, nil]) :- n(_).", kpg.UnsafeRule, 4, ["variable 'x'"]),
    ("n(x) :- !l([x, _]).", kpg.UnsafeRule, 3, ["variable 'x'"]),
    ("n(1) :- [1, 2] = [1, 2].", kpg.TypeMismatch, 13, ["2 is number"]),
    ("n(1) :- nil = nil.", kpg.TypeMismatch, 9, ["the type of the record is not determined", "as("]),
    (".type A <: number .type B <: number .type Q = [x: A] .decl q(x: Q) .decl b(x: B) b(x) :- q([x]).",
     kpg.TypeMismatch, 84, ["x is of type A, not B", "x of b"]),
    (".type A <: number .type B <: number .type Q = [x: A] .decl q(x: Q) .decl b(x: B) q([x]) :- b(x).",
     kpg.TypeMismatch, 85, ["x is of type B, not A", "x of Q"]),
    (".type Q = [x: number, x: number]", kpg.ProgramError, 26, ["two fields are called 'x'"]),
    (".type Q = A {} | C {}", kpg.ProgramError, 11, ["$A is a branch of T and of Q"]),
    (".type Q = [x: nothing]", kpg.UndefinedName, 15, ["no type is called 'nothing'"]),
    ("n(1) :- n(x), x = as(x, nothing).", kpg.UndefinedName, 19, ["no type is called 'nothing'"]),
])  # fmt: skip
def test_wrong_records_are_refused_where_they_stand(rule, error, column, words):
    with pytest.raises(error) as raised:
        compile(parse(TYPES + rule))
    assert (raised.value.line, raised.value.column) == (8, column), str(raised.value)
    assert all(word in str(raised.value) for word in words), str(raised.value)


def test_a_long_list_is_taken_apart_in_one_recursion():
    text = """
        .type L = [h: number, t: L]
        .decl l(x: L)
        l(nil).
        l([n, t]) :- n = range(0, 300), l(t), depth(t, n).
        .decl depth(x: L, n: number)
        depth(nil, 0).
        depth([h, t], h + 1) :- l([h, t]).
        .decl total(x: L, n: number)
        total(nil, 0).
        total([h, t], h + n) :- l([h, t]), total(t, n).
        .decl all(n: number)
        .output all
        all(n) :- n = max m : { total(_, m) }.
    """
    with kpg.open() as db, InstalledProgram(db, compile(parse(text))) as installed:
        installed.insert_facts()
        db.advance()
        assert installed.rows("all") == [(300 * 299 // 2,)]


def test_a_query_may_ask_for_a_record(tmp_path: Path, capsys):
    (tmp_path / "p.dl").write_text(LISTS)
    (tmp_path / "e.facts").write_text("1\t2\n2\t3\n")
    run(tmp_path / "p.dl", facts=tmp_path, out=tmp_path, queries=["length([2, [1, nil]], _)"], to_stdout=True)
    assert "[2, [1, nil]]\t2\n" in capsys.readouterr().out


trees = st.recursive(
    st.sampled_from(["$E", "$N(0)", "$N(1)", '$S("a")', '$S(", ]")']),
    lambda inner: st.tuples(inner, inner).map("$P({0[0]}, {0[1]})".format),
    max_leaves=5,
)
patterns = st.recursive(
    st.sampled_from(["_", "x", "y", "$E", "$N(_)", "$N(0)", '$S("a")', "$S(_)"]),
    lambda inner: st.tuples(inner, inner).map("$P({0[0]}, {0[1]})".format),
    max_leaves=4,
)


@settings(max_examples=40, deadline=None)
@given(st.sets(trees, min_size=1, max_size=6), patterns.filter("_".__ne__), patterns.filter("_".__ne__))
def test_any_pattern_matches_what_the_oracle_says(values, first, second):
    """As an argument, in an equation, inside an aggregate, beside another pattern, and bound in a negation."""
    text = "\n".join([
        ".type T = E {} | N {n: number} | S {s: symbol} | P {a: T, b: T}",
        ".decl r(x: T)", *(f"r({value})." for value in values),
        ".decl part(x: T)", "part(x) :- r(x).", "part(a), part(b) :- part($P(a, b)).",
        ".decl one(x: T) .output one", f"one(z) :- part(z), z = {first}.",
        ".decl both(z: T, w: T) .output both", f"both(z, w) :- part(z), z = {first}, part(w), {second} = w.",
        ".decl n(k: number) .output n", f"n(count : {{ part({first}) }}).",
        ".decl pair(x: T, k: number) .output pair", "pair(z, k) :- r(z), k = count : { part($P(z, _)) }.",
        ".decl lone(x: T) .output lone", "lone(x) :- part(x), !part($P(x, x)), !part($P($E, x)).",
        ".decl built(x: T) .output built", "built($P(b, a)) :- r($P(a, b)).",
    ])  # fmt: skip
    program = parse(text)
    with kpg.open() as db, InstalledProgram(db, compile(program)) as installed:
        installed.insert_facts()
        db.advance()
        expected = evaluate(program, {})
        for name in installed.answers:
            assert set(installed.rows(name)) == expected[name], name


def test_a_negated_pattern_may_have_wildcards():
    """`!p([x, _])` asks whether any such record exists, and follows removals."""
    program = compile(
        parse("""
        .type R = [a: number, b: symbol]
        .decl p(r: R, z: number)
        .input p
        .decl n(x: number)
        .input n
        .decl missing(x: number)
        .output missing
        missing(x) :- n(x), !p([x, _], _).
        .decl without(k: number)
        .output without
        without(k) :- k = count : { n(x), !p([x, _], 5) }.
        """)
    )
    with kpg.open() as db, InstalledProgram(db, program) as installed:
        installed.inputs["n"].insert([(1,), (2,)])
        installed.inputs["p"].insert([('[1, "a"]', 5), ('[1, "b"]', 5), ('[2, "a"]', 6)])
        db.advance()
        assert installed.rows("missing") == [] and installed.rows("without") == [(1,)]
        installed.inputs["p"].remove([('[1, "a"]', 5), ('[2, "a"]', 6)])
        db.advance()
        assert installed.rows("missing") == [(2,)] and installed.rows("without") == [(1,)]
        installed.inputs["p"].remove([('[1, "b"]', 5)])
        db.advance()
        assert installed.rows("missing") == [(1,), (2,)] and installed.rows("without") == [(2,)]
