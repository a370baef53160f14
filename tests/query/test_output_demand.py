"""Outputs decide what is computed: programs restricted by demand have the answers of the programs as written."""

import pytest
from hypothesis import Phase, event, given, note, settings
from hypothesis import strategies as st

import kpg
from kpg.bench.programs import load
from kpg.query.datalog import parse
from kpg.query.demand import InputCounts, demand_from_outputs
from kpg.query.installed_program import InstalledProgram
from kpg.query.ir.compile import compile
from kpg.query.ir.show import show_program
from kpg.testing.datalog_oracle import evaluate
from tests.query.input_states import advance_through, assert_answers
from tests.query.random_programs import LAYERS, RandomProgram, epochs, programs

SKIP = """
    .decl next(a: number, b: number)
    .input next
    .decl hasValue(a: number)
    .input hasValue
    .decl skip(a: number, b: number)
    .decl nextVisible(a: number, b: number)
    .output nextVisible
    skip(a, b) :- next(a, b).
    skip(a, c) :- skip(b, c), next(a, b), !hasValue(b).
    nextVisible(a, b) :- hasValue(a), skip(a, b), hasValue(b).
"""
CLOSURE = """
    .decl e(x: number, y: number)
    .input e
    .decl start(x: number)
    .input start
    .decl tc(x: number, y: number)
    tc(x, y) :- e(x, y).
    tc(x, z) :- tc(x, y), e(y, z).
    .decl out(x: number)
    .output out
"""
DERIVED = {name: arity for layer in LAYERS for name, arity in layer.items()}
INPUTS = """
    .decl a(u: number)
    .decl b(u: number, v: number)
    .decl c(u: number, v: number)
    .input a, b, c
"""
FIRST = ["r(x, y) :- b(x, y).", "r(x, y) :- b(y, x), c(x, _).", "r(x, x) :- a(x).", "r(x, y) :- c(x, y), !a(x)."]
RECURSIVE = [
    "r(x, z) :- r(x, y), b(y, z).",
    "r(x, z) :- b(x, y), r(y, z).",
    "r(x, z) :- c(x, y), r(y, z), !a(y).",
    "r(x, y) :- b(x, p), r(p, q), c(y, q).",
    "r(x, z) :- r(x, y), r(y, z).",
    "r(x, y) :- s(y, x).",
    "r(y, x) :- r(x, y), a(x).",
    "r((x + 1) % 3, y) :- r(x, y), c(x, y).",
]
MUTUAL = ["s(y, x) :- r(x, y).", "s(x, z) :- r(y, x), b(y, z).", "s(x, y) :- c(x, y)."]
READERS = [
    "t(x, y) :- a(x), r(x, y).",
    "t(x, y) :- r(x, y), a(y).",
    "t(x, y) :- b(x, y), !r(x, y).",
    "t(y, 0) :- r(1, y).",
    "t(x, z) :- a(x), c(x, y), r(y, z), x <= 1.",
    "t(x, n) :- a(x), n = count : { r(x, _) }.",
    "t(x, n) :- a(x), n = sum y : { r(x, y), y > 0 }.",
    "t(x, y) :- m(x, y), a(x).",
    "t(x, y) :- a(x), !m(x, y), b(x, y).",
]
PHASES = [Phase.explicit, Phase.reuse, Phase.generate]  # shrinking takes minutes


@st.composite
def recursions(draw):
    """Draw a recursion and rules that read it with bound arguments, most of which demand can restrict."""
    rules = draw(st.lists(st.sampled_from(FIRST), min_size=1, max_size=2, unique=True))
    rules += draw(st.lists(st.sampled_from(RECURSIVE), min_size=1, max_size=2, unique=True))
    rules += draw(st.lists(st.sampled_from(MUTUAL), min_size=1, max_size=2, unique=True))
    rules += ["m(x, y) :- r(x, z), c(z, y).", draw(st.sampled_from(["m(x, x) :- r(x, _).", "m(x, y) :- s(y, x)."]))]
    rules += draw(st.lists(st.sampled_from(READERS), min_size=1, max_size=2, unique=True))
    declared = "\n".join(f".decl {name}(u: number, v: number)" for name in "rsmt")
    return RandomProgram("\n".join([INPUTS, declared, ".output t", *rules]), draw(epochs()))


@st.composite
def with_some_outputs(draw):
    """Draw a random program with few outputs."""
    written = draw(programs())
    kept = draw(st.sets(st.sampled_from(sorted(DERIVED)), min_size=1, max_size=2))
    dropped = {f".output {name}" for name in DERIVED if name not in kept}
    lines = [line for line in written.text.split("\n") if line not in dropped]
    return RandomProgram("\n".join(lines), written.epochs)


def counts():
    """Draw row counts of inputs; they need not be true, since they only decide what demand restricts."""
    rows = st.dictionaries(st.sampled_from(["a", "b", "c"]), st.sampled_from([1, 100, 10_000]))
    return rows.map(InputCounts)


REQUESTS = st.sampled_from(["", '.pragma "magic-transform" "*"\n', '.pragma "magic-transform" "r, q"\n'])


@settings(max_examples=80, phases=PHASES)
@given(recursions(), counts(), REQUESTS)
def test_restricted_recursions_have_the_answers_of_the_oracle(written, rows, request):
    check(RandomProgram(request + written.text, written.epochs), rows)


@settings(max_examples=30, phases=PHASES)
@given(with_some_outputs(), counts(), REQUESTS)
def test_random_programs_with_random_outputs_have_the_answers_of_the_oracle(written, rows, request):
    check(RandomProgram(request + written.text, written.epochs), rows)


def check(written, rows, open_db=kpg.open):
    """Compare the answers with and without demand, and those of the oracle, at all epochs."""
    program = parse(written.text)
    restricted = demand_from_outputs(compile(program), rows)
    event("restricted" if restricted.reason else "in full")
    note(written.text + "\n->\n" + show_program(restricted.program) + "\n" + restricted.reason)
    with (
        open_db() as db,
        InstalledProgram(db, compile(program), counts=rows) as installed,
        InstalledProgram(db, compile(program), name="full", restrict=False, inputs=dict(installed.inputs)) as full,
    ):
        assert installed.program == restricted.program
        for state in advance_through(db, installed, written.epochs):
            expected = evaluate(program, state)
            assert_answers(installed, expected)
            assert_answers(full, expected)


def reason(text, **rows):
    return demand_from_outputs(compile(parse(text)), InputCounts(rows)).reason


def reason_of(reader, **rows):
    return reason(CLOSURE + reader, **rows)


def test_the_rows_of_a_recursion_that_no_output_needs_are_not_derived():
    """A list of 200 elements with 20 values: each value needs the blanks before it, not all pairs of blanks."""
    text = SKIP + '.pragma "magic-transform-exclude" "*"\n'
    derived = {}
    for program in (SKIP, text):
        with kpg.open() as db, InstalledProgram(db, compile(parse(program))) as installed:
            installed.inputs["next"].insert([(n, n + 1) for n in range(200)])
            installed.inputs["hasValue"].insert([(n,) for n in range(0, 200, 10)])
            db.advance()
            assert installed.rows("nextVisible") == [(n, n + 10) for n in range(0, 190, 10)]
            derived[program] = sum(spine.rows for spine in db.spines())
            installed.inputs["hasValue"].remove([(50,)])
            db.advance()
            assert (40, 60) in installed.rows("nextVisible")
    assert derived[SKIP] < derived[text] / 2


@pytest.mark.parametrize("workers", [1, 2])
def test_restricted_recursions_are_maintained_on_several_workers(workers):
    with kpg.open(workers=workers) as db, InstalledProgram(db, compile(parse(SKIP))) as installed:
        assert "skip@b" in installed.program.by_name()
        installed.inputs["next"].insert([(n, n + 1) for n in range(30)])
        installed.inputs["hasValue"].insert([(0,), (7,), (20,)])
        db.advance()
        assert sorted(installed.rows("nextVisible")) == [(0, 7), (7, 20)]
        installed.inputs["hasValue"].remove([(7,)])
        installed.inputs["next"].remove([(25, 26)])
        installed.inputs["hasValue"].insert([(30,), (24,)])
        db.advance()
        assert sorted(installed.rows("nextVisible")) == [(0, 20), (20, 24)]


def test_the_bindings_decide_without_row_counts():
    assert reason_of("out(y) :- start(x), tc(x, y).") == "tc is computed only for the x that out needs"
    assert reason_of("out(x) :- start(y), !tc(x, y), start(x).") == "tc is computed only for the x that out needs"
    assert reason_of("out(n) :- start(x), n = count : { tc(x, _) }.").startswith("tc is computed only for the x")
    assert reason_of("out(x) :- tc(x, _).") == "", "no argument is bound"
    assert reason_of("out(x) :- tc(x, _). .output tc") == "", "an output is computed in full"
    assert reason_of("out(y) :- start(x), tc(x, y). out(x) :- tc(x, 1).") == "", "the readers bind different columns"
    assert reason_of("out(y) :- start(x), tc(x, y). out(y) :- tc(_, y).") == "", "one reader binds nothing"
    assert reason_of("out(y) :- e(x, _), tc(x, y).") == "", "the source holds all values that the recursion starts from"
    assert reason_of("out(y) :- e(x, 7), tc(x, y).") != "", "a constant selects some of them"
    assert reason_of("out(y) :- start(y), tc(x, y).") == "", "right-linear demand may cost more than it saves"


def test_row_counts_decide_where_data_are_there():
    reader = "out(y) :- start(x), tc(x, y)."
    assert reason_of(reader, e=1000, start=100) != "" == reason_of(reader, e=1000, start=900)
    right = "out(x) :- start(y), tc(x, y)."
    assert reason_of(right, e=1000, start=10) != "" == reason_of(right, e=1000, start=400)
    few_values = InputCounts({"e": 1000, "start": 100}, lambda name, column: 100)
    assert demand_from_outputs(compile(parse(CLOSURE + reader)), few_values).reason == ""


def test_demand_passes_through_relations_between_an_output_and_a_recursion():
    through = "out(y) :- start(x), hop(x, y). .decl hop(x: number, y: number) hop(x, z) :- tc(x, y), e(y, z)."
    restricted = demand_from_outputs(compile(parse(CLOSURE + through)))
    assert restricted.reason == "tc is computed only for the x that hop needs"
    assert {"hop@x", "tc@x"} <= restricted.program.by_name().keys()


def test_pragmas_and_qualifiers_request_or_exclude_magic_sets():
    unbound = "out(y) :- start(y), tc(x, y)."
    assert "tc is computed on demand for its y" in reason('.pragma "magic-transform" "*"\n' + CLOSURE + unbound)
    assert "tc is computed on demand for its y" in reason('.pragma "magic-transform" "e, tc"\n' + CLOSURE + unbound)
    declared = CLOSURE.replace("tc(x: number, y: number)", "tc(x: number, y: number) magic")
    assert "tc is computed on demand for its y" in reason(declared + unbound)
    bound = "out(y) :- start(x), tc(x, y)."
    assert reason('.pragma "magic-transform-exclude" "tc"\n' + CLOSURE + bound) == ""
    assert reason('.pragma "magic-transform" "*"\n.pragma "magic-transform-exclude" "tc"\n' + CLOSURE + bound) == ""
    assert reason(CLOSURE.replace("tc(x: number, y: number)", "tc(x: number, y: number) no_magic") + bound) == ""


def test_explain_names_the_restricted_recursions(tmp_path, capsys):
    from kpg.cli import main

    (tmp_path / "skip.dl").write_text(SKIP)
    assert main(["explain", str(tmp_path / "skip.dl")]) == 0
    assert capsys.readouterr().out.startswith("skip is computed only for the b that nextVisible needs\n")


@pytest.mark.parametrize("name", ["tc", "sg", "dataflow", "points_to", "points_to_optimised"])
def test_programs_that_output_their_recursions_are_unchanged(name):
    """So demand cannot make the papers' experiments slower."""
    program = load(name)
    for rows in ({}, {"e": 1000, "assign": 1000, "deref": 10, "null": 10}):
        assert demand_from_outputs(program, InputCounts(rows)).program is program


def test_relations_of_other_kinds_are_never_restricted():
    """The rows of an equivalence relation, or of a subsumed one, depend on rows that no rule connects them to."""
    same = CLOSURE + ".decl same(x: number, y: number) eqrel same(x, y) :- e(x, y). out(y) :- start(x), same(x, y)."
    least = CLOSURE + (
        ".decl d(x: number, n: number) d(x, 0) :- start(x). d(y, n + 1) :- d(x, n), e(x, y), n < 9."
        " d(x, n) <= d(x, m) :- m <= n. out(n) :- start(x), d(x, n)."
    )
    chosen = CLOSURE + (
        ".decl t(x: number, p: number) choice-domain x t(x, x) :- start(x). t(y, x) :- t(x, _), e(x, y)."
        " out(p) :- start(x), t(x, p)."
    )
    for text in (same, least, chosen):
        assert "tc" not in (why := reason(text)) and why == "", text


def test_numbered_rows_have_one_number_for_all_readers():
    """`autoinc` numbers the rows of a relation that demand would otherwise split."""
    text = '.pragma "magic-transform" "*"\n' + CLOSURE.replace("out(x: number)", "out(x: number, n: number)") + (
        ".decl id(x: number, y: number, n: number) id(x, y, autoinc()) :- tc(x, y)."
        " out(y, n) :- start(x), id(x, y, n). out(x, n) :- start(y), id(x, y, n)."
    )  # fmt: skip
    with kpg.open() as db, InstalledProgram(db, compile(parse(text))) as installed:
        installed.inputs["e"].insert([(1, 2), (2, 3)])
        installed.inputs["start"].insert([(2,)])
        db.advance()
        rows = installed.rows("out")
        assert len(rows) == 2 == len({number for _, number in rows})
