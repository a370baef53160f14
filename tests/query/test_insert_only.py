"""Insert-only programs: the same answers, by saturation where relations only grow: A8.4."""

import os
import signal

import numpy as np
import pytest
from hypothesis import Phase, given, note, settings
from hypothesis import strategies as st

import kpg
from kpg.query.datalog import parse
from kpg.query.installed_program import InstalledProgram
from kpg.query.ir.compile import compile
from kpg.query.lower.lower_recursion import maintenance_obstacle, saturation_obstacle
from kpg.seminaive import code_set
from kpg.testing.datalog_oracle import evaluate
from tests.query.input_states import advance_through, assert_answers
from tests.query.random_programs import programs

HEAD = """
.pragma "insert-only"
.decl e(x: number, y: number)
.input e
.decl f(x: number, y: number, z: number)
.input f
.decl p(x: number, y: number)
.output p
.decl q(x: number)
.output q
"""
RECURSIONS = {
    "left": "p(x, y) :- e(x, y). p(x, z) :- p(x, y), e(y, z).",
    "twice": "p(x, y) :- e(x, y). p(x, z) :- p(x, y), p(y, z).",
    "same generation": "p(x, y) :- e(a, x), e(a, y), x != y. p(x, y) :- e(a, x), p(a, b), e(b, y).",
    "mutual": "q(x) :- e(x, _). q(y) :- q(x), p(x, y). p(x, y) :- q(x), e(y, x), x <= y. p(x, x) :- q(x), p(_, x).",
    "three columns": "p(x, y) :- e(x, y). p(x, z) :- p(x, y), f(y, 7, z), x < 7. p(7, x) :- p(x, x), f(_, _, x).",
    "itself": "p(x, y) :- e(x, y). p(y, x) :- p(x, y), p(y, x), q(x). q(x) :- p(x, x).",
}


def grown(states):
    """Return the states, each with all rows of the earlier ones."""
    rows: dict[str, set] = {}
    for state in states:
        rows = {name: rows.get(name, set()) | more for name, more in state.items()}
        yield rows


def check(program, states):
    """Compare all answers with the oracle's as inputs grow."""
    with kpg.open() as db, InstalledProgram(db, compile(program), insert_only=True) as installed:
        for state in advance_through(db, installed, grown(states)):
            assert_answers(installed, evaluate(program, state))


@settings(max_examples=40, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(programs())
def test_answers_are_those_of_the_oracle_as_inputs_grow(written):
    """A8.4: any program, saturated or not."""
    note(written.text)
    check(parse(written.text), written.epochs)


VALUES = [0, 7, 3, -5, 10**15, -(10**15), 2**40, 12, 1, 8, 9]


@pytest.mark.parametrize("dense", [0, 31])
@pytest.mark.parametrize("name", RECURSIONS)
@settings(max_examples=12, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(data=st.data())
def test_recursions_of_values_near_and_far_grow_as_the_oracle_says(name, dense, data):
    """A8.4: with a bitmap and with a hash table; values that arrive late need more bits and other orders."""
    pairs = st.lists(st.tuples(*[st.integers(0, len(VALUES) - 1)] * 2), max_size=6)
    triples = st.lists(st.tuples(*[st.integers(0, len(VALUES) - 1)] * 3), max_size=6)
    states = [{"e": set(data.draw(pairs)), "f": set(data.draw(triples))} for _ in range(3)]
    states = [{of: {tuple(VALUES[n] for n in row) for row in rows} for of, rows in state.items()} for state in states]
    program = parse(HEAD + RECURSIONS[name])
    assert all(
        saturation_obstacle(compile(program), stratum) is None
        for stratum in compile(program).strata
        if stratum.recursive
    )
    was, code_set.MAX_BITMAP_BITS = code_set.MAX_BITMAP_BITS, dense
    try:
        check(program, states)
    finally:
        code_set.MAX_BITMAP_BITS = was


def test_recursions_of_symbols_are_saturated():
    text = HEAD.replace("number", "symbol") + RECURSIONS["left"]
    check(parse(text), [{"e": {("a", "b"), ("b", "c")}}, {"e": {("c", "a"), ("", "a")}}])


def test_rows_may_repeat_within_and_across_epochs():
    with kpg.open() as db, InstalledProgram(db, compile(parse(HEAD + RECURSIONS["left"]))) as installed:
        installed.inputs["e"].insert([(1, 2), (1, 2)])
        db.advance()
        installed.inputs["e"].insert([(1, 2), (2, 3)])
        db.advance()
        assert installed.rows("p") == [(1, 2), (1, 3), (2, 3)]
        assert all(int(diff) == 1 for diff in installed.answer("p").output().take_changes().to_arrow().column("_diff"))


def test_several_epochs_in_one_step_are_processed_one_by_one():
    with kpg.open() as db, InstalledProgram(db, compile(parse(HEAD + RECURSIONS["left"]))) as installed:
        watched = installed.answer("p").output("changes")
        installed.inputs["e"].update_at([(1, 2), (2, 3), (3, 4)], np.array([5, 3, 3]))
        db.advance_to(9)
        table = watched.take_changes().to_arrow()
        rows = zip(*(table.column(name).to_pylist() for name in ("x", "y", "_time")), strict=True)
        assert sorted(rows) == [(1, 2, 5), (1, 3, 5), (1, 4, 5), (2, 3, 3), (2, 4, 3), (3, 4, 3)]


def test_removing_is_refused_with_a_hint():
    with kpg.open() as db, InstalledProgram(db, compile(parse(HEAD + RECURSIONS["left"]))) as installed:
        installed.inputs["e"].insert([(1, 2)])
        with pytest.raises(kpg.InsertOnly, match="cannot remove rows from e"):
            installed.inputs["e"].remove([(1, 2)])
        with pytest.raises(kpg.InsertOnly):
            installed.inputs["e"].update_at([(1, 2)], db.epoch, -1)
        db.advance()
        assert installed.rows("p") == [(1, 2)]


def test_a_recursion_that_does_not_end_is_stopped():
    text = HEAD + RECURSIONS["left"]
    with kpg.open() as db, InstalledProgram(db, compile(parse(text)), max_rounds=5) as installed:
        installed.inputs["e"].insert([(n, n + 1) for n in range(9)])
        db.advance()
        with pytest.raises(kpg.TooManyRounds, match="the recursion of p"):
            installed.rows("p")


@pytest.mark.parametrize(
    ("rules", "why"),
    [
        ("q(x) :- e(x, _). p(x, y) :- e(x, y), !q(y). p(x, z) :- p(x, y), e(y, z).", "p may lose rows"),
        ("p(x, y) :- e(x, y). p(x, y + 1) :- p(x, y), y < 3.", "a recursive rule computes values"),
        ("p(x, y) :- e(x, y). p(x, z) :- p(x, y), e(z, n), n = count : { e(z, _) }, y < z.", "p may lose rows"),
    ],
)
def test_a_recursion_that_is_not_saturated_has_a_reason(rules, why):
    program = compile(parse(HEAD + rules))
    (stratum,) = (stratum for stratum in program.strata if stratum.recursive)
    assert why in str(saturation_obstacle(program, stratum))


@pytest.mark.parametrize(
    ("rules", "why"),
    [
        (RECURSIONS["left"], None),
        (RECURSIONS["same generation"], None),
        (RECURSIONS["twice"], None),
        ("p(x, y) :- e(x, y). p(x, z) :- p(x, y), f(y, _, z).", None),
        ("p(x, y) :- e(x, y). p(x, z) :- p(x, y), e(y, z), !q(z). q(1).", None),
        ("p(x, y) :- e(x, y). p(x, y) :- p(x, _), e(x, y).", None),
        ("p(x, y) :- e(x, y). p(x, y) :- p(z, w), e(x, y), z < w.", None),
        ("p(x, y) :- e(x, y). p(x, y + 1) :- p(x, y), y < 9.", "a recursive rule computes values"),
    ],
)
def test_a_recursion_that_one_operator_cannot_maintain_has_a_reason(rules, why):
    program = compile(parse(HEAD + rules))
    (stratum,) = (stratum for stratum in program.strata if stratum.recursive)
    obstacle = maintenance_obstacle(program, stratum)
    assert obstacle is None if why is None else why in obstacle


def test_demand_and_insert_only_can_be_combined():
    program = compile(parse(HEAD + RECURSIONS["left"]))
    with kpg.open() as db, InstalledProgram(db, program, demand={"p": ("x",)}) as installed:
        installed.inputs["e"].insert([(1, 2), (2, 3), (3, 1), (4, 1)])
        installed.arguments["p"].insert([(1,)])
        db.advance()
        assert installed.rows("p") == [(1, 1), (1, 2), (1, 3)]
        installed.arguments["p"].insert([(4,)])
        db.advance()
        assert installed.rows("p")[3:] == [(4, 1), (4, 2), (4, 3)]


def test_several_workers_refuse_removals_too(tmp_path):
    """Whichever way a row would go: removed, replaced by its key, made on the workers, or after a worker was lost."""
    text = HEAD + "p(x, y) :- e(x, y). p(x, z) :- p(x, y), e(y, z)."
    with kpg.open(tmp_path / "db", workers=2) as db, InstalledProgram(db, compile(parse(text))) as installed:
        source, answer = installed.inputs["e"], installed.answer("p")
        source.insert([(1, 2), (2, 3)])
        db.advance()
        expected = [(1, 2), (1, 3), (2, 3)]
        for lost in (False, True):
            if lost:
                os.kill(db.coordinator.members[1].pid, signal.SIGKILL)
            with pytest.raises(kpg.InsertOnly, match="cannot remove rows from e"):
                source.remove([(1, 2)])
            db.advance()
            assert sorted(answer.scan().to_pylist(), key=str) == [{"x": x, "y": y} for x, y in expected]
        assert db.recoveries == 1


def test_several_workers_refuse_to_replace_and_to_make_removals():
    with kpg.open(workers=2) as db:
        keyed, made = db.input("keyed", key="x", x=int, y=int), db.input("made", x=int)
        answers = [keyed.output("all keyed"), made.output("all made")]
        for source in (keyed, made):
            source.set_insert_only()
        keyed.upsert([(x, 0) for x in range(10)])
        made.insert_made(numbers_of)
        db.advance()
        with pytest.raises(kpg.InsertOnly, match="cannot remove rows from made"):
            made.remove_made(numbers_of)
        keyed.upsert([(3, 1), (10, 1)])
        with pytest.raises(kpg.InsertOnly, match="cannot remove rows from keyed"):
            db.advance()
        keyed.upsert([(11, 1)])
        db.advance()
        assert sorted(answers[0].rows()) == [*((x, 0) for x in range(10)), (11, 1)]
        assert sorted(answers[1].rows()) == [(0,), (1,)]


def numbers_of(worker, workers):
    return [(worker,)]
