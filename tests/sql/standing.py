"""The property of every query form: a standing view is, after each epoch, what PostgreSQL answers.

    for all tables, queries and schedules:  after each epoch, rows of the view == rows of the query in PostgreSQL

The same query is also asked once at the end, because one-off and standing queries share planner and semantics.
"""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sql.generated.schedules import schedules
from tests.sql.generated.tables import E, R, S, Table, U, filled
from tests.sql.truth.twins import Twins

TABLES = (R, S, U, E)
SHARES = {1: 2, 2: 8}  # a standing view costs a tenth of a second, and more on two workers: fewer examples are tried


def check_form(twins: Twins, workers: int, queries: st.SearchStrategy[str], tables: tuple[Table, ...] = TABLES) -> None:
    """Compare a form's queries, as standing views under changes, with PostgreSQL."""
    examples = max(3, (settings.default or settings()).max_examples // SHARES[workers])

    @settings(max_examples=examples)
    @given(filled(*tables), queries, schedules(tables))
    def standing(rows: list[str], query: str, schedule: list[list[str]]) -> None:
        twins.reset()
        twins.create_tables({table.name: table.definition for table in tables if reads(query, table)})
        kept = [statement for statement in rows if changes_one_of(statement, twins.tables)]
        twins.run_all(kept)
        twins.install("answer", query)
        twins.compare_views()
        for epoch in schedule:
            twins.run_all(statement for statement in epoch if changes_one_of(statement, twins.tables))
            twins.compare_views()
        twins.run(query)

    standing()


def reads(query: str, table: Table) -> bool:
    """Return whether a query mentions a table."""
    return f" {table.name} " in f"{query} ".replace(",", " ").replace(")", " ")


def changes_one_of(statement: str, tables: list[str]) -> bool:
    """Return whether a statement changes one of some tables, or none at all."""
    words = statement.split()
    target = {"INSERT": 2, "DELETE": 2, "UPDATE": 1}.get(words[0])
    return target is None or words[target] in tables
