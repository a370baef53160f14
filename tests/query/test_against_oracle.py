"""Random programs under random changes, compared with the plain evaluator: A8.2, A8.3, A8.4, A8.8."""

from hypothesis import Phase, given, note, settings

import kpg
from kpg.query.datalog import parse
from kpg.query.installed_program import InstalledProgram
from kpg.query.ir.compile import compile
from kpg.testing.datalog_oracle import evaluate
from tests.query.input_states import advance_through, assert_answers
from tests.query.random_programs import RandomProgram, of_symbols, programs


@settings(max_examples=60, phases=[Phase.explicit, Phase.reuse, Phase.generate])  # shrinking takes minutes
@given(programs())
def test_answers_are_those_of_the_oracle_at_every_epoch(random_program):
    """A8.4, A8.8: negation, aggregates, disjunction and recursion, while inputs change."""
    check(random_program)


@settings(max_examples=30, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(programs().map(of_symbols))
def test_answers_about_symbols_are_those_of_the_oracle(random_program):
    check(random_program)


def check(random_program: RandomProgram) -> None:
    """Compare all answers at all epochs."""
    note(random_program.text)
    program = parse(random_program.text)
    with kpg.open() as db, InstalledProgram(db, compile(program)) as installed:
        for state in advance_through(db, installed, random_program.epochs):
            assert_answers(installed, evaluate(program, state))
