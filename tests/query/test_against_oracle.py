"""Random programs under random changes, against the plain evaluator: A8.2, A8.3, A8.4, A8.8."""

from hypothesis import Phase, given, note, settings

import kpg
from kpg.query.datalog import parse
from kpg.query.installed_program import InstalledProgram
from kpg.query.ir.compile import compile
from kpg.testing.datalog_oracle import evaluate
from tests.query.programs import Written, of_symbols, programs


@settings(max_examples=60, phases=[Phase.explicit, Phase.reuse, Phase.generate])  # shrinking takes minutes
@given(programs())
def test_answers_are_those_of_the_oracle_at_every_epoch(written):
    """A8.4, A8.8: negation, aggregates, disjunction and recursion, while inputs change."""
    check(written)


@settings(max_examples=30, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(programs().map(of_symbols))
def test_so_are_answers_about_texts(written):
    check(written)


def check(written: Written) -> None:
    """Compare all answers at all epochs."""
    note(written.text)
    program = parse(written.text)
    with kpg.open() as db, InstalledProgram(db, compile(program)) as running:
        before: dict[str, set] = {}
        for state in written.epochs:
            for name, rows in state.items():
                running.inputs[name].insert(sorted(rows - before.get(name, set())))
                running.inputs[name].remove(sorted(before.get(name, set()) - rows))
            before = state
            db.advance()
            expected = evaluate(program, state)
            for name in running.answers:
                assert sorted(running.rows(name)) == sorted(expected[name]), name
