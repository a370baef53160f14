"""The interactive prompt: edits lines with history and completion, and joins them into statements."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
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
KEYWORDS = ".decl watch count sum min max mean number symbol float unsigned true false".split()


class NameCompleter(Completer):
    """Completes commands after a backslash, else names of relations and rules, and keywords."""

    def __init__(self, shell: Interpreter) -> None:
        self._shell = shell

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """Return the completions at the cursor."""
        line = document.current_line_before_cursor.lstrip()
        if line.startswith("\\") and " " not in line:
            return completions(line, COMMANDS.items())
        word = document.get_word_before_cursor(pattern=WORD_BEFORE_CURSOR)
        if not word:
            return []
        return completions(word, self._names())

    def _names(self) -> list[tuple[str, str]]:
        try:
            catalog = self._shell.catalog()
        except KpgError:
            catalog = {}
        relations = [
            (relation.name, f"{relation.role}({', '.join(column.name for column in relation.columns)})")
            for relation in catalog.values()
        ]
        return relations + [(word, "") for word in KEYWORDS]


def completions(word: str, names: Iterable[tuple[str, str]]) -> list[Completion]:
    """Return the names that begin with a word, with their descriptions."""
    return [
        Completion(name, -len(word), display_meta=description) for name, description in names if name.startswith(word)
    ]


def converse(shell: Interpreter, history: Path | None = None, session: PromptSession[str] | None = None) -> int:
    """Read and run statements until `\\q` or Ctrl-D; Ctrl-C discards the typed lines. Return the exit status."""
    prompts: PromptSession[str] = session or PromptSession(
        history=open_history(history), completer=NameCompleter(shell)
    )
    shell.note(f"connected to {shell.db.url} ({shell.db.welcome.server}); \\h for help, \\q to end")
    for typed in typed_texts(prompts, ("kpg> ", "...> "), is_complete):
        run(shell, typed)
        if shell.ended:
            break
    return 0


def typed_texts(prompts: PromptSession[str], marks: tuple[str, str], is_whole: Callable[[str], bool]) -> Iterator[str]:
    """Yield each text of one or more lines until Ctrl-D; Ctrl-C discards the typed lines.

    `marks` stand before the first line and before further ones. `is_whole` says whether a text can be run.
    """
    typed = ""
    while True:
        try:
            line = prompts.prompt(marks[bool(typed)])
        except KeyboardInterrupt:
            typed = ""
            continue
        except EOFError:
            return
        typed = f"{typed}\n{line}" if typed else line
        if is_whole(typed):
            yield typed
            typed = ""


def run(shell: Interpreter, text: str) -> None:
    """Run statements up to the first error."""
    for _, statement in group_rules(text):
        if shell.ended or not shell.attempt(statement):
            return


def open_history(path: Path | None) -> History:
    """Return the history of typed lines; in memory if the file cannot be written."""
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    file = path or Path(state) / "kpg" / "history"
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch(mode=0o600)
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(file))
