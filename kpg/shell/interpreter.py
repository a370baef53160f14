"""Run statements: each makes one or two calls of a connection, and prints the result.

An error ends its statement. On a terminal the shell continues; a script stops with status 1.
"""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from kpg.client.connection import Connection, Subscription
from kpg.errors import KpgError, ParseError, UndefinedName, Unreachable
from kpg.protocol.parts import RelationSpec
from kpg.shell.goals import Free, Goal, is_body, parse_atoms, rule_for
from kpg.shell.live import watch
from kpg.shell.result_format import show_rows, show_table
from kpg.shell.statements import defined_relations, group_rules, is_name, is_rule_or_declaration, is_sql

COMMANDS: dict[str, str] = {
    "\\d": "[NAME]  list relations and rules, or the columns of one",
    "\\explain": "NAME  explain how it is computed, and which indexes it shares",
    "\\watch": "GOAL [N]  follow an answer until Ctrl-C, or for N steps",
    "\\timing": "switch the timing of statements on or off",
    "\\limit": "N  set the maximum number of rows of an answer",
    "\\forget": "NAME  remove a rule",
    "\\time": "print the last complete time",
    "\\i": "FILE  run the statements of a file",
    "\\h": "print this help",
    "\\q": "quit",
}
STATEMENT_HELP = """\
  .decl edge(x: number, y: number)       a relation; types are number, unsigned, float, symbol
  +edge(1, 2), edge(2, 3).               insert rows, at one time
  -edge(1, 2).                           remove rows
  path(x, y) :- edge(x, y).              a rule; ends with a full stop, on one or more lines
  path(1, x)?                            query once; path alone returns all rows
  path(x, y), y > 3?                     query a conjunction
  watch path(1, x)                       follow the answer
  [:find ?x :where [_ :person/name ?x]]  query in EDN
  SELECT y FROM edge WHERE x = 1;        SQL; ends with a semicolon, on one or more lines
"""


WORDS: dict[str, str] = {"help": "\\h", "quit": "\\q", "exit": "\\q"}  # typed without a backslash, as elsewhere


class Interpreter:
    """The state of a shell: its connection, its settings, and the names it knows."""

    def __init__(self, db: Connection, console: Console, errors: Console, interactive: bool) -> None:
        self.db = db
        self.console = console
        self.errors = errors
        self.interactive = interactive
        self.timing = False
        self.limit: int | None = 1_000 if interactive else None
        self.ended = False
        self._catalog: dict[str, RelationSpec] | None = None
        self._texts: dict[str, str] = {}  # rule texts typed in this shell, by rule
        self._numbers = itertools.count()

    # Scripts and errors

    def script(self, text: str) -> int:
        """Run all statements up to the first error; return the exit status."""
        for line, statement in group_rules(text):
            if self.ended:
                break
            if not self.attempt(statement, f"line {line}: "):
                return 1
        return 0

    def attempt(self, statement: str, prefix: str = "") -> bool:
        """Run a statement and print its error, if any; return whether it succeeded."""
        began = time.perf_counter()
        try:
            self.run(statement)
        except KpgError as error:
            head = f"[bold red]{escape(prefix)}{type(error).__name__}:[/]"
            self.errors.print(f"{head} {escape(str(error))}", highlight=False, soft_wrap=True)
            if isinstance(error, Unreachable):
                self.errors.print("The next statement tries again; kpg shell --wait SECONDS waits.", highlight=False)
            return False
        finally:
            self.console.file.flush()
        if self.timing:
            self.console.print(f"Time: {(time.perf_counter() - began) * 1e3:.1f} ms", style="dim", highlight=False)
        return True

    # Statements

    def run(self, statement: str) -> None:
        """Run one statement."""
        if statement.startswith("\\"):
            self.command(statement)
        elif is_sql(statement):
            self.execute_sql(statement)
        elif (word := statement.rstrip(" ;?.").lower()) in WORDS and word not in self.catalog():
            self.command(WORDS[word])
        elif re.match(r"watch\b", statement):
            self.watch(statement.removeprefix("watch").strip())
        elif statement.startswith("["):
            show_table(self.console, self.db.query(statement, language="edn", limit=self.limit))
        elif statement.startswith(("+", "-")):
            self.change(without_terminator(statement[1:]), 1 if statement.startswith("+") else -1)
        elif statement.endswith("?") or is_name(statement.rstrip(" ;")):
            self.ask(without_terminator(statement))
        elif is_rule_or_declaration(statement):
            self.register(statement)
        else:
            self.fact_or_goal(statement)

    def execute_sql(self, statement: str) -> None:
        """Execute a statement of SQL, and print its rows or what it did."""
        table = self.db.sql(statement, limit=self.limit)
        self._catalog = None
        tag = (table.schema.metadata or {}).get(b"tag", b"").decode()
        if table.num_columns:
            self.show(table)
        else:
            self.note(tag)

    def change(self, text: str, diff: int) -> None:
        """Insert or remove rows, at one time."""
        goals = parse_atoms(text)
        for goal in goals:
            if not goal.is_fact:
                raise ParseError(
                    f"a row of {goal.name} has a variable", hint='Rows are constants, as in +edge(1, "a").'
                )
        time_ = self.db.transact([(goal.name, goal.arguments, diff) for goal in goals])
        self.note(f"{len(goals)} change{'' if len(goals) == 1 else 's'} at time {time_}")

    def fact_or_goal(self, statement: str) -> None:
        """Insert a row for a fact of a relation; otherwise query. A fact with variables, or of a rule, is a query."""
        text = without_terminator(statement)
        atoms = [] if is_body(text) else parse_atoms(text)
        facts = bool(atoms) and atoms[0].is_fact and self.find_relation(atoms[0].name).role != "rule"
        self.change(text, 1) if facts else self.ask(text)

    def register(self, text: str) -> None:
        """Register rules and declarations. Further rules of a relation defined in this shell are added to its text."""
        before = list(dict.fromkeys(self._texts[name] for name in defined_relations(text) if name in self._texts))
        for old in before:
            self.db.unregister(defined_relations(old)[0])
        try:
            names = self.db.register("\n".join([*before, text]))
        except KpgError:
            for old in before:
                self.db.register(old)
            raise
        self._texts |= dict.fromkeys(names, "\n".join([*before, text]))
        self._catalog = None
        self.note(f"registered {', '.join(names)}" if names else "declared")

    def ask(self, text: str) -> None:
        """Query once, and print the rows."""
        if is_body(text):
            self.show(self.db.query(rule_for("answer", text), language="datalog", limit=self.limit))
            return
        (goal,) = parse_atoms(text)
        self.show(self.db.query(goal.name, arguments=self.bound_columns(goal), limit=self.limit))

    def show(self, table: object) -> None:
        """Print an answer, with a note if it has more rows than the limit."""
        import pyarrow as pa

        assert isinstance(table, pa.Table)
        cut = (table.schema.metadata or {}).get(b"cut") == b"true"
        show_table(self.console, table, ", and more: \\limit N" if cut else "")

    def make_rule(self, body: str) -> str:
        """Register a rule for a conjunction, and return its name."""
        name = f"answer_{self.db.welcome.session}_{next(self._numbers)}"
        self.db.register(rule_for(name, body))
        return name

    def bound_columns(self, goal: Goal) -> dict[str, object] | None:
        """Return the values of the columns that the constants of a goal bind."""
        if not goal.arguments:
            return None
        columns = [column.name for column in self.find_relation(goal.name).columns]
        if len(columns) != len(goal.arguments):
            raise ParseError(
                f"{goal.name} has {len(columns)} columns, not {len(goal.arguments)}",
                hint=f"They are {', '.join(columns)}.",
            )
        pairs = zip(columns, goal.arguments, strict=True)
        return {column: value for column, value in pairs if not isinstance(value, Free)} or None

    def watch(self, text: str) -> None:
        """Follow an answer."""
        match = re.fullmatch(r"(.*?)(?:\s+(\d+))?", without_terminator(text), re.DOTALL)
        assert match is not None
        goal, max_steps = match[1], int(match[2]) if match[2] else None
        rule = self.make_rule(goal) if is_body(goal) else None
        try:
            with self.follow(rule, goal) as subscription:
                watch(self.console, subscription, goal, max_steps)
        finally:
            if rule is not None:
                self.db.unregister(rule)

    def follow(self, rule: str | None, goal: str) -> Subscription:
        """Subscribe to a rule, or to a goal."""
        if rule is not None:
            return self.db.interest(rule)
        (atom,) = parse_atoms(goal)
        return self.db.interest(atom.name, arguments=self.bound_columns(atom))

    # Commands

    def command(self, line: str) -> None:
        """Run a command, which begins with a backslash."""
        word, _, rest = line.partition(" ")
        actions: dict[str, Callable[[str], None]] = {
            "\\d": self.describe, "\\explain": self.explain, "\\watch": self.watch, "\\timing": self.switch_timing,
            "\\limit": self.set_limit, "\\forget": self.forget, "\\time": self.show_time, "\\i": self.include,
            "\\h": self.help, "\\?": self.help, "\\q": self.quit,
        }  # fmt: skip
        if word not in actions:
            raise UndefinedName(f"no command is called {word}", hint=f"Commands are {' '.join(COMMANDS)}.")
        actions[word](rest.strip())

    def describe(self, name: str) -> None:
        """`\\d`: list relations and rules, or the columns of one."""
        if name:
            columns = [(column.name, column.type) for column in self.find_relation(name).columns]
            show_rows(self.console, ("column", "type"), columns, len(columns))
            return
        self._catalog = None
        rows = [
            (relation.name, relation.role, ", ".join(column.name for column in relation.columns))
            for relation in self.catalog().values()
        ]
        show_rows(self.console, ("name", "is a", "columns"), rows, len(rows))

    def explain(self, name: str) -> None:
        """`\\explain`: print how a rule is computed."""
        self.console.print(self.db.explain(name), markup=False, highlight=False, soft_wrap=True)

    def switch_timing(self, word: str) -> None:
        """`\\timing`: switch timing on or off; without an argument, toggle it."""
        self.timing = {"on": True, "off": False}.get(word, not self.timing)
        self.note(f"timing is {'on' if self.timing else 'off'}")

    def set_limit(self, word: str) -> None:
        """`\\limit`: set the maximum number of rows of an answer."""
        if not word.isdigit():
            raise ParseError(f"{word!r} is not a number of rows", hint="For example \\limit 100.")
        self.limit = int(word)

    def forget(self, name: str) -> None:
        """`\\forget`: remove a rule."""
        self.db.unregister(name)
        removed = self._texts.get(name)
        self._texts = {rule: text for rule, text in self._texts.items() if text != removed}
        self._catalog = None

    def show_time(self, _: str) -> None:
        """`\\time`: print the last complete time."""
        self.console.print(str(self.db.ping()), highlight=False)

    def include(self, path: str) -> None:
        """`\\i`: run the statements of a file."""
        try:
            text = Path(path).read_text()
        except (OSError, UnicodeDecodeError) as error:
            raise ParseError(f"cannot read {path!r}", detail=str(error)) from None
        for _, statement in group_rules(text):
            self.run(statement)

    def help(self, _: str) -> None:
        """`\\h`: print the help."""
        lines = [f"  {name:<9} {description}" for name, description in COMMANDS.items()]
        self.console.print(STATEMENT_HELP + "\n" + "\n".join(lines), markup=False, highlight=False)

    def quit(self, _: str) -> None:
        """`\\q`: end the shell."""
        self.ended = True

    # Names

    def catalog(self) -> dict[str, RelationSpec]:
        """Return the relations and rules by name, cached."""
        if self._catalog is None:
            self._catalog = {relation.name: relation for relation in self.db.catalog()}
        return self._catalog

    def find_relation(self, name: str) -> RelationSpec:
        """Return a relation or rule. Refreshes the cache if the name is unknown: another client may have added it."""
        if name not in self.catalog():
            self._catalog = None
        if name not in self.catalog():
            names = ", ".join(self.catalog())
            raise UndefinedName(f"no relation or rule is called {name!r}", hint=f"They are {names}.")
        return self.catalog()[name]

    def note(self, text: str) -> None:
        """Print a remark on a terminal; scripts print rows only."""
        if self.interactive:
            self.console.print(text, style="green", highlight=False)


def without_terminator(text: str) -> str:
    """Return a statement without its final full stop, question mark or semicolon."""
    return text.strip().rstrip(".?;").strip()
