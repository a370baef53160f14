"""Every generated query and schedule is valid in PostgreSQL, so that a failure of a form is kpg's."""

import pytest
from hypothesis import given

from tests.sql.generated.forms import FORMS
from tests.sql.generated.schedules import schedules
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
    @given(filled(*TABLES.values()), FORMS[form])
    def answered(rows, query):
        for statement in (f"TRUNCATE {', '.join(TABLES)}", *rows, query):
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
