"""Each construct of Datalog, with its meaning. Rows A8.1, A8.2, A8.3."""

from pathlib import Path

import pytest

import kpg
from kpg.query.datalog import parse, parse_file
from kpg.query.installed_program import InstalledProgram
from kpg.query.ir.compile import compile
from kpg.testing.datalog_oracle import evaluate


def answers(text: str, **inputs) -> dict[str, list[tuple]]:
    """Return the outputs of a program, checked against the oracle if it implements all functors."""
    program = parse(text)
    with kpg.open() as db, InstalledProgram(db, compile(program)) as installed:
        installed.insert_facts()
        for name, rows in inputs.items():
            installed.inputs[name].insert(rows)
        db.advance()
        answer = {name: sorted(installed.rows(name)) for name in installed.answers}
    try:
        expected = evaluate(program, inputs)
    except ValueError:
        return answer
    assert answer == {name: sorted(expected[name]) for name in answer}
    return answer


def value(term: str, type_: str = "number") -> object:
    """Return the value of a term."""
    ((answer,),) = answers(f".decl p(x: {type_})\n.output p\np(v) :- v = {term}.")["p"]
    return answer


@pytest.mark.parametrize(("term", "expected"), [
    ("1 + 2 * 3", 7), ("(1 + 2) * 3", 9), ("7 - 2 - 1", 4), ("-7 / 2", -3), ("7 / -2", -3), ("-7 % 3", -1),
    ("7 % -3", 1), ("2 ^ 10", 1024), ("2 ^ 3 ^ 2", 512), ("0x1F", 31), ("0b101", 5), ("- (3)", -3), ("min(3, 1, 2)", 1),
    ("max(3, 1)", 3), ("6 band 3", 2), ("6 bor 3", 7), ("6 bxor 3", 5), ("bnot 0", -1), ("1 bshl 4", 16),
    ("16 bshr 2", 4), ("1 land 0", 0), ("1 lor 0", 1), ("lnot 0", 1), ("2 lxor 0", 1), ('strlen("hello")', 5),
    ('to_number("42")', 42), ("to_number(2.9)", 2), ("to_number(-2.9)", -2), ("to_number(3)", 3), ("ord(7)", 7),
])  # fmt: skip
def test_arithmetic(term, expected):
    assert value(term) == expected


@pytest.mark.parametrize(("term", "type_", "expected"), [
    ('cat("a", "b", "c")', "symbol", "abc"), ('"a" + "b" + "c"', "symbol", "abc"),
    ('substr("hello", 1, 3)', "symbol", "ell"),
    ('substr("hello", 9, 1)', "symbol", ""), ('substr("hello", -1, 1)', "symbol", ""),
    ("to_string(42)", "symbol", "42"),
    ("to_string(1.5)", "symbol", "1.500000"),
    ('max("a", "b")', "symbol", "b"), ("7.0 / 2", "float", 3.5),
    ("to_float(3) / 2", "float", 1.5), ('to_float("2.5")', "float", 2.5), ("2.0 ^ 0.5", "float", 2**0.5),
    ("1.5e3", "float", 1500.0), ("-1.5", "float", -1.5), ("5u - 2u", "unsigned", 3),
    ('to_unsigned("7")', "unsigned", 7),
    ("7 / 2", "unsigned", 3),
    ('"tab\\tquote\\"back\\\\"', "symbol", 'tab\tquote"back\\'), ("as(3, number)", "number", 3),
])  # fmt: skip
def test_functors_of_all_kinds(term, type_, expected):
    assert value(term, type_) == expected


@pytest.mark.parametrize(("body", "holds"), [
    ("1 < 2", True), ("2 <= 1", False), ('"a" < "b"', True), ("1.5 > 1.0", True), ("1 != 1", False), ("true", True),
    ("false", False), ("!false", True), ("!(1 = 2; 2 = 3)", True), ("!(1 = 1, 2 = 2)", False), ("!!(1 = 1)", True),
    ('match("a.*c", "abc")', True), ('match("a", "abc")', False),
    ('match("[[:digit:]]+", "12")', True),
    ('contains("b", "abc")', True), ('!contains("x", "abc")', True), ("(1 + 1) = 2", True), ("(1 = 1)", True),
])  # fmt: skip
def test_conditions(body, holds):
    assert answers(f".decl p()\n.output p\np() :- {body}.")["p"] == ([()] if holds else [])


def test_ord_distinguishes_symbols():
    text = '.decl s(x: symbol)\n.decl p(x: symbol, n: number)\n.output p\ns("a"). s("b").\np(x, ord(x)) :- s(x).'
    (_, a), (_, b) = answers(text)["p"]
    assert a != b


def test_range_gives_each_value():
    text = """
    .decl p(x: number) .decl q(x: float) .decl r(x: number, y: number)
    .output p .output q .output r
    .decl a(x: number) .input a
    p(x) :- x = range(1, 4). p(x) :- x = range(10, 4, -3). p(x) :- x = range(1, 5, 0).
    q(x) :- x = range(0, 1, 0.25).
    r(x, y) :- a(x), y = range(0, x).
    """
    answer = answers(text, a=[(1,), (2,)])
    assert answer["p"] == [(1,), (2,), (3,), (7,), (10,)] and answer["q"] == [(0.0,), (0.25,), (0.5,), (0.75,)]
    assert answer["r"] == [(1, 0), (2, 0), (2, 1)]


E = ".decl e(x: number, y: number)\n.input e\n.decl p(x: number, n: number)\n.output p\n"
EDGES = [(1, 2), (1, 3), (2, 3), (4, 4)]


@pytest.mark.parametrize(("rule", "expected"), [
    ("p(0, n) :- n = count : { e(_, _) }.", [(0, 4)]),
    ("p(0, n) :- n = count : e(_, _).", [(0, 4)]),
    ("p(x, n) :- e(x, _), n = count : { e(x, _) }.", [(1, 2), (2, 1), (4, 1)]),
    ("p(y, n) :- e(_, y), n = count : { e(y, _) }.", [(2, 1), (3, 0), (4, 1)]),
    ("p(y, n) :- e(_, y), n = sum z : { e(y, z) }.", [(2, 3), (3, 0), (4, 4)]),
    ("p(y, n) :- e(_, y), n = sum z * 2 : { e(y, z), z > 3 }.", [(2, 0), (3, 0), (4, 8)]),
    ("p(y, n) :- e(_, y), n = min z : { e(y, z) }.", [(2, 3), (4, 4)]),
    ("p(x, n) :- e(x, _), n = max y : { e(x, y) }.", [(1, 3), (2, 3), (4, 4)]),
    ("p(x, n) :- e(x, _), n = count : { e(_, y), y > x }.", [(1, 4), (2, 3), (4, 0)]),
    ("p(x, count : { e(x, _) } + 1) :- e(x, _).", [(1, 3), (2, 2), (4, 2)]),
    ("p(x, x) :- e(x, _), count : { e(x, _) } = 2.", [(1, 1)]),
    ("p(0, n) :- n = count : { e(x, _); e(_, x) }.", [(0, 4)]),
    ("p(0, n) :- n = max c : { e(x, _), c = count : { e(x, _) } }.", [(0, 2)]),
    ("p(n, m) :- n = count : { e(_, _) }, m = count : { e(_, y), y < n }.", [(4, 3)]),
    ("p(0, n) :- n = sum x : { e(x, _), !e(x, x) }.", [(0, 4)]),
    ("p(0, n) :- n = sum x : { e(x, y), e(y, _) }.", [(0, 5)]),
    ("p(x, n) :- n = min y : { e(x, y) }.", [(1, 2)]),
    ("p(x, n) :- n = max y : { e(x, y), x < 3 }.", [(1, 3), (2, 3)]),
    ("p(x, n) :- n = max y : { e(x, y); e(y, x) }, n > 0.", [(4, 4)]),
    ("p(x, n) :- e(x, y), y = 3, n = sum y : { e(x, y) }.", [(1, 5), (2, 3)]),
    ("p(x, y) :- e(x, y), 2 * y = 2 * max y : { e(x, y) }.", [(1, 3), (2, 3), (4, 4)]),
    ("p(0, n) :- n = count : { i = range(0, 10), i % 2 = 0 }.", [(0, 5)]),
    ("p(x, n) :- x = 1, n = count : { _y = range(x, 10) }.", [(1, 9)]),
    ("p(z, n) :- (z = 0; z = 1), n = count : { e(x, _), x % 2 = z }.", [(0, 2), (1, 2)]),
    ("p(x, y) :- e(x, y) ; e(y, x), x != y.", [(1, 2), (1, 3), (2, 1), (2, 3), (3, 1), (3, 2), (4, 4)]),
    ("p(x, y), p(y, x) :- e(x, y), x < y.", [(1, 2), (1, 3), (2, 1), (2, 3), (3, 1), (3, 2)]),
    ("p(x, x) :- e(x, x).", [(4, 4)]),
    ("p(x, 9) :- e(x, 2 + 1).", [(1, 9), (2, 9)]),
    ("p(x, y) :- e(x, z), y = z, x = 1.", [(1, 2), (1, 3)]),
    ("p(x, y) :- e(x, _), e(_, y), x > y.", [(4, 2), (4, 3)]),
    ("p(1, 2) :- e(1, 2), !e(2, 1).", [(1, 2)]),
    ("p(x, y) :- e(x, y), !e(y, _).", [(1, 3), (2, 3)]),
    ("p(x, y) :- e(x, y), !e(x, y + 1).", [(1, 3), (2, 3), (4, 4)]),
    ("p(x, y) :- x = 1, y = x + 1, e(x, y).", [(1, 2)]),
    ("p(x, y) :- 1 = 2, e(x, y).", []),
    ("p(1 + 1, 3).", [(2, 3)]),
    ("p(x, y) :- e(x, y), !(e(y, x), x = 4).", [(1, 2), (1, 3), (2, 3)]),
])  # fmt: skip
def test_rules(rule, expected):
    """A8.2, A8.3: one rule each."""
    assert answers(E + rule, e=EDGES)["p"] == expected


def test_mean_is_a_float():
    text = ".decl e(x: number, y: number)\n.input e\n.decl p(x: number, m: float)\n.output p\n"
    assert answers(text + "p(x, m) :- e(x, _), m = mean y : { e(x, y) }.", e=EDGES)["p"] == [
        (1, 2.5), (2, 3.0), (4, 4.0)
    ]  # fmt: skip


def test_mutual_and_nested_recursion():
    """A8.3: relations that define each other, one stratum on top of another."""
    text = """
    .decl succ(x: number, y: number) .input succ
    .decl even(x: number) .decl odd(x: number) .decl pair(x: number, y: number)
    .output even .output odd .output pair
    even(0).
    odd(y) :- even(x), succ(x, y).
    even(y) :- odd(x), succ(x, y).
    pair(x, y) :- even(x), odd(y), succ(x, y).
    pair(x, z) :- pair(x, y), pair(z, y).
    pair(x, z) :- pair(x, y), succ(y, z), !pair0(z).
    .decl pair0(x: number)
    pair0(3).
    """
    answer = answers(text, succ=[(n, n + 1) for n in range(5)])
    assert answer["even"] == [(0,), (2,), (4,)] and answer["odd"] == [(1,), (3,), (5,)]
    assert (0, 0) in answer["pair"] and (2, 4) in answer["pair"]


def test_a_recursion_may_ask_an_aggregate_about_its_own_rows():
    """The groups belong to lower relations; the recursion itself determines which ones it asks for."""
    text = """
    .decl e(x: number, y: number) .input e
    .decl p(x: number) .output p
    p(1).
    p(m) :- p(x), m = min y : { e(_, y), y > x }.
    p(n) :- p(x), n = count : { e(_, y), y > x }.
    """
    assert answers(text, e=[(0, 2), (0, 5), (0, 7)])["p"] == [(0,), (1,), (2,), (3,), (5,), (7,)]


def test_columns_may_be_called_anything():
    text = """
    .decl source(self: number, source: number, function: number, x_right: number, x: number)
    .input source
    .decl p(self: number, x: number, x_right: number) .output p
    p(a, b, c) :- source(a, b, _, _, c), source(b, _, _, c, a).
    p(a, b, n) :- source(a, b, _, _, _), n = sum s : { source(a, s, _, _, _) }.
    .decl rec(source: number, self: number) .output rec
    rec(a, b) :- source(a, b, _, _, _).
    rec(a, c) :- rec(a, b), rec(b, c).
    """
    answer = answers(text, source=[(1, 2, 0, 0, 3), (2, 1, 0, 3, 1), (2, 9, 9, 9, 9)])
    assert (1, 2, 3) in answer["p"] and (1, 9) in answer["rec"]


def test_types_have_subtypes_aliases_and_unions():
    text = """
    .type Animal = Person | Dog
    .type Person <: symbol
    .type Dog
    .type Name = symbol
    .symbol_type Old
    .decl person(x: Person) .decl dog(x: Dog) .decl animal(x: Animal) .decl name(x: Name) .decl text(x: symbol)
    .output animal .output name
    person("ann"). dog("rex"). later("x"). .decl later(x: Name)
    animal(x) :- person(x). animal(x) :- dog(x).
    name(x) :- text(x). text(x) :- animal(x).
    """
    answer = answers(text)
    assert answer["animal"] == answer["name"] == [("ann",), ("rex",)]


def test_qualifiers_comments_and_several_names():
    text = """
    // a line
    .decl a, b(x: number) input /* over
    lines */ .decl p(x: number) output btree
    .pragma "legacy"
    p(x):-a(x).p(x):-b(x).
    .plan 0: (1)
    """
    assert answers(text, a=[(1,)], b=[(2,)])["p"] == [(1,), (2,)]


def test_files_include_each_other_once(tmp_path: Path):
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "edges.dl").write_text('.decl e(x: number)\ne(1).\n.include "../main.dl"')
    includes = '#include "lib/edges.dl"\n.include "lib/edges.dl"\n'
    (tmp_path / "main.dl").write_text(includes + ".decl p(x: number)\n.output p\np(x) :- e(x).")
    program = compile(parse_file(tmp_path / "main.dl"))
    with kpg.open() as db, InstalledProgram(db, program) as installed:
        installed.insert_facts()
        db.advance()
        assert installed.rows("p") == [(1,)]


def test_answers_share_one_dataflow_and_its_indexes():
    """A12.6: relations are shared at the boundaries of rules; what two answers need is built only once."""
    text = E + ".decl q(x: number, y: number)\n.output q\n"
    text += "p(x, z) :- p2(x, y), e(y, z).\nq(x, z) :- p2(x, y), e(y, z), x < z.\n"
    text += ".decl p2(x: number, y: number)\np2(x, y) :- e(x, y).\np2(x, z) :- p2(x, y), e(y, z)."
    with kpg.open() as db, InstalledProgram(db, compile(parse(text)), distinct_inputs=False) as installed:
        flows = [flow for flow in db.worker.dataflows.values() if flow.name != "e"]
        assert len(flows) == 1
        indexes = [operator.name for operator in flows[0].operators if operator.name.startswith("arrange")]
        assert len([name for name in indexes if "x" in name.split()[1:2]]) <= 1
        installed.inputs["e"].insert(EDGES)
        db.advance()
        assert installed.rows("p") == [(1, 3), (4, 4)] and installed.rows("q") == [(1, 3)]


def test_an_answer_can_be_released_while_others_stay():
    text = E + ".decl q(x: number)\n.output q\np(x, y) :- e(x, y).\nq(x) :- e(x, _)."
    with kpg.open() as db:
        installed = InstalledProgram(db, compile(parse(text)))
        installed.inputs["e"].insert(EDGES)
        db.advance()
        installed.answers["p"].release()
        installed.inputs["e"].insert([(7, 7)])
        db.advance()
        assert (7,) in installed.rows("q")
        installed.release()
        installed.release()
        assert [flow.name for flow in db.worker.dataflows.values()] == ["e"]
