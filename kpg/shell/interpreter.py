"""Statements, done: each is a call or two of a connection, and something printed.

Errors of kpg are shown and end the statement; on a terminal the shell goes on, in a script it stops with status 1.
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
from kpg.errors import KpgError, ParseError, UndefinedName
from kpg.protocol.parts import RelationSpec
from kpg.shell.goals import Free, Goal, is_body, parse_atoms, variables
from kpg.shell.live import watch
from kpg.shell.result_format import show_rows, show_table
from kpg.shell.statements import defined_relations, group_rules, is_name, is_rule_or_declaration

COMMANDS: dict[str, str] = {
    "\\d": "[NAME]  relations and rules; of one, its columns",
    "\\explain": "NAME  how it is computed, and which indexes it shares",
    "\\watch": "GOAL [N]  follow it until Ctrl-C, or for N steps",
    "\\timing": "how long each statement takes, on or off",
    "\\limit": "N  rows of an answer at most",
    "\\forget": "NAME  forget a rule",
    "\\time": "the last complete time",
    "\\i": "FILE  do what a file says",
    "\\h": "this help",
    "\\q": "end",
}
SAYINGS = """\
  .decl edge(x: number, y: number)       a relation; types are number, unsigned, float, symbol
  +edge(1, 2), edge(2, 3).               rows that come, at one time
  -edge(1, 2).                           rows that go
  path(x, y) :- edge(x, y).              a rule; ends with a full stop, over as many lines as you like
  path(1, x)?                            ask once; path alone asks for all of it
  path(x, y), y > 3?                     ask for more than one thing
  watch path(1, x)                       follow it, live
  [:find ?x :where [_ :person/name ?x]]  ask in EDN
"""


class Interpreter:
    """A shell's state: its connection, its settings, what it knows the names of."""

    def __init__(self, db: Connection, console: Console, errors: Console, interactive: bool) -> None:
        self.db = db
        self.console = console
        self.errors = errors
        self.interactive = interactive
        self.timing = False
        self.limit: int | None = 1_000 if interactive else None
        self.ended = False
        self._known: dict[str, RelationSpec] | None = None
        self._texts: dict[str, str] = {}  # rules that were typed here, by name
        self._numbers = itertools.count()

    # Scripts and errors

    def script(self, text: str) -> int:
        """Do every statement in turn, up to the first error; the exit status."""
        for line, statement in group_rules(text):
            if self.ended:
                break
            if not self.attempt(statement, f"line {line}: "):
                return 1
        return 0

    def attempt(self, statement: str, place: str = "") -> bool:
        """Do a statement, or say what is wrong with it."""
        began = time.perf_counter()
        try:
            self.do(statement)
        except KpgError as error:
            head = f"[bold red]{escape(place)}{type(error).__name__}:[/]"
            self.errors.print(f"{head} {escape(str(error))}", highlight=False, soft_wrap=True)
            return False
        finally:
            self.console.file.flush()
        if self.timing:
            self.console.print(f"Time: {(time.perf_counter() - began) * 1e3:.1f} ms", style="dim", highlight=False)
        return True

    # Statements

    def do(self, statement: str) -> None:
        """Do one statement."""
        if statement.startswith("\\"):
            self.command(statement)
        elif re.match(r"watch\b", statement):
            self.watch(statement.removeprefix("watch").strip())
        elif statement.startswith("["):
            show_table(self.console, self.db.query(statement, language="edn", limit=self.limit))
        elif statement.startswith(("+", "-")):
            self.change(stripped(statement[1:]), 1 if statement.startswith("+") else -1)
        elif statement.endswith("?") or is_name(statement.rstrip(" ;")):
            self.ask(stripped(statement))
        elif is_rule_or_declaration(statement):
            self.register(statement)
        else:
            self.fact_or_goal(statement)

    def change(self, text: str, diff: int) -> None:
        """Rows that come or go, at one time."""
        goals = parse_atoms(text)
        for goal in goals:
            if not goal.is_fact:
                raise ParseError(f"{goal.name} has a variable: rows are constants", hint='For example +edge(1, "a").')
        when = self.db.transact([(goal.name, goal.arguments, diff) for goal in goals])
        self.say(f"{len(goals)} change{'' if len(goals) == 1 else 's'} at time {when}")

    def fact_or_goal(self, statement: str) -> None:
        """`edge(1, 2).` puts a row into a relation; with variables, or of a rule, it is a question."""
        text = stripped(statement)
        atoms = [] if is_body(text) else parse_atoms(text)
        facts = bool(atoms) and atoms[0].is_fact and self.known(atoms[0].name).role != "rule"
        self.change(text, 1) if facts else self.ask(text)

    def register(self, text: str) -> None:
        """Rules and declarations; more rules of what was defined here before are added to it."""
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
        self._known = None
        self.say(f"registered {', '.join(names)}" if names else "declared")

    def ask(self, text: str) -> None:
        """Ask once."""
        if is_body(text):
            self.show(self.db.query(rule_for("answer", text), language="datalog", limit=self.limit))
            return
        (goal,) = parse_atoms(text)
        self.show(self.db.query(goal.name, arguments=self.fixed(goal), limit=self.limit))

    def show(self, table: object) -> None:
        """Print an answer; say so if it was cut."""
        import pyarrow as pa

        assert isinstance(table, pa.Table)
        cut = (table.schema.metadata or {}).get(b"cut") == b"true"
        show_table(self.console, table, ", and more: \\limit N" if cut else "")

    def make_rule(self, body: str) -> str:
        """A rule of its own for a question of several parts."""
        name = f"answer_{self.db.welcome.session}_{next(self._numbers)}"
        self.db.register(rule_for(name, body))
        return name

    def fixed(self, goal: Goal) -> dict[str, object] | None:
        """The columns that the constants of a goal fix."""
        if not goal.arguments:
            return None
        columns = [column.name for column in self.known(goal.name).columns]
        if len(columns) != len(goal.arguments):
            raise ParseError(
                f"{goal.name} has {len(columns)} columns, not {len(goal.arguments)}",
                hint=f"They are {', '.join(columns)}.",
            )
        found = zip(columns, goal.arguments, strict=True)
        return {column: value for column, value in found if not isinstance(value, Free)} or None

    def watch(self, text: str) -> None:
        """Follow an answer."""
        found = re.fullmatch(r"(.*?)(?:\s+(\d+))?", stripped(text), re.DOTALL)
        assert found is not None
        goal, most = found[1], int(found[2]) if found[2] else None
        made = self.make_rule(goal) if is_body(goal) else None
        try:
            with self.follow(made, goal) as follows:
                watch(self.console, follows, goal, most)
        finally:
            if made is not None:
                self.db.unregister(made)

    def follow(self, rule: str | None, goal: str) -> Subscription:
        """The interest in a rule, or in a goal."""
        if rule is not None:
            return self.db.interest(rule)
        (atom,) = parse_atoms(goal)
        return self.db.interest(atom.name, arguments=self.fixed(atom))

    # Commands

    def command(self, line: str) -> None:
        """A line with a backslash in front."""
        word, _, rest = line.partition(" ")
        actions: dict[str, Callable[[str], None]] = {
            "\\d": self.describe, "\\explain": self.explain, "\\watch": self.watch, "\\timing": self.switch_timing,
            "\\limit": self.set_limit, "\\forget": self.forget, "\\time": self.show_time, "\\i": self.include,
            "\\h": self.help, "\\?": self.help, "\\q": self.quit,
        }  # fmt: skip
        if word not in actions:
            raise UndefinedName(f"there is no command {word}", hint=f"There are {' '.join(COMMANDS)}.")
        actions[word](rest.strip())

    def describe(self, name: str) -> None:
        """`\\d`: what there is."""
        if name:
            found = self.known(name)
            show_rows(self.console, ("column", "type"), [(c.name, c.type) for c in found.columns], len(found.columns))
            return
        self._known = None
        rows = [(each.name, each.role, ", ".join(c.name for c in each.columns)) for each in self.catalog().values()]
        show_rows(self.console, ("name", "is a", "columns"), rows, len(rows))

    def explain(self, name: str) -> None:
        """`\\explain`: how a rule is computed."""
        self.console.print(self.db.explain(name), markup=False, highlight=False, soft_wrap=True)

    def switch_timing(self, word: str) -> None:
        """`\\timing`: on, off, or the other."""
        self.timing = {"on": True, "off": False}.get(word, not self.timing)
        self.say(f"timing is {'on' if self.timing else 'off'}")

    def set_limit(self, word: str) -> None:
        """`\\limit`: rows of an answer."""
        if not word.isdigit():
            raise ParseError(f"{word!r} is not a number of rows", hint="For example \\limit 100.")
        self.limit = int(word)

    def forget(self, name: str) -> None:
        """`\\forget`: a rule."""
        self.db.unregister(name)
        gone = self._texts.get(name)
        self._texts = {each: text for each, text in self._texts.items() if text != gone}
        self._known = None

    def show_time(self, _: str) -> None:
        """`\\time`: the last complete one."""
        self.console.print(str(self.db.ping()), highlight=False)

    def include(self, path: str) -> None:
        """`\\i`: a file."""
        try:
            text = Path(path).read_text()
        except (OSError, UnicodeDecodeError) as error:
            raise ParseError(f"cannot read {path!r}", detail=str(error)) from None
        for _, statement in group_rules(text):
            self.do(statement)

    def help(self, _: str) -> None:
        """`\\h`"""
        lines = [f"  {name:<9} {says}" for name, says in COMMANDS.items()]
        self.console.print(SAYINGS + "\n" + "\n".join(lines), markup=False, highlight=False)

    def quit(self, _: str) -> None:
        """`\\q`"""
        self.ended = True

    # Names

    def catalog(self) -> dict[str, RelationSpec]:
        """What there is, by name."""
        if self._known is None:
            self._known = {each.name: each for each in self.db.catalog()}
        return self._known

    def known(self, name: str) -> RelationSpec:
        """A relation or rule; somebody else may have made it just now."""
        if name not in self.catalog():
            self._known = None
        if name not in self.catalog():
            raise UndefinedName(f"there is nothing called {name!r}", hint=f"There are {', '.join(self.catalog())}.")
        return self.catalog()[name]

    def say(self, words: str) -> None:
        """A remark for people; scripts get rows only."""
        if self.interactive:
            self.console.print(words, style="green", highlight=False)


def rule_for(name: str, body: str) -> str:
    """The rule that a question of several parts is; its columns are the variables, in order."""
    names = variables(body)
    if not names:
        raise ParseError("the question has no variable", hint="For example path(1, x), x > 3?")
    return f"{name}({', '.join(names)}) :- {body}."


def stripped(text: str) -> str:
    """A statement without its end."""
    return text.strip().rstrip(".?;").strip()
