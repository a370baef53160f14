"""Values of the dialect: unsigned numbers of 64 bits, small integers, bool, ranges, and the functors of numbers."""

import math
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
from tests.query.input_states import advance_through

MAX = 2**64 - 1


def answers(text: str, **inputs) -> dict[str, list[tuple]]:
    with kpg.open() as db, InstalledProgram(db, compile(parse(text))) as installed:
        installed.insert_facts()
        for name, rows in inputs.items():
            installed.inputs[name].insert(rows)
        db.advance()
        return {name: sorted(installed.rows(name)) for name in installed.answers}


def value(term: str, type_: str = "number") -> object:
    ((answer,),) = answers(f".decl p(x: {type_})\n.output p\np(v) :- v = {term}.")["p"]
    return answer


@pytest.mark.parametrize(("term", "type_", "expected"), [
    ("18446744073709551615", "unsigned", MAX), ("0xFFFFFFFFFFFFFFFF", "unsigned", MAX),
    ("18446744073709551614u + 1u", "unsigned", MAX), ("18446744073709551615u / 2u", "unsigned", 2**63 - 1),
    ("18446744073709551615u % 10u", "unsigned", 5), ("2u ^ 63u", "unsigned", 2**63),
    ("1u bshl 63u", "unsigned", 2**63), ("18446744073709551615u bshr 63u", "unsigned", 1),
    ("bnot 0u", "unsigned", MAX), ("18446744073709551615u band 255u", "unsigned", 255),
    ("max(1u, 18446744073709551615u)", "unsigned", MAX), ("1u land 3u", "unsigned", 1),
    ("to_unsigned(\"18446744073709551615\")", "unsigned", MAX), ("to_unsigned(3.9)", "unsigned", 3),
    ("to_number(18446744073709551615u - 18446744073709551610u)", "number", 5),
    ("to_string(18446744073709551615u)", "symbol", str(MAX)), ("to_float(9223372036854775808u)", "float", 2.0**63),
    ("as(-1, unsigned)", "unsigned", MAX), ("as(18446744073709551614u, number)", "number", -2),
    ("as(7, unsigned)", "unsigned", 7), ('ord("a") - as("a", number)', "number", 0),
    ("-8 bshru 60", "number", 15), ("-8 bshr 1", "number", -4), ("1.2.3.4", "number", 0x01020304),
    ("255.255.255.255", "number", -1), ('to_number("0x1F")', "number", 31), ('to_number("-0b11")', "number", -3),
    ('"\\a\\v"', "symbol", "\a\v"), ("true", "bool", True), ("2147483647", "int32", 2**31 - 1),
    ("sin(0.5)", "float", math.sin(0.5)), ("acosh(2.0)", "float", math.acosh(2)), ("log(2.0)", "f64", math.log(2)),
    ("exp(1)", "f32", math.e), ("atan(1.0) * 4.0", "float", math.pi), ("3 - -4", "int64", 7),
])  # fmt: skip
def test_terms(term, type_, expected):
    answer = value(term, type_)
    assert answer == (pytest.approx(expected, rel=1e-15) if isinstance(expected, float) else expected)


@pytest.mark.parametrize(("term", "type_"), [
    ("x + 1u", "unsigned"), ("y - 1u", "unsigned"), ("x * 2u", "unsigned"), ("x / y", "unsigned"),
    ("x % y", "unsigned"), ("to_unsigned(to_number(y) - 1)", "unsigned"), ("to_number(x)", "number"),
    ('to_number(cat("0x", "g"))', "number"),
    ("x ^ 2u", "unsigned"), ("-(y + 1u)", "unsigned"), ("to_unsigned(-0.5 * to_float(x))", "unsigned"),
    ("to_number(y) + 128", "int8"), ("to_number(y) - 129", "int8"), ("y + 256u", "uint8"),
])  # fmt: skip
def test_results_out_of_range_fail_their_row(term, type_):
    text = f".decl e(x: unsigned, y: unsigned)\n.decl p(v: {type_})\n.output p\np(v) :- e(x, y), v = {term}."
    with kpg.open() as db, InstalledProgram(db, compile(parse(text))) as installed:
        installed.inputs["e"].insert([(MAX, 0)])
        db.advance()
        with pytest.raises(kpg.DataError):
            installed.rows("p")
        installed.inputs["e"].remove([(MAX, 0)])
        db.advance()
        assert installed.rows("p") == []


numbers = st.one_of(st.integers(0, 3), st.integers(2**63 - 2, 2**63 + 2), st.integers(MAX - 3, MAX))


@settings(max_examples=15, deadline=None)
@given(st.lists(st.sets(st.tuples(st.integers(0, 2), numbers), max_size=6), min_size=1, max_size=3))
def test_unsigned_numbers_sort_join_and_add_up_as_numbers(steps):
    text = """
        .decl e(k: number, x: unsigned)
        .decl s(k: number, least: unsigned, most: unsigned, n: number)
        .output s
        s(k, a, b, n) :- e(k, _), a = min x : { e(k, x) }, b = max x : { e(k, x) }, n = count : { e(k, _) }.
        .decl above(x: unsigned, y: unsigned)
        .output above
        above(x, y) :- e(_, x), e(_, y), x > y, x - y < 9223372036854775808.
        .decl total(x: unsigned)
        .output total
        total(t) :- t = sum y : { e(_, x), y = x / 8 }.
    """
    with kpg.open() as db, InstalledProgram(db, compile(parse(text))) as installed:
        for state in advance_through(db, installed, ({"e": rows} for rows in steps)):
            rows = state["e"]
            groups = {k: sorted(x for j, x in rows if j == k) for k, _ in rows}
            assert sorted(installed.rows("s")) == sorted((k, xs[0], xs[-1], len(xs)) for k, xs in groups.items())
            all_numbers = {x for _, x in rows}
            expected = {(x, y) for x in all_numbers for y in all_numbers if 0 < x - y < 2**63}
            assert set(installed.rows("above")) == expected
            assert installed.rows("total") == [(sum(x // 8 for _, x in rows),)]


def test_a_sum_beyond_64_bits_fails():
    text = ".decl e(x: unsigned)\n.decl t(x: unsigned)\n.output t\nt(s) :- s = sum x : { e(x) }."
    with kpg.open() as db, InstalledProgram(db, compile(parse(text))) as installed:
        installed.inputs["e"].insert([(MAX,), (1,)])
        db.advance()
        with pytest.raises(kpg.DataError):
            installed.rows("t")
        installed.inputs["e"].remove([(1,)])
        db.advance()
        assert installed.rows("t") == [(MAX,)]


def test_unsigned_numbers_cross_workers_and_files(tmp_path: Path):
    text = """
        .decl e(x: unsigned)
        .input e
        .decl p(x: unsigned)
        .output p
        p(x) :- e(x).
        p(x - 1) :- p(x), x > 18446744073709551612.
    """
    rows = [(MAX,), (0,), (2**63,)]
    expected = [(0,), (2**63,), (MAX - 3,), (MAX - 2,), (MAX - 1,), (MAX,)]
    with kpg.open(workers=2) as db, InstalledProgram(db, compile(parse(text))) as installed:
        installed.inputs["e"].insert(rows)
        db.advance()
        assert sorted(installed.rows("p")) == expected
    (tmp_path / "p.dl").write_text(text)
    (tmp_path / "e.facts").write_text(f"{MAX}\n0x0\n{2**63}\n")
    run(tmp_path / "p.dl", facts=tmp_path, out=tmp_path)
    assert (tmp_path / "p.csv").read_text() == "".join(f"{x}\n" for (x,) in expected)
    for wrong in ("-1", str(MAX + 1), "1.5"):
        (tmp_path / "e.facts").write_text(f"1\n{wrong}\n")
        with pytest.raises(kpg.SchemaMismatch, match="e.facts:2"):
            run(tmp_path / "p.dl", facts=tmp_path, out=tmp_path)


def test_ord_identifies_symbols_on_all_workers():
    text = """
        .type R = [s: symbol]
        .decl e(s: symbol)
        .input e
        .decl same(a: symbol, b: symbol)
        .output same
        same(a, b) :- e(a), e(b), ord(a) = ord(b), ord([a]) = ord([b]), as(a, number) = ord(b).
    """
    with kpg.open(workers=2) as db, InstalledProgram(db, compile(parse(text))) as installed:
        installed.inputs["e"].insert([(f"s{number}",) for number in range(20)])
        db.advance()
        assert sorted(installed.rows("same")) == sorted((f"s{number}", f"s{number}") for number in range(20))


bounds = st.integers(-6, 6)


@settings(max_examples=25, deadline=None)
@given(st.sets(st.tuples(bounds, bounds, st.integers(-3, 3)), max_size=5), st.sets(bounds, max_size=5))
def test_ranges_follow_the_oracle_as_generators_and_as_conditions(rows, members):
    text = """
        .decl b(f: number, t: number, s: number)
        .input b
        .decl m(x: number)
        .input m
        .decl r(f: number, t: number, s: number, x: number)
        .output r
        r(f, t, s, x) :- b(f, t, s), x = range(f, t, s).
        .decl two(f: number, t: number, x: number)
        .output two
        two(f, t, x) :- b(f, t, _), x = range(f, t).
        .decl inside(f: number, t: number, s: number, x: number)
        .output inside
        inside(f, t, s, x) :- m(x), b(f, t, s), x = range(f, t, s).
        .decl also(x: number)
        .output also
        also(x) :- m(x), x = range(0, 5).
        .decl nested(x: number)
        .output nested
        nested(range(0, 3) + 10 * range(0, 2)) :- m(_).
    """
    program = parse(text)
    with kpg.open() as db, InstalledProgram(db, compile(program)) as installed:
        installed.inputs["b"].insert(list(rows))
        installed.inputs["m"].insert([(x,) for x in members])
        db.advance()
        expected = evaluate(program, {"b": rows, "m": {(x,) for x in members}})
        for name in installed.answers:
            assert set(installed.rows(name)) == expected[name], name


def test_ranges_of_unsigned_numbers_and_floats():
    text = """
        .decl u(x: unsigned)
        .output u
        u(x) :- x = range(18446744073709551612u, 18446744073709551615u).
        u(x) :- x = range(5u, 1u).
        .decl f(x: float)
        .output f
        f(x) :- x = range(1.0, 2.0, 0.5).
        f(x) :- x = range(9.0, 2.0, 0.0).
    """
    assert answers(text) == {"u": [(MAX - 3,), (MAX - 2,), (MAX - 1,)], "f": [(1.0,), (1.5,), (9.0,)]}


def test_small_integers_are_checked_where_they_enter():
    text = ".decl e(x: int8, y: uint16)\n.input e\n.decl p(x: int8)\n.output p\np(x) :- e(x, _)."
    assert answers(text, e=[(127, 65535), (-128, 0)])["p"] == [(-128,), (127,)]
    for row in [(128, 0), (-129, 0), (0, 65536)]:
        with pytest.raises(kpg.DataError, match="out of the range of"):
            answers(text, e=[row])
    with pytest.raises(kpg.TypeMismatch, match="300 is out of the range of int8"):
        compile(parse(text + "\ne(300, 1)."))


def test_bools_are_values():
    text = """
        .decl e(x: number, b: bool)
        .input e
        .output e
        .decl p(x: number)
        .output p
        p(x) :- e(x, true).
        p(-x) :- e(x, b), b != true.
        e(7, false).
    """
    assert answers(text, e=[(1, True), (2, False)]) == {
        "e": [(1, True), (2, False), (7, False)],
        "p": [(-7,), (-2,), (1,)],
    }


def test_an_invalid_regular_expression_is_an_error():
    text = '.decl e(r: symbol)\n.decl p(r: symbol)\n.output p\np(r) :- e(r), !match(r, "a").'
    with kpg.open() as db, InstalledProgram(db, compile(parse(text))) as installed:
        installed.inputs["e"].insert([("b",), ("[",)])
        db.advance()
        with pytest.raises(kpg.DataError, match="is not a regular expression"):
            installed.rows("p")
        installed.inputs["e"].remove([("[",)])
        db.advance()
        assert installed.rows("p") == [("b",)]


def test_casts_reach_types_that_are_declared_later():
    text = """
        .decl p(x: Name)
        .output p
        p(as("a", Name)).
        .type Name <: symbol
        .type A = [x: number, y: number]
        .type B = [u: number, v: number]
        .decl b(x: B)
        .output b
        b(as(a, B)) :- a = as([1, 2], A).
    """
    assert answers(text) == {"p": [("a",)], "b": [("[1, 2]",)]}
