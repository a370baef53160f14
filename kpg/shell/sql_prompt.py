"""The interactive prompt of `kpg sql`: history, completion of names and keywords, statements over several lines."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from kpg.errors import KpgError
from kpg.shell.prompt import completions, open_history, typed_texts
from kpg.shell.sql_interpreter import COMMANDS, SqlInterpreter
from kpg.sql.parse.statement_texts import is_complete, split_statements
from kpg.version import __version__

WORD_BEFORE_CURSOR: Final = re.compile(r"[A-Za-z_][\w.]*")
KEYWORDS: Final = (
    "AND AS ASC BEGIN BETWEEN BY CASE COMMIT COPY CREATE DEFAULT DELETE DESC DISTINCT DROP ELSE END EXCEPT EXISTS "
    "EXPLAIN FROM FULL GROUP HAVING IN INDEX INNER INSERT INTERSECT INTO IS JOIN KEY LATERAL LEFT LIKE LIMIT "
    "MATERIALIZED NOT NULL OFFSET ON OR ORDER OUTER PRIMARY RECURSIVE RETURNING RIGHT ROLLBACK SELECT SET SHOW "
    "SUBSCRIBE TABLE THEN TRUNCATE UNION UPDATE USING VALUES VIEW WHEN WHERE WITH"
).split()


class SqlCompleter(Completer):
    """Completes commands after a backslash, else names of relations and columns, and keywords."""

    def __init__(self, interpreter: SqlInterpreter) -> None:
        self._catalog = interpreter.session.catalog

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """Return the completions at the cursor."""
        line = document.current_line_before_cursor.lstrip()
        if line.startswith("\\") and " " not in line:
            return completions(line, COMMANDS.items())
        word = document.get_word_before_cursor(pattern=WORD_BEFORE_CURSOR)
        if not word:
            return []
        keywords = [(text if word[0].isupper() else text.lower(), "") for text in KEYWORDS]
        return completions(word, [*self._names(), *keywords])

    def _names(self) -> list[tuple[str, str]]:
        names: dict[str, str] = {}
        for name in self._catalog.names():
            entry = self._catalog.entry(name)
            if entry is not None:
                names[name] = "view" if hasattr(entry, "installed") else "table"
                for column in entry.columns:
                    names.setdefault(column.name, str(column.type))
        return list(names.items())


def converse(
    interpreter: SqlInterpreter, history: Path | None = None, session: PromptSession[str] | None = None
) -> int:
    """Read and run statements until `\\q` or Ctrl-D; Ctrl-C discards the typed lines. Return the exit status."""
    prompts: PromptSession[str] = session or PromptSession(
        history=open_history(history), completer=SqlCompleter(interpreter)
    )
    interpreter.out.write(f"kpg {__version__}; statements end with a semicolon, \\? for help, \\q to end\n")
    for typed in typed_texts(prompts, ("kpg=> ", "kpg-> "), is_complete):
        run_typed(interpreter, typed)
        if interpreter.ended:
            break
    return 0


def run_typed(interpreter: SqlInterpreter, text: str) -> None:
    """Run typed statements up to the first error."""
    try:
        for part in split_statements(text):
            if interpreter.ended or not interpreter.attempt(part):
                return
    except KpgError as error:
        interpreter.print_error(error)
