"""Split a script into statements without parsing them, so that each can run before the next one is read.

Statements end with a semicolon outside quotes and comments. Between statements, a backslash begins a command of the
prompt, which ends with its line. The cost is linear in the script.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from kpg.sql.parse.quoted_pieces import QUOTED, after_piece
from kpg.sql.parse.sql_statements import AnyStatement
from kpg.sql.parse.statement_parser import parse_statements

_BLANKS: Final = re.compile(r"\s*")


@dataclass(frozen=True, slots=True)
class StatementText:
    """The text of one statement or command, and its position in the script."""

    text: str
    start: int
    script: str
    complete: bool = True  # whether a semicolon ends it

    def parse(self, name: str) -> tuple[AnyStatement, ...]:
        """Return the statement; errors show its position in the script."""
        lines = self.script[: self.start].count("\n")
        column = self.start - (self.script.rfind("\n", 0, self.start) + 1)
        return parse_statements("\n" * lines + " " * column + self.text, name)


def split_statements(script: str, name: str = "query") -> Iterator[StatementText]:
    """Yield the statements and commands of a script."""
    at = begin = after_blanks(script, 0)
    while begin < len(script):
        if at == begin and script[at] == "\\":
            end = script.find("\n", at)
            end = len(script) if end < 0 else end
            yield StatementText(script[at:end].strip(), at, script)
            at = begin = after_blanks(script, end)
            continue
        piece = QUOTED.search(script, at)
        if piece is None:
            break
        if piece.lastgroup == "end":
            yield StatementText(script[begin : piece.end()], begin, script)
            at = begin = after_blanks(script, piece.end())
        else:
            at = after_piece(script, piece)
    if begin < len(script):
        yield StatementText(script[begin:], begin, script, complete=False)


def after_blanks(script: str, at: int) -> int:
    """Return where blanks and whole comments from a position on end: the next statement or command begins there."""
    while True:
        blanks = _BLANKS.match(script, at)
        assert blanks is not None
        at = blanks.end()
        piece = QUOTED.match(script, at)
        if piece is None or piece.lastgroup != "comment":
            return at
        end = after_piece(script, piece)
        if piece.group() == "/*" and not script.endswith("*/", at + 2, end):
            return at  # a comment without an end: more lines may follow
        at = end


def is_complete(text: str) -> bool:
    """Return whether typed lines are a command, or end with a semicolon that is not quoted."""
    parts = list(split_statements(text))
    return not parts or parts[-1].complete
