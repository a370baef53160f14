"""Choice domains and autoinc: answers depend on history, and each of them could have come from an evaluation."""

import pytest
from hypothesis import Phase, given, note, settings
from hypothesis import strategies as st

import kpg
from kpg.query.datalog import parse
from kpg.query.installed_program import InstalledProgram
from kpg.query.ir.compile import compile
from kpg.testing.choice_checker import check_choices
from tests.query.input_states import changes, set_inputs, two_workers
from tests.query.random_programs import RandomProgram, programs

QUICK = {"deadline": None, "phases": [Phase.explicit, Phase.reuse, Phase.generate]}
DOMAINS = ("u", "v", "u, v", "(u, v)")
NAMES = ("p", "q", "r", "s", "t")
SPANNING_TREE = """
.decl edge(v: symbol, u: symbol) input
.decl tree(v: symbol, u: symbol) choice-domain u
.output tree
tree("root", "a").
tree(v, u) :- tree(_, v), edge(v, u).
"""


@st.composite
def choice_programs(draw) -> RandomProgram:
    """Draw a program in which some relations have choice domains."""
    program = draw(programs())
    text = program.text
    for name in draw(st.sets(st.sampled_from("qrt"), min_size=1, max_size=3)):
        declared = f".decl {name}(u: number, v: number)"
        text = text.replace(declared, f"{declared} choice-domain {draw(st.sampled_from(DOMAINS))}")
    return RandomProgram(text, program.epochs)


def answer_of(installed):
    """Return the rows of all answers."""
    return {name: set(installed.rows(name)) for name in installed.answers}


@settings(max_examples=12, **QUICK)
@given(choice_programs(), st.integers(0, 2))
def test_every_answer_is_valid_and_maximal(random_program, batch):
    note(random_program.text)
    program = parse(random_program.text)
    with kpg.open() as db, InstalledProgram(db, compile(program), max_rounds=100) as installed:
        before: dict[str, set] = {}
        for number, state in enumerate(random_program.epochs):
            set_inputs(installed, before, state)
            before = state
            if batch and number % batch:
                db.push_to(db.epoch + 1)  # several epochs before any step
                continue
            db.advance()
            check_choices(program, state, answer_of(installed))


@settings(max_examples=12, **QUICK)
@given(choice_programs())
def test_an_insertion_never_changes_what_is_chosen(random_program):
    lines = [line for line in random_program.text.split("\n") if "!" not in line and "{" not in line]
    note("\n".join(lines))
    with kpg.open() as db, InstalledProgram(db, compile(parse("\n".join(lines))), max_rounds=100) as installed:
        state: dict[str, set] = {name: set() for name in random_program.epochs[0]}
        before: dict[str, set] = {name: set() for name in NAMES}
        for epoch in random_program.epochs:
            grown = {name: rows | epoch[name] for name, rows in state.items()}
            set_inputs(installed, state, grown)
            state = grown
            db.advance()
            after = answer_of(installed)
            assert all(before[name] <= after[name] for name in after)
            before = after


@settings(max_examples=3, **QUICK)
@given(choice_programs(), st.lists(st.integers(0, 1), max_size=10))
def test_two_workers_have_the_history_of_one(random_program, schedule):
    note(random_program.text)
    ready = compile(parse(random_program.text.replace(".output", "//").replace("// t", ".output t")))
    cluster = two_workers(ready, "t", max_rounds=100)
    before: dict[str, set] = {}
    with kpg.open() as db, InstalledProgram(db, ready, max_rounds=100) as installed:
        for state in random_program.epochs:
            for number, (name, row, diff) in enumerate(changes(before, state)):
                cluster.insert(number % 2, name, row, diff)
            set_inputs(installed, before, state)
            before = state
            cluster.advance(schedule)
            db.advance()
            assert cluster.answer() == dict.fromkeys(installed.rows("t"), 1)


def test_a_choice_stays_until_its_support_is_gone():
    with kpg.open() as db, InstalledProgram(db, compile(parse(SPANNING_TREE))) as installed:
        installed.insert_facts()
        edges = installed.inputs["edge"]
        edges.insert([("a", "b"), ("b", "c"), ("c", "d")])
        db.advance()
        edges.insert([("a", "d")])
        db.advance()
        assert ("c", "d") in installed.rows("tree")  # a shorter way does not matter
        edges.remove([("b", "c")])
        db.advance()
        assert set(installed.rows("tree")) == {("root", "a"), ("a", "b"), ("a", "d")}


def test_after_reopening_choices_are_made_anew(tmp_path):
    """The log holds inputs, not choices: a reopened directory chooses among the rows that it finds."""
    text = """
    .decl a(k: number, v: number) input
    .decl c(k: number, v: number) choice-domain k
    .output c
    c(k, v) :- a(k, v).
    """
    with kpg.open(tmp_path) as db, InstalledProgram(db, compile(parse(text))) as installed:
        installed.inputs["a"].insert([(1, 9)])
        db.advance()
        installed.inputs["a"].insert([(1, 3)])
        db.advance()
        assert installed.rows("c") == [(1, 9)]
    with kpg.open(tmp_path) as db, InstalledProgram(db, compile(parse(text))) as installed:
        db.advance()
        assert installed.rows("c") in ([(1, 9)], [(1, 3)])
        check_choices(parse(text), {"a": {(1, 9), (1, 3)}}, {"c": set(installed.rows("c"))})


@settings(max_examples=15, **QUICK)
@given(st.lists(st.sets(st.integers(0, 5)), min_size=1, max_size=5))
def test_numbers_are_unique_and_stay(epochs):
    text = """.decl a(x: number) input
    .decl id(x: number, n: number)
    .decl other(n: number, x: number)
    .output id
    .output other
    id(x, autoinc()) :- a(x).
    other(n, x) :- a(x), n = autoinc(), x > 2.
    """
    with kpg.open() as db, InstalledProgram(db, compile(parse(text))) as installed:
        before: set[int] = set()
        ids: dict[int, int] = {}
        used: set[int] = set()
        for rows in epochs:
            set_inputs(installed, {"a": {(x,) for x in before}}, {"a": {(x,) for x in rows}})
            db.advance()
            now = dict(installed.rows("id"))
            others = dict(installed.rows("other"))
            assert now.keys() == rows and sorted(others.values()) == sorted(x for x in rows if x > 2)
            assert len({*now.values(), *others}) == len(now) + len(others)
            assert all(now[x] == ids[x] for x in rows & before)
            assert not used & {now[x] for x in rows - before}
            used |= set(now.values())
            before, ids = rows, now


def test_a_recursive_rule_cannot_number_its_rows():
    text = ".decl a(x: number, n: number)\n.output a\na(1, 0).\na(x, autoinc()) :- a(x, _)."
    with pytest.raises(kpg.NotStratified, match="a numbers the rows of something that depends on it") as caught:
        compile(parse(text))
    assert (caught.value.line, caught.value.column) == (4, 6)
