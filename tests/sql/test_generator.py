"""Every generated query and schedule is valid in PostgreSQL, so that a failure of a form is kpg's."""

import pytest
from hypothesis import given, settings

from tests.sql.generated.failing_queries import failing_queries
from tests.sql.generated.forms import FORMS
from tests.sql.generated.schedules import schedules
from tests.sql.generated.statements import DEFINITION, OTHER, statement_lists
from tests.sql.generated.tables import RARE, TABLES, filled
from tests.sql.truth.postgres import Answer, Refusal

NO_FAULT = {"23505"}  # a key that is there already


@pytest.fixture
def filled_postgres(postgres):
    """PostgreSQL with empty tables."""
    postgres.reset()
    for table in (*TABLES.values(), RARE):
        postgres.rows(f"CREATE TABLE {table.name} ({table.definition})")
    return postgres


@pytest.mark.parametrize("form", FORMS)
def test_each_form_generates_queries_that_postgresql_answers(filled_postgres, form):
    @given(filled(*TABLES.values(), RARE), FORMS[form])
    def answered(rows, query):
        for statement in (f"TRUNCATE rare, {', '.join(TABLES)}", *rows, query):
            filled_postgres.rows(statement)

    answered()


def test_schedules_are_statements_that_postgresql_runs(filled_postgres):
    outcomes = set()

    @given(schedules([*TABLES.values(), RARE]))
    def run(schedule):
        filled_postgres.sql("ROLLBACK")
        filled_postgres.rows(f"TRUNCATE {', '.join(TABLES)}, rare")
        for epoch in schedule:
            for statement in epoch:
                answer = filled_postgres.sql(statement)
                assert isinstance(answer, Answer) or answer.sqlstate in {*NO_FAULT, "25P02"}, (statement, answer)
                outcomes.add(type(answer))

    run()
    assert outcomes == {Answer, Refusal}


def test_failing_queries_fail_only_at_run_time(filled_postgres):
    outcomes = set()

    @given(filled(*TABLES.values()), failing_queries())
    def fails(rows, query):
        for statement in (f"TRUNCATE {', '.join(TABLES)}", *rows):
            filled_postgres.rows(statement)
        answer = filled_postgres.sql(query)
        assert isinstance(answer, Answer) or answer.sqlstate.startswith("22"), (query, answer)
        outcomes.add(type(answer))

    fails()
    assert outcomes == {Answer, Refusal}


def test_statements_meet_the_constraints_or_break_them(filled_postgres):
    states = set()

    @settings(max_examples=200)  # enough to meet every kind of refusal
    @given(statement_lists())
    def run(statements):
        filled_postgres.reset()
        filled_postgres.rows(f"CREATE TABLE c ({DEFINITION})")
        filled_postgres.rows(f"CREATE TABLE o ({OTHER})")
        for statement in statements:
            answer = filled_postgres.sql(statement)
            states.add(answer.sqlstate if isinstance(answer, Refusal) else "done")
            assert isinstance(answer, Answer) or answer.sqlstate[:2] in {"21", "22", "23"}, (statement, answer)

    run()
    assert {"done", "23505", "23502", "23514"} <= states
