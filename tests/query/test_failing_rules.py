"""An expression that fails counts only if every literal that does not use its value holds, in every plan."""

import pytest
from hypothesis import Phase, given, note, settings
from hypothesis import strategies as st

import kpg
from kpg.query.datalog import parse
from kpg.query.installed_program import InstalledProgram
from kpg.query.ir.body_variables import literals
from kpg.query.ir.compile import compile
from kpg.query.join_strategy import plan_rule
from kpg.testing.error_oracle import evaluate
from kpg.testing.simulated_workers import SimulatedCluster
from tests.query.failing_programs import failing_programs
from tests.query.input_states import advance_through, changes

FAILED = "failed"


@settings(max_examples=20, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(failing_programs(), st.sampled_from(["auto", "binary", "delta", "hector"]))
def test_relations_fail_as_in_the_oracle_at_every_epoch(program, joins):
    """Which relations have an answer, and which rows, while inputs change and errors come and go."""
    note(program.text)
    note(joins)
    parsed = parse(program.text)
    with kpg.open() as db, InstalledProgram(db, compile(parsed), joins=joins) as installed:
        for state in advance_through(db, installed, program.epochs):
            assert {name: answer(installed, name) for name in installed.answers} == expected(parsed, state)


@settings(max_examples=3, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(failing_programs(), st.sampled_from(["auto", "delta"]))
def test_relations_fail_as_in_the_oracle_on_two_workers(program, joins):
    note(program.text)
    parsed = parse(program.text)
    cluster = SimulatedCluster(2)
    installed = cluster.build(lambda db: InstalledProgram(db, compile(parsed), joins=joins))
    for rank in installed:
        for source in rank.inputs.values():
            source.base()  # on every worker alike, also inputs that no rule reads
    before: dict[str, set] = {}
    for state in program.epochs[:2]:
        for number, (name, row, diff) in enumerate(changes(before, state)):
            cluster.insert(number % 2, name, row, diff)
        before = state
        cluster.advance()
        answers = {name: [answer(rank, name) for rank in installed] for name in installed[0].answers}
        together = {
            name: FAILED if FAILED in parts else sorted(row for part in parts for row in part)
            for name, parts in answers.items()
        }
        assert together == expected(parsed, state)


def answer(installed: InstalledProgram, name: str):
    try:
        return sorted(installed.rows(name))
    except kpg.DataError:
        return FAILED


def expected(program, state: dict[str, set]) -> dict[str, object]:
    rows, failed = evaluate(program, state)
    return {name: FAILED if name in failed else sorted(rows[name]) for name in program.outputs()}


SHORTEST = """.decl e(x: number, y: number, w: number)
.decl s(x: number)
.decl d(x: number, dist: number)
.input e
.input s
.output d
d(x, min(0)) :- s(x).
d(y, min(dist + w)) :- d(x, dist), e(x, y, w).
"""


def test_errors_of_rows_that_a_later_round_takes_back_do_not_count():
    """The direct way to 3 overflows from 2; the way through 1 replaces it in the round after."""
    far = 2**62
    with kpg.open() as db, InstalledProgram(db, compile(parse(SHORTEST))) as installed:
        installed.inputs["s"].insert([(0,)])
        installed.inputs["e"].insert([(0, 2, far), (2, 3, far), (0, 1, 1), (1, 2, 1)])
        db.advance()
        assert sorted(installed.rows("d")) == [(0, 0), (1, 1), (2, 2), (3, far + 2)]
        installed.inputs["e"].remove([(1, 2, 1)])
        db.advance()
        with pytest.raises(kpg.DataError, match="overflow in dist . w"):
            installed.rows("d")
        installed.inputs["e"].insert([(1, 2, 5)])
        db.advance()
        assert sorted(installed.rows("d")) == [(0, 0), (1, 1), (2, 6), (3, far + 6)]


RECURSIVE = """.decl a(x: number, y: number)
.decl p(x: number)
.decl q(x: number)
.input a
.output p
.output q
p(x) :- a(x, _).
p(z) :- p(x), a(x, y), z = x / y, x > 4.
q(x) :- a(_, x).
"""


def test_errors_of_a_recursion_go_with_the_rows_that_lead_to_them():
    with kpg.open() as db, InstalledProgram(db, compile(parse(RECURSIVE))) as installed:
        installed.inputs["a"].insert([(40, 2), (20, 4), (5, 0), (3, 0)])
        db.advance()
        with pytest.raises(kpg.DataError, match=r"division by zero in x / y"):
            installed.rows("p")
        assert sorted(installed.rows("q")) == [(0,), (2,), (4,)]
        installed.inputs["a"].remove([(5, 0)])  # 5 is still derived, and has no row to divide by
        db.advance()
        assert sorted(installed.rows("p")) == [(3,), (5,), (20,), (40,)]


MANY_KEYS = """.decl cell(x: number, y: number)
.decl full(x: number, y: number)
.input cell
.output full
full(x, y) :- cell(x, y), cell(x + 1, y), cell(x - 1, y), cell(x, y + 1), cell(x, y - 1).
"""


@pytest.mark.parametrize("joins", ["auto", "binary", "delta", "hector"])
def test_rules_with_many_computed_keys_report_each_and_recover(joins):
    largest = 2**63 - 1
    with kpg.open() as db, InstalledProgram(db, compile(parse(MANY_KEYS)), joins=joins) as installed:
        installed.inputs["cell"].insert([(1, 1), (0, 1), (2, 1), (1, 0), (1, 2), (largest, 5)])
        db.advance()
        with pytest.raises(kpg.DataError, match=r"int64 overflow in x \+ 1"):
            installed.rows("full")
        installed.inputs["cell"].remove([(largest, 5)])
        db.advance()
        assert installed.rows("full") == [(1, 1)]


BOUND_BY_LOOKUP = """.decl a(x: number, v: number)
.decl b(x: number, y: number)
.decl p(x: number)
.input a
.input b
.output p
p(x) :- a(x, v), b(x + 1, y), b(y + v, z), y < x, !a(y, z), x > 4.
"""


@pytest.mark.parametrize("joins", ["auto", "binary", "delta", "hector"])
def test_literals_that_need_a_value_of_a_failed_lookup_are_ignored(joins):
    """Without x + 1 there is no y, so neither `y < x` nor `!a(y, z)` can guard it; `x > 4` can."""
    largest = 2**63 - 1
    with kpg.open() as db, InstalledProgram(db, compile(parse(BOUND_BY_LOOKUP)), joins=joins) as installed:
        installed.inputs["a"].insert([(5, 1)])
        installed.inputs["b"].insert([(6, 2), (3, 9)])
        db.advance()
        assert installed.rows("p") == [(5,)]
        installed.inputs["a"].insert([(largest, 1)])
        db.advance()
        with pytest.raises(kpg.DataError, match=r"int64 overflow in x \+ 1"):
            installed.rows("p")
        installed.inputs["a"].remove([(largest, 1)])
        db.advance()
        assert installed.rows("p") == [(5,)]


BEHIND_LOOKUP = """.decl a(x: number, y: number)
.decl b(q: number, y: number, z: number)
.decl c(z: number)
.decl p(y: number)
.input a
.input b
.input c
.output p
"""


@pytest.mark.parametrize("joins", ["auto", "binary", "delta", "hector"])
@pytest.mark.parametrize("lookup", ["b(2 / x, _, z)", "b(2 / x, y, z)"])
def test_atoms_behind_a_failed_lookup_are_ignored_also_if_they_are_written_first(lookup, joins):
    """Only the lookup by 2 / x connects c with a, so an empty c does not guard the division."""
    text = f"{BEHIND_LOOKUP}p(y) :- c(z), {lookup}, a(x, y)."
    with kpg.open() as db, InstalledProgram(db, compile(parse(text)), joins=joins) as installed:
        installed.inputs["a"].insert([(0, 1), (2, 1)])
        installed.inputs["b"].insert([(1, 1, 5)])
        db.advance()
        with pytest.raises(kpg.DataError, match=r"division by zero in 2 / x"):
            installed.rows("p")
        installed.inputs["c"].insert([(4,), (5,)])
        db.advance()
        with pytest.raises(kpg.DataError, match=r"division by zero in 2 / x"):
            installed.rows("p")
        installed.inputs["a"].remove([(0, 1)])
        db.advance()
        assert installed.rows("p") == [(1,)]
        installed.inputs["c"].remove([(5,)])
        db.advance()
        assert installed.rows("p") == []


def test_the_plan_of_a_rule_that_cannot_fail_is_unchanged():
    declared = ".decl e(x: number, y: number)\n.input e\n.decl p(x: number, y: number)\n.output p\n"
    for body in ("e(x, y), e(y, z), x < z, !e(z, x)", "e(x, y), z = y + 1, e(z, x)", "e(x, y), z = x * y"):
        (rule,) = compile(parse(f"{declared}p(x, z) :- {body}.")).rules
        plan = plan_rule(rule)
        assert not plan.errors and not any(getattr(step, "silent", False) for step in plan.steps)
        assert len(plan.steps) == len(literals(rule))
