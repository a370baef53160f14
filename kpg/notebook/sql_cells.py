"""SQL in the cells of a notebook: statements one by one, and definitions that may run twice.

    CREATE TABLE of a table that exists          no effect if this notebook has executed the same text before
    CREATE VIEW, CREATE MATERIALIZED VIEW        the same; a view with another text is replaced

All other statements have their usual effect each time that they run, so INSERT inserts again. `:name` takes the value
of the notebook's variable of that name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from kpg.errors import NameTaken
from kpg.sql.parse.sql_statements import CreateTable, CreateView, QueryStatement
from kpg.sql.parse.statement_texts import StatementText, split_statements

PARAMETER = re.compile(r"(?<![:\w]):([A-Za-z_]\w*)")
CELL = "cell"  # the name of the text in errors
Execute = Callable[[str, Mapping[str, Any]], Any]


class SqlCells:
    """The SQL of one notebook on one db; `execute` runs one text with parameters."""

    def __init__(self, execute: Execute) -> None:
        self._execute = execute
        self._definitions: dict[str, str] = {}  # name → the text that defined it

    def run(self, text: str, variables: Mapping[str, Any]) -> Any:
        """Execute the statements of a text; return the result of the last one."""
        result: Any = None
        for part in parts_of(text):
            result = self._run_one(part, parameters_of(part.text, variables))
        return result

    def _run_one(self, part: StatementText, parameters: Mapping[str, Any]) -> Any:
        text, (statement,) = part.text, part.parse(CELL)
        if not isinstance(statement, CreateTable | CreateView):
            return self._execute(text, parameters)
        name = statement.name.text
        try:
            result = self._execute(text, parameters)
        except NameTaken:
            if self._definitions.get(name) == text.strip():
                return None
            if not isinstance(statement, CreateView):
                raise
            kind = "MATERIALIZED VIEW" if statement.materialized else "VIEW"
            self._execute(f"DROP {kind} {quoted(name)}", {})
            result = self._execute(text, parameters)
        self._definitions[name] = text.strip()
        return result


def is_one_query(text: str) -> bool:
    """Whether a text is one query, so that its answer can be followed."""
    statements = [statement for part in parts_of(text) for statement in part.parse(CELL)]
    return len(statements) == 1 and isinstance(statements[0], QueryStatement)


def parts_of(text: str) -> list[StatementText]:
    """Return the statements of a text; comments alone are none."""
    return [part for part in split_statements(text, CELL) if part.parse(CELL)]


def parameters_of(text: str, variables: Mapping[str, Any]) -> dict[str, Any]:
    """Return the variables that a text names as parameters."""
    return {name: variables[name] for name in PARAMETER.findall(text) if name in variables}


def quoted(name: str) -> str:
    """Return a name as SQL writes it."""
    return '"' + name.replace('"', '""') + '"'
