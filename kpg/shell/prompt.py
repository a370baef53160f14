"""The interactive shell: lines are edited with history, completion and colours; several make a statement."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.history import FileHistory, History, InMemoryHistory

from kpg.errors import KpgError
from kpg.query.datalog.lexer import RELATION_NAME
from kpg.shell.interpreter import COMMANDS, Interpreter
from kpg.shell.statements import group_rules, is_complete

WORD_BEFORE_CURSOR = re.compile(rf"\.?{RELATION_NAME.pattern}")  # a name, or a directive like .decl
WORDS = ".decl watch count sum min max mean number symbol float unsigned true false".split()


class Names(Completer):
    """Commands behind a backslash, else names of relations and rules, and words of the language."""

    def __init__(self, shell: Interpreter) -> None:
        self._shell = shell

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """What may come where the cursor is."""
        line = document.current_line_before_cursor.lstrip()
        if line.startswith("\\") and " " not in line:
            return offered(line, COMMANDS.items())
        word = document.get_word_before_cursor(pattern=WORD_BEFORE_CURSOR)
        if not word:
            return []
        return offered(word, self._names())

    def _names(self) -> list[tuple[str, str]]:
        try:
            known = self._shell.catalog()
        except KpgError:
            known = {}
        return [(each.name, f"{each.role}({', '.join(c.name for c in each.columns)})") for each in known.values()] + [
            (word, "") for word in WORDS
        ]


def offered(word: str, names: Iterable[tuple[str, str]]) -> list[Completion]:
    """The names that go on from a word, with what they are."""
    return [Completion(name, -len(word), display_meta=says) for name, says in names if name.startswith(word)]


def converse(shell: Interpreter, history: Path | None = None, session: PromptSession[str] | None = None) -> int:
    """Read and do statements until `\\q` or Ctrl-D; Ctrl-C drops what was typed so far. The exit status."""
    asks: PromptSession[str] = session or PromptSession(history=remembered(history), completer=Names(shell))
    shell.say(f"connected to {shell.db.url} ({shell.db.welcome.server}); \\h for help, \\q to end")
    typed = ""
    while not shell.ended:
        try:
            line = asks.prompt("kpg> " if not typed else "...> ")
        except KeyboardInterrupt:
            typed = ""
            continue
        except EOFError:
            break
        typed = f"{typed}\n{line}" if typed else line
        if is_complete(typed):
            run(shell, typed)
            typed = ""
    return 0


def run(shell: Interpreter, text: str) -> None:
    """Do what was typed, up to the first error."""
    for _, statement in group_rules(text):
        if shell.ended or not shell.attempt(statement):
            return


def remembered(path: Path | None) -> History:
    """What was typed before; kept in memory if it cannot be kept on disk."""
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    place = path or Path(state) / "kpg" / "history"
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.touch(mode=0o600)
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(place))
