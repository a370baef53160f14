"""The dbs that the cells of a notebook use: one of this process, or a server.

Both run SQL and Datalog, return rows to show, and return views that follow an answer. A view owns what was installed
for it alone, and drops it when it ends.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from kpg.api.answer_preview import PREVIEW_ROWS
from kpg.api.background import Background
from kpg.api.contracts import Database
from kpg.api.ordered_read import FRAME_SECONDS
from kpg.client.connection import Connection
from kpg.columns.rows import rows_of
from kpg.errors import NameTaken, ProgramError
from kpg.html_table import caption, table
from kpg.notebook.installed_rules import collections_of, install_rules
from kpg.notebook.live_table import LiveAnswer, live_table
from kpg.notebook.sql_cells import SqlCells, is_one_query, parameters_of, quoted
from kpg.shell.goals import rule_for

MAX_SHOWN_ROWS = 1_000  # of a result that is a table


@dataclass(frozen=True, slots=True)
class ShownTable:
    """Rows that a notebook shows; `table` is an Arrow table."""

    table: pa.Table

    def rows(self) -> list[tuple[Any, ...]]:
        """Return the rows as tuples."""
        return rows_of(self.table)

    def to_pandas(self) -> Any:
        """Return the rows as a pandas DataFrame."""
        return self.table.to_pandas()

    def __repr__(self) -> str:
        return f"{self._count()} of {', '.join(self.table.column_names)}"

    def _count(self) -> str:
        return f"{self.table.num_rows:,} row{'' if self.table.num_rows == 1 else 's'}"

    def _repr_html_(self) -> str:
        tag = (self.table.schema.metadata or {}).get(b"tag", b"").decode()
        if not self.table.num_columns:
            return caption(tag or self._count())
        return table(self.table.column_names, rows_of(self.table.slice(0, MAX_SHOWN_ROWS))) + caption(self._count())


class CellDatabase(ABC):
    """A db as cells use it."""

    def __init__(self) -> None:
        self._sql = SqlCells(self.execute)

    @abstractmethod
    def execute(self, text: str, parameters: Mapping[str, Any]) -> Any:
        """Execute one statement of SQL."""

    def run_sql(self, text: str, variables: Mapping[str, Any]) -> Any:
        """Execute statements of SQL; return the result of the last one."""
        return self._sql.run(text, variables)

    def follow_sql(self, text: str, variables: Mapping[str, Any]) -> LiveAnswer:
        """Return a view of the answer of one query."""
        if not is_one_query(text):
            raise ProgramError("only one SELECT, VALUES, TABLE or WITH can be followed", hint="Leave --live out.")
        return self.follow_query(text.strip().rstrip("; \n"), parameters_of(text, variables))

    @abstractmethod
    def follow_query(self, text: str, parameters: Mapping[str, Any]) -> LiveAnswer:
        """Return a view of the answer of one query."""

    @abstractmethod
    def install(self, rules: str) -> tuple[str, ...]:
        """Install or register rules, in place of those that this notebook had under these names; return the names."""

    @abstractmethod
    def answer(self, name: str) -> Any:
        """Return the rows of a rule, to show."""

    @abstractmethod
    def follow(self, name: str) -> LiveAnswer:
        """Return a view of a rule."""

    @abstractmethod
    def ask(self, goal: str) -> Any:
        """Return the rows of a goal, to show."""

    @abstractmethod
    def follow_goal(self, goal: str) -> LiveAnswer:
        """Return a view of a goal."""


class LocalDatabase(CellDatabase):
    """A db of this process, on this thread or one of its own, or of several workers."""

    def __init__(self, db: Any) -> None:
        super().__init__()
        self._db = db

    def _within(self, function: Any) -> Any:
        """Call a function with the db on its thread."""
        return self._db.run(function) if isinstance(self._db, Background) else function(self._db)

    def execute(self, text: str, parameters: Mapping[str, Any]) -> Any:
        return self._db.sql(text, **parameters)

    def follow_query(self, text: str, parameters: Mapping[str, Any]) -> LiveAnswer:
        return self._view(self._db.query(text, **parameters).output())

    def install(self, rules: str) -> tuple[str, ...]:
        names: tuple[str, ...] = self._within(lambda db: install_rules(db, rules))
        return names

    def answer(self, name: str) -> Any:
        return self._db[name]

    def follow(self, name: str) -> LiveAnswer:
        return live_table(self._db[name], PREVIEW_ROWS, FRAME_SECONDS)

    def ask(self, goal: str) -> Any:
        output = self._output_of(goal)
        try:
            return ShownTable(output.snapshot())
        finally:
            output.release()

    def follow_goal(self, goal: str) -> LiveAnswer:
        return self._view(self._output_of(goal))

    def _output_of(self, goal: str) -> Any:
        return self._within(lambda db: collections_of(db, rule_for("answer", goal))["answer"].output())

    def _view(self, output: Any) -> LiveAnswer:
        view = live_table(output, PREVIEW_ROWS, FRAME_SECONDS)
        view.source.name = "answer"
        view.on_stop.append(output.release)
        return view


class ServerDatabase(CellDatabase):
    """A server, through a connection."""

    def __init__(self, db: Connection) -> None:
        super().__init__()
        self._db = db
        self._names = (f"notebook_{db.welcome.session}_{number}" for number in itertools.count(1))
        self._registered: set[str] = set()

    def execute(self, text: str, parameters: Mapping[str, Any]) -> Any:
        return ShownTable(self._db.sql(text, **parameters))

    def follow_query(self, text: str, parameters: Mapping[str, Any]) -> LiveAnswer:
        name = next(self._names)
        self._db.sql(f"CREATE MATERIALIZED VIEW {quoted(name)} AS {text}", **parameters)
        return self._view(name, "answer", lambda: self._db.sql(f"DROP MATERIALIZED VIEW {quoted(name)}"))

    def install(self, rules: str) -> tuple[str, ...]:
        try:
            names = self._db.register(rules)
        except NameTaken:
            from kpg.shell.statements import defined_relations

            own = [name for name in defined_relations(rules) if name in self._registered]
            if not own:
                raise
            self._db.unregister(own[0])
            names = self._db.register(rules)
        self._registered.update(names)
        return names

    def answer(self, name: str) -> Any:
        return ShownTable(self._db.query(name))

    def follow(self, name: str) -> LiveAnswer:
        return self._view(name, name, lambda: None)

    def ask(self, goal: str) -> Any:
        return ShownTable(self._db.query(rule_for("answer", goal), language="datalog"))

    def follow_goal(self, goal: str) -> LiveAnswer:
        name = next(self._names)
        self._db.register(rule_for(name, goal))
        return self._view(name, "answer", lambda: self._db.unregister(name))

    def _view(self, name: str, title: str, drop: Callable[[], object]) -> LiveAnswer:
        subscription = self._db.interest(name)
        view = live_table(subscription, PREVIEW_ROWS, FRAME_SECONDS)
        view.source.name = title
        view.on_stop += [subscription.close, drop]
        return view


def cell_database(db: Any) -> CellDatabase:
    """Return a db, or a connection to a server, as cells use it."""
    if isinstance(db, Connection):
        return ServerDatabase(db)
    if isinstance(db, Database | Background):
        return LocalDatabase(db)
    raise ProgramError(f"{db!r} is not a db", hint="Give what kpg.open() or kpg.connect() returns.")
