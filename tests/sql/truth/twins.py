"""The same statements in PostgreSQL and in kpg, and the comparison of what both say.

twins.run("INSERT INTO r VALUES (1)")        both accept it, with equal rows, or both refuse it with one SQLSTATE
twins.install("v", "SELECT ...")             a materialized view in kpg
twins.compare_views()                        each view, against its query in PostgreSQL now
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kpg.errors import KpgError
from tests.sql.truth.compare import difference
from tests.sql.truth.postgres import Answer, Postgres, Refusal, Row


class Twins:
    """A db of kpg beside PostgreSQL."""

    def __init__(self, postgres: Postgres, db: Any) -> None:
        self.postgres = postgres
        self.db = db
        self.views: dict[str, str] = {}
        self.tables: list[str] = []

    def reset(self) -> None:
        """Drop the tables and views that were made here."""
        self.postgres.reset()
        self.kpg("ROLLBACK")  # a test that failed may have left a transaction
        for view in self.views:
            self.db.sql(f"DROP MATERIALIZED VIEW IF EXISTS {view} CASCADE")
        for table in self.tables:
            self.db.sql(f"DROP TABLE IF EXISTS {table} CASCADE")
        self.views, self.tables = {}, []

    def create_tables(self, definitions: dict[str, str]) -> None:
        """Create tables, given their columns."""
        for name, columns in definitions.items():
            self.run(f"CREATE TABLE {name} ({columns})")
            self.tables.append(name)

    def install(self, name: str, query: str) -> None:
        """Make a view in both, or see both refuse it; PostgreSQL gets its query at each comparison."""
        theirs = self.postgres.sql(f"CREATE VIEW {name} AS {query}")
        ours = self.kpg(f"CREATE MATERIALIZED VIEW {name} AS {query}")
        if isinstance(theirs, Refusal) or isinstance(ours, Refusal):
            assert_same_refusal(query, theirs, ours)
        else:
            self.views[name] = query

    def run(self, statement: str, *, state_characters: int = 5) -> Answer | Refusal:
        """Run a statement in both and compare what they answer; of SQLSTATEs, only some characters."""
        theirs = self.postgres.sql(statement)
        ours = self.kpg(statement)
        if isinstance(theirs, Refusal) or isinstance(ours, Refusal):
            assert_same_refusal(statement, theirs, ours, state_characters)
        elif theirs.names:
            assert_same_rows(statement, theirs, ours)
        return theirs

    def run_all(self, statements: Iterable[str]) -> None:
        """Run statements one by one."""
        for statement in statements:
            self.run(statement)

    def compare_views(self) -> None:
        """Compare each view with the answer of its query in PostgreSQL."""
        for name, query in self.views.items():
            expected = self.postgres.sql(query)
            actual = self.kpg(f"SELECT * FROM {name}")
            if isinstance(expected, Refusal) or isinstance(actual, Refusal):
                assert_same_refusal(query, expected, actual)
            else:
                assert_same_rows(query, expected, actual)

    def ordered(self, query: str) -> None:
        """Compare the rows of a query with a total order, in that order."""
        expected = self.postgres.rows(query)
        actual = self.kpg(query)
        assert not isinstance(actual, Refusal), f"kpg refuses {query}\n{actual.message}"
        for position, (theirs, ours) in enumerate(zip(expected.rows, actual, strict=True)):
            differs = difference([theirs], [ours], expected.types)
            assert differs is None, f"{query}\nrow {position}: {differs}"

    def kpg(self, statement: str) -> list[Row] | Refusal:
        """Run a statement in kpg."""
        try:
            result = self.db.sql(statement)
            return list(result.rows()) if hasattr(result, "rows") else []
        except KpgError as error:
            return Refusal(getattr(error, "sqlstate", None) or "", str(error))


def assert_same_rows(statement: str, expected: Answer, actual: list[Row]) -> None:
    """Fail unless both answers are the same multiset."""
    differs = difference(expected.rows, actual, expected.types)
    assert differs is None, f"{statement}\n{differs}"


def assert_same_refusal(statement: str, theirs: object, ours: object, state_characters: int = 5) -> None:
    """Fail unless both refuse, with the same SQLSTATE or the same beginning of it."""
    assert isinstance(theirs, Refusal), f"kpg refuses {statement}\n{ours}"
    assert isinstance(ours, Refusal), f"kpg accepts {statement}\nPostgreSQL says {theirs.message}"
    same = ours.sqlstate[:state_characters] == theirs.sqlstate[:state_characters]
    assert same, f"{statement}\nPostgreSQL: {theirs}\nkpg: {ours}"
