"""Equivalence relations, subsumption and aggregates in heads: random programs under random changes, and their cost."""

import re

import pytest
from hypothesis import Phase, assume, given, note, settings
from hypothesis import strategies as st

import kpg
from kpg.errors import NotStratified
from kpg.query.datalog import parse
from kpg.query.installed_program import InstalledProgram
from kpg.query.ir.compile import compile
from kpg.testing.datalog_oracle import evaluate
from tests.query.input_states import assert_answers, changes, set_inputs, two_workers
from tests.query.random_programs import RandomProgram, programs

QUICK = {"deadline": None, "phases": [Phase.explicit, Phase.reuse, Phase.generate]}
CONDITIONS = ("b < a", "d < c", "a <= b, c <= d", "b <= a", "a != b, d <= c", "a(b), c = d", "!b(a, b)", "b < a; c < d")


@st.composite
def special_programs(draw) -> RandomProgram:
    """Draw a program in which some relations are special."""
    program = draw(programs())
    text = program.text
    for name in draw(st.sets(st.sampled_from("qrt"), min_size=1, max_size=2)):
        match draw(st.sampled_from(["eqrel", "subsumed", "compared", "aggregated"])):
            case "eqrel":
                text = text.replace(f".decl {name}(u: number, v: number)", f".decl {name}(u: number, v: number) eqrel")
            case "subsumed":
                text += f"\n{name}(a, c) <= {name}(b, d) :- {draw(st.sampled_from(CONDITIONS))}."
            case "compared":
                text += f"\n{name}(a, c) <= {name}(a, d) :- {draw(st.sampled_from(['c < d', 'd <= c', 'c > d']))}."
            case "aggregated":
                text = with_aggregates(text, name, draw(st.sampled_from(["min", "max", "count", "sum"])))
    return RandomProgram(text, program.epochs)


def with_aggregates(text: str, name: str, op: str) -> str:
    """Return a program with an aggregate in each head of a relation."""
    return re.sub(rf"^{name}\((.*), ((?:[^()]|\([^()]*\))*)\) :-", rf"{name}(\1, {op}(\2)) :-", text, flags=re.M)


def compiled(text):
    """Compile a program; discard it if it is not stratified, as the oracle must say as well."""
    program = parse(text)
    try:
        return program, compile(program)
    except NotStratified:
        with pytest.raises(ValueError, match="not stratified"):
            evaluate(program, {})
        assume(False)


@settings(max_examples=20, **QUICK)
@given(special_programs(), st.integers(0, 2))
def test_answers_are_those_of_the_oracle_under_any_changes_and_batches(random_program, batch):
    note(random_program.text)
    program, ready = compiled(random_program.text)
    with kpg.open() as db, InstalledProgram(db, ready, max_rounds=100) as installed:
        before: dict[str, set] = {}
        for number, state in enumerate(random_program.epochs):
            set_inputs(installed, before, state)
            before = state
            if batch and number % batch:
                db.push_to(db.epoch + 1)  # several epochs before any step
                continue
            db.advance()
            assert_answers(installed, evaluate(program, state))


@settings(max_examples=3, **QUICK)
@given(special_programs(), st.lists(st.integers(0, 1), max_size=10))
def test_two_workers_agree_with_the_oracle(random_program, schedule):
    note(random_program.text)
    program, ready = compiled(random_program.text)
    cluster = two_workers(ready, "t", max_rounds=100)
    before: dict[str, set] = {}
    for state in random_program.epochs:
        for number, (name, row, diff) in enumerate(changes(before, state)):
            cluster.insert(number % 2, name, row, diff)
        before = state
        cluster.advance(schedule)
        assert cluster.answer() == dict.fromkeys(evaluate(program, state)["t"], 1)


def test_an_equivalence_relation_may_have_facts_and_no_rules():
    program = compile(parse(".decl eq(x: number, y: number) eqrel\n.output eq\neq(1, 2). eq(2, 3)."))
    for distinct_inputs in (True, False):
        with kpg.open() as db, InstalledProgram(db, program, distinct_inputs=distinct_inputs) as installed:
            installed.insert_facts()
            db.advance()
            assert installed.rows("eq") == [(x, y) for x in (1, 2, 3) for y in (1, 2, 3)]


def test_a_class_of_many_elements_takes_one_row_for_each():
    """Reading, negating and counting a class of n elements keeps O(n) rows, not n²."""
    text = """
    .decl link(x: number, y: number) input
    .decl asked(x: number) input
    .decl same(x: number, y: number) eqrel
    .decl near(x: number)
    .decl size(x: number, n: number)
    .decl apart(x: number)
    .output near
    .output size
    .output apart
    same(x, y) :- link(x, y).
    near(x) :- same(x, 0).
    size(x, n) :- near(x), n = count : { same(x, _) }.
    apart(x) :- asked(x), !same(x, 0).
    """
    elements = 100_000
    with kpg.open() as db, InstalledProgram(db, compile(parse(text))) as installed:
        installed.inputs["link"].insert(list(zip(range(elements), range(1, elements), strict=False)))
        installed.inputs["asked"].insert([(5,), (-1,)])
        db.advance()
        assert installed.answer("near").scan().num_rows == elements
        assert installed.rows("apart") == [(-1,)]
        assert set(installed.table("size").column("n").to_pylist()) == {elements}
        held = sum(arrangement["rows"] for arrangement in db.describe()["arrangements"])
        assert held < 20 * elements
        installed.inputs["link"].remove([(49_999, 50_000)])
        db.advance()
        assert installed.answer("near").scan().num_rows == 50_000
        assert set(installed.table("size").column("n").to_pylist()) == {50_000}


@pytest.mark.parametrize(
    ("declared", "aggregate", "rows"),
    [
        ("number", "average(y)", [(1, 4), (4, 4)]),
        ("float", "AVG(y)", [(1, 4.0), (4, 4.0)]),
        ("unsigned", "count(y)", [(1, 3), (4, 1)]),
        ("float", "COUNT(y)", [(1, 3.0), (4, 1.0)]),
        ("int32", "sum(y * x)", [(1, 12), (4, 16)]),
        ("symbol", "max(to_string(y))", [(1, "7"), (4, "4")]),
        ("uint64", "min(to_unsigned(y))", [(1, 2), (4, 4)]),
    ],
)
def test_results_of_aggregates_in_heads_have_the_declared_kind(declared, aggregate, rows):
    text = f"""
    .decl a(x: number, y: number)
    a(1, 2). a(1, 3). a(1, 7). a(4, 4).
    .decl r(x: number, n: {declared})
    .output r
    r(x, {aggregate}) :- a(x, y).
    """
    with kpg.open() as db, InstalledProgram(db, compile(parse(text))) as installed:
        installed.insert_facts()
        db.advance()
        assert installed.rows("r") == rows


def test_of_rows_that_subsume_each_other_the_lesser_one_stays():
    text = ".decl r(x: number, y: number)\n.output r\nr(3, 1). r(2, 1). r(2, 5).\nr(a, b) <= r(c, d) :- b = d."
    with kpg.open() as db, InstalledProgram(db, compile(parse(text))) as installed:
        installed.insert_facts()
        db.advance()
        assert installed.rows("r") == [(2, 1), (2, 5)]
        installed.inputs["r"].remove([(2, 1)])
        db.advance()
        assert installed.rows("r") == [(2, 5), (3, 1)]


MUTUAL = """
.decl e(x: number, y: number)
.input e
.decl f(x: number, y: number)
.input f
.decl p(x: number, y: number) eqrel
.decl q(x: number, y: number) eqrel
.output p
.output q
p(x, y) :- e(x, y).
q(x, y) :- f(x, y).
p(x, z) :- q(x, y), e(y, z), p(z, z).
q(x, y) :- p(x, y), f(x, z), f(y, z).
"""
PAIRS = st.sets(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=6)


@settings(max_examples=15, **QUICK)
@given(st.lists(st.fixed_dictionaries({"e": PAIRS, "f": PAIRS}), min_size=1, max_size=4))
def test_equivalence_relations_may_define_each_other(epochs):
    program = parse(MUTUAL)
    with kpg.open() as db, InstalledProgram(db, compile(program), max_rounds=100) as installed:
        before: dict[str, set] = {}
        for state in epochs:
            set_inputs(installed, before, state)
            before = state
            db.advance()
            assert_answers(installed, evaluate(program, state))
