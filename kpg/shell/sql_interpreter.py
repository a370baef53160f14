"""Run SQL statements and the commands of a prompt, and print results as psql does.

Statements end with a semicolon, commands (`\\d`, `\\timing`, …) with their line. In a script, the first error ends the
run with status 1; at a prompt, it is printed and the next statement goes on.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final, TextIO

from kpg.errors import KpgError, ParseError, ProgramError, Unavailable, UndefinedName
from kpg.sql.functions.text_output import show_value
from kpg.sql.parse.statement_texts import StatementText, split_statements
from kpg.sql.session.query_result import QueryResult
from kpg.sql.session.sql_session import SqlSession, session_of
from kpg.sql.session.subscribe_changes import SqlSubscription

if TYPE_CHECKING:
    from kpg.api.contracts import Database

MAX_NESTED_SCRIPTS: Final = 16  # \\i within \\i; a script that includes itself ends here
DEFAULT_WATCH_SECONDS: Final = 2.0
SUBSCRIPTION_POLL_SECONDS: Final = 0.1

COMMANDS: Final = {
    "\\d": "[NAME]  relations, or the columns of one",
    "\\dt": "tables",
    "\\dv": "views",
    "\\di": "indexes",
    "\\timing": "show the time of each statement, or no longer",
    "\\watch": "[SECONDS]  repeat the last query until Ctrl-C",
    "\\x": "show one column a line, or no longer",
    "\\i": "FILE  run a script",
    "\\?": "this help",
    "\\q": "quit",
}


class SqlInterpreter:
    """Runs statements of one session and prints what they return."""

    def __init__(self, db: Database, out: TextIO, errors: TextIO, interactive: bool = False) -> None:
        self.session: SqlSession = session_of(db)
        self.out = out
        self.errors = errors
        self.interactive = interactive
        self.ended = False
        self._timing = False
        self._expanded = False
        self._last: str | None = None  # the last query, for \\watch
        self._depth = 0

    # Texts

    def script(self, text: str, name: str = "query") -> int:
        """Run all statements of a text up to the first error; return the exit status."""
        for part in split_statements(text, name):
            if not self.attempt(part, name):
                return 1
            if self.ended:
                break
        return 0

    def attempt(self, part: StatementText, name: str = "query") -> bool:
        """Run one statement or command; print an error and return False if it fails."""
        try:
            self.run(part, name)
        except KpgError as error:
            self.print_error(error)
            return False
        except KeyboardInterrupt:
            self.errors.write("interrupted\n")
            return False
        return True

    def run(self, part: StatementText, name: str = "query") -> None:
        """Run one statement or command."""
        if part.text.startswith("\\"):
            self.command(part.text)
            return
        began = time.perf_counter()
        for statement in part.parse(name):
            self.show(self.session.execute_one(statement, {}))
        self._last = part.text
        if self._timing:
            self.out.write(f"Time: {(time.perf_counter() - began) * 1e3:.3f} ms\n")

    # Output

    def show(self, result: QueryResult | SqlSubscription) -> None:
        """Print what a statement returned."""
        if isinstance(result, SqlSubscription):
            self.follow(result)
        elif result.has_rows and self._expanded:
            self.out.write(expanded(result) + "\n")
        else:
            self.out.write(f"{result}\n" if str(result) else "")
        self.out.flush()

    def follow(self, subscription: SqlSubscription) -> None:
        """Print changes: those known now in a script, and further ones until Ctrl-C at a prompt."""
        with subscription:
            while True:
                for change in subscription.take():
                    row = "\t".join(show_value(value, "\\N") for value in change.row or ())
                    self.out.write(f"{change.epoch}\t{change.diff:+d}\t{row}\n")
                self.out.flush()
                if not self.interactive or subscription.ended:
                    return
                time.sleep(SUBSCRIPTION_POLL_SECONDS)

    def print_error(self, error: KpgError) -> None:
        """Print an error: what failed, where, and what to do."""
        state = f" ({error.sqlstate})" if error.sqlstate else ""
        first, _, rest = str(error).partition("\n")
        self.errors.write(f"ERROR{state}: {first}\n" + (f"{rest}\n" if rest else ""))
        self.errors.flush()

    # Commands

    def command(self, line: str) -> None:
        """Run a command that begins with a backslash."""
        name, _, argument = line.strip().rstrip(";").partition(" ")
        argument = argument.strip()
        actions: dict[str, Callable[[str], None]] = {
            "\\d": self.describe,
            "\\dt": lambda _: self.execute("SHOW TABLES"),
            "\\dv": lambda _: self.execute("SHOW VIEWS"),
            "\\di": lambda _: self.execute("SHOW INDEXES"),
            "\\timing": self.toggle_timing,
            "\\x": self.toggle_expanded,
            "\\watch": self.watch,
            "\\i": self.include,
            "\\?": self.help,
            "\\h": self.help,
            "\\q": self.quit,
        }
        action = actions.get(name)
        if action is None:
            raise ProgramError(f"there is no command {name}", hint="\\? lists the commands.")
        action(argument)

    def execute(self, text: str) -> None:
        """Execute a statement and print its result."""
        self.show(self.session.execute(text))

    def describe(self, name: str) -> None:
        """Print the relations, or the columns, keys and indexes of one."""
        if not name:
            for kind in ("TABLES", "VIEWS"):
                self.execute(f"SHOW {kind}")
            return
        folded = name.strip('"') if name.startswith('"') else name.lower()
        entry = self.session.catalog.entry(folded)
        if entry is None:
            raise UndefinedName(f"there is no relation {name!r}", hint="\\d lists them.")
        quoted = folded.replace('"', '""')
        self.execute(f'SHOW COLUMNS FROM "{quoted}"')
        key = getattr(entry, "primary_key", ())
        if key:
            self.out.write(f"Primary key: {', '.join(key)}\n")
        for check, text in getattr(entry, "checks", ()):
            self.out.write(f"Check {check}: {text}\n")
        for index in self.session.catalog.indexes_of(folded):
            self.out.write(f"Index {index.name}: {', '.join(index.columns)}\n")

    def toggle_timing(self, argument: str) -> None:
        """Turn the time of statements on or off."""
        self._timing = not self._timing if not argument else argument == "on"
        self.out.write(f"Timing is {'on' if self._timing else 'off'}.\n")

    def toggle_expanded(self, argument: str) -> None:
        """Turn the display of one column a line on or off."""
        self._expanded = not self._expanded if not argument else argument == "on"
        self.out.write(f"Expanded display is {'on' if self._expanded else 'off'}.\n")

    def watch(self, argument: str) -> None:
        """Repeat the last query until Ctrl-C."""
        if self._last is None:
            raise ProgramError("there is no query to repeat", hint="Run one first.")
        try:
            seconds = float(argument) if argument else DEFAULT_WATCH_SECONDS
        except ValueError:
            raise ProgramError(f"{argument!r} is not a number of seconds") from None
        try:
            while True:
                self.out.write(time.strftime("%c") + f" (every {seconds:g}s)\n\n")
                self.execute(self._last)
                time.sleep(seconds)
        except KeyboardInterrupt:
            self.out.write("\n")

    def include(self, argument: str) -> None:
        """Run a script."""
        path = Path(argument.strip("'\""))
        if self._depth >= MAX_NESTED_SCRIPTS:
            raise ProgramError(f"scripts include each other more than {MAX_NESTED_SCRIPTS} deep")
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise Unavailable(f"cannot read {path}", detail=str(error)) from None
        self._depth += 1
        try:
            if self.script(text, str(path)) != 0:
                raise ParseError(f"{path} ended at an error")
        finally:
            self._depth -= 1

    def help(self, _: str) -> None:
        """Print the commands."""
        for name, description in COMMANDS.items():
            self.out.write(f"  {name:<9} {description}\n")
        self.out.write("Statements end with a semicolon. docs/sql.md teaches them, docs/sql-reference.md lists them.\n")

    def quit(self, _: str) -> None:
        """End the session."""
        self.ended = True


def expanded(result: QueryResult) -> str:
    """Return rows with one column a line."""
    width = max((len(column.name) for column in result.columns), default=0)
    lines = []
    for number, row in enumerate(result.rows(), 1):
        lines.append(f"-[ RECORD {number} ]-")
        lines += [
            f"{column.name:<{width}} | {show_value(value)}" for column, value in zip(result.columns, row, strict=True)
        ]
    return "\n".join(lines or ["(0 rows)"])
