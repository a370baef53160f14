"""What PostgreSQL refuses to parse or type, kpg refuses; what PostgreSQL takes, kpg takes or names as not supported."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sql.generated.forms import FORMS
from tests.sql.generated.mutations import damaged, words
from tests.sql.generated.schedules import changes
from tests.sql.generated.tables import RARE, TABLES
from tests.sql.truth.postgres import Refusal

# Errors of syntax, names and types, and of literals that their type cannot read. The planner of PostgreSQL finds more,
# such as a division of constants by zero; kpg finds them in rows.
REFUSED_BY_TYPING = ("42", "22P02", "22007")
NOT_SUPPORTED = "0A000"

STATEMENTS = {**FORMS, "changes": st.sampled_from([*TABLES.values(), RARE]).flatmap(changes)}


@pytest.fixture(scope="module")
def typed(twins):
    """Both systems with empty tables."""
    twins.reset()
    twins.create_tables({table.name: table.definition for table in (*TABLES.values(), RARE)})
    yield twins
    twins.reset()


@pytest.fixture(scope="module")
def workers():
    """Only one: the parser and the binder run before any worker does."""
    return 1


@pytest.mark.parametrize("form", STATEMENTS)
def test_kpg_refuses_what_postgresql_refuses(typed, form):
    @given(damaged(STATEMENTS[form]))
    def refused(statement):
        theirs = typed.postgres.checked(statement)
        ours = typed.kpg(f"EXPLAIN {statement}")
        if theirs is None:
            assert not isinstance(ours, Refusal) or ours.sqlstate == NOT_SUPPORTED, f"{statement}\n{ours}"
        elif theirs.sqlstate.startswith(REFUSED_BY_TYPING):
            assert isinstance(ours, Refusal), f"kpg accepts {statement}\nPostgreSQL says {theirs.message}"

    refused()


def test_damage_makes_both_valid_and_invalid_statements(postgres):
    postgres.reset()
    for table in (*TABLES.values(), RARE):
        postgres.rows(f"CREATE TABLE {table.name} ({table.definition})")
    outcomes = set()

    @settings(max_examples=300)  # one in twenty is valid
    @given(damaged(st.one_of(*STATEMENTS.values())))
    def outcome(statement):
        refusal = postgres.checked(statement)
        outcomes.add(refusal.sqlstate[:2] if refusal else "valid")

    outcome()
    assert {"valid", "42"} <= outcomes


@given(st.one_of(*STATEMENTS.values()))
def test_words_are_a_statement_again(statement):
    assert "".join(words(statement)).replace(" ", "") == statement.replace(" ", "")
