"""An expression that fails counts only if every literal that does not use its value holds, in every plan."""

from hypothesis import Phase, given, note, settings
from hypothesis import strategies as st

import kpg
from kpg.query.datalog import parse
from kpg.query.installed_program import InstalledProgram
from kpg.query.ir.compile import compile
from kpg.testing.error_oracle import evaluate
from kpg.testing.simulated_workers import SimulatedCluster
from tests.query.failing_programs import failing_programs

FAILED = "failed"


@settings(max_examples=40, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(failing_programs(), st.sampled_from(["auto", "binary", "delta", "hector"]))
def test_relations_fail_as_in_the_oracle_at_every_epoch(program, joins):
    """Which relations have an answer, and which rows, while inputs change and errors come and go."""
    note(program.text)
    note(joins)
    parsed = parse(program.text)
    with kpg.open() as db, InstalledProgram(db, compile(parsed), joins=joins) as installed:
        before: dict[str, set] = {}
        for state in program.epochs:
            for name, rows in state.items():
                installed.inputs[name].insert(sorted(rows - before.get(name, set())))
                installed.inputs[name].remove(sorted(before.get(name, set()) - rows))
            before = state
            db.advance()
            assert {name: answer(installed, name) for name in installed.answers} == expected(parsed, state)


@settings(max_examples=8, phases=[Phase.explicit, Phase.reuse, Phase.generate])
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
    for state in program.epochs:
        for name, rows in state.items():
            for number, row in enumerate(sorted(rows ^ before.get(name, set()))):
                cluster.insert(number % 2, name, row, 1 if row in rows else -1)
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
