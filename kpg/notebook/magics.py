"""The magics of `%load_ext kpg`: SQL and Datalog in the cells of a notebook.

    %kpg db                      use this db in later cells: a variable, or the URL of a server; without it, `db`
    %%sql [--live] [-o NAME]     statements of SQL; shows the rows of the last one, or follows it
    %%datalog [--live] [-o NAME] rules, and a goal on the last line if it ends with `?`
    %sql SELECT ...              both also on one line

With -o the result becomes a variable and is not shown. A text that is wrong shows its error without a traceback.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from kpg.client.server_address import is_address
from kpg.errors import KpgError, ProgramError, UndefinedName
from kpg.notebook.cell_databases import CellDatabase, cell_database

DEFAULT_VARIABLE = "db"


@dataclass(frozen=True, slots=True)
class CellOptions:
    """The options before a text."""

    live: bool = False
    variable: str | None = None  # that takes the result


def split_options(line: str) -> tuple[CellOptions, str]:
    """Return the options that a line begins with, and the rest of it."""
    live, variable, rest = False, None, line.strip()
    while rest.startswith("-") and not rest.startswith("--" + " "):
        word, _, rest = rest.partition(" ")
        rest = rest.lstrip()
        if word in ("--live", "-l"):
            live = True
        elif word in ("--out", "-o"):
            variable, _, rest = rest.partition(" ")
            rest = rest.lstrip()
            if not variable.isidentifier():
                raise ProgramError(f"{variable!r} cannot be a variable", hint="For example -o totals.")
        else:
            raise ProgramError(f"there is no option {word}", hint="The options are --live and -o NAME.")
    return CellOptions(live, variable), rest


def split_goal(text: str) -> tuple[str, str | None]:
    """Return the rules of a text, and the goal on its last line if that ends with a question mark."""
    lines = text.rstrip().splitlines()
    if lines and lines[-1].rstrip().endswith("?"):
        return "\n".join(lines[:-1]), lines[-1].strip().rstrip("?").strip()
    return text, None


class NotebookMagics:
    """The magics of one shell."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._chosen: Any = None
        self._databases: WeakKeyDictionary[Any, CellDatabase] = WeakKeyDictionary()

    def kpg(self, line: str) -> Any:
        """%kpg: choose the db of later cells, and show what it holds."""
        name = line.strip()
        with plain_errors():
            if name and is_address(name):
                from kpg.client.connection import connect

                self._chosen = connect(name)
            elif name:
                self._chosen = self._variable(name)
            return self._db()

    def sql(self, line: str, cell: str | None = None) -> Any:
        """%sql, %%sql: execute statements of SQL."""
        with plain_errors():
            options, rest = split_options(line)
            text = rest if cell is None else f"{rest}\n{cell}" if rest else cell
            db, variables = self._cell_database(), self._shell.user_ns
            return self._result(options, db.follow_sql if options.live else db.run_sql, text, variables)

    def datalog(self, line: str, cell: str | None = None) -> Any:
        """%datalog, %%datalog: install rules, and answer a goal."""
        with plain_errors():
            options, rest = split_options(line)
            text = rest if cell is None else f"{rest}\n{cell}" if rest else cell
            rules, goal = split_goal(text)
            db = self._cell_database()
            names = db.install(rules) if rules.strip() else ()
            if goal is not None:
                return self._result(options, db.follow_goal if options.live else db.ask, goal)
            if not names:
                return None
            return self._result(options, db.follow if options.live else db.answer, names[-1])

    def _result(self, options: CellOptions, function: Callable[..., Any], *arguments: Any) -> Any:
        result = function(*arguments)
        if options.variable is None:
            return result
        self._shell.user_ns[options.variable] = result
        return None

    def _cell_database(self) -> CellDatabase:
        db = self._db()
        if db not in self._databases:
            self._databases[db] = cell_database(db)
        return self._databases[db]

    def _db(self) -> Any:
        return self._variable(DEFAULT_VARIABLE) if self._chosen is None else self._chosen

    def _variable(self, name: str) -> Any:
        try:
            return self._shell.user_ns[name]
        except KeyError:
            hint = "Write db = kpg.open(), or %kpg and the variable or URL of a db."
            raise UndefinedName(f"there is no variable {name}", hint=hint) from None


@contextmanager
def plain_errors() -> Iterator[None]:
    """Let the notebook show errors of kpg by their message alone."""
    try:
        yield
    except KpgError as error:
        message = f"{type(error).__name__}: {error}"
        error._render_traceback_ = lambda: message.splitlines()  # type: ignore[attr-defined]
        raise


def load(shell: Any) -> None:
    """Register the magics in a shell of IPython."""
    magics = NotebookMagics(shell)
    shell.register_magic_function(magics.kpg, "line", "kpg")
    for name, function in (("sql", magics.sql), ("datalog", magics.datalog)):
        shell.register_magic_function(function, "line_cell", name)
