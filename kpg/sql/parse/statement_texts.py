"""Split a script into statements without parsing them, so that each can run before the next one is read.

Statements end with a semicolon outside quotes and comments; a line that begins with a backslash between statements is a
command of the prompt.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from kpg.sql.parse.sql_statements import AnyStatement
from kpg.sql.parse.statement_parser import parse_statements

# What a semicolon may be hidden in: a string (with or without escapes), a quoted name, a comment, a dollar quote.
_PIECES: Final = re.compile(
    r"""(?P<text>[eE]'(?:[^'\\]|\\.|'')*'|'(?:[^']|'')*'|"(?:[^"]|"")*")
      | (?P<comment>--[^\n]*|/\*)
      | (?P<dollar>\$(?:[A-Za-z_]\w*)?\$)
      | (?P<end>;)
      | (?P<open>['"])""",
    re.VERBOSE | re.DOTALL,
)


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
    at, begin = 0, 0
    while at < len(script):
        if not script[begin:at].strip() and script[at] == "\\":
            end = script.find("\n", at)
            end = len(script) if end < 0 else end
            yield StatementText(script[at:end].strip(), at, script)
            at = begin = end
            continue
        if script[at].isspace() and not script[begin:at].strip():
            at += 1
            begin = at
            continue
        piece = _PIECES.search(script, at)
        if piece is None:
            break
        if piece.lastgroup == "end":
            yield StatementText(script[begin : piece.end()], begin, script)
            at = begin = piece.end()
        else:
            at = after_piece(script, piece)
    rest = script[begin:]
    if without_comments(rest).strip():
        yield StatementText(rest, begin, script, complete=False)


def after_piece(script: str, piece: re.Match[str]) -> int:
    """Return where a string or comment ends; the end of the script if it has none."""
    if piece.lastgroup == "dollar":
        end = script.find(piece.group(), piece.end())
        return len(script) if end < 0 else end + len(piece.group())
    if piece.lastgroup == "open":
        return len(script)
    if piece.group() == "/*":
        return after_comment(script, piece.end())
    return piece.end()


def after_comment(script: str, at: int) -> int:
    """Return where a comment ends, in which others may be nested."""
    depth = 1
    for mark in re.finditer(r"/\*|\*/", script[at:]):
        depth += 1 if mark.group() == "/*" else -1
        if depth == 0:
            return at + mark.end()
    return len(script)


def without_comments(text: str) -> str:
    """Return a text without line comments and block comments that stand alone."""
    return re.sub(r"--[^\n]*|/\*.*?\*/", "", text, flags=re.DOTALL)


def is_complete(text: str) -> bool:
    """Return whether typed lines are a command, or end with a semicolon that is not quoted."""
    parts = list(split_statements(text))
    return not parts or parts[-1].complete
