"""What was typed, cut into statements.

\\command ...          to the end of the line
.decl e(x: number)    to the end of the line, brackets closed
watch path(1, x)      likewise
path                  a name alone
[:find ...]           EDN, to its closing bracket
anything else         to a full stop or question mark outside of brackets, texts and comments
"""

from __future__ import annotations

import re
from collections.abc import Iterator

NAME = re.compile(r":?[A-Za-z_][\w./-]*")
NAME_ALONE = re.compile(rf"{NAME.pattern}\s*[;?]?")
BY_LINE = re.compile(r"\\|\.[A-Za-z]|watch\b")
# Texts, comments, brackets, numbers with a point, and ends of statements.
PIECE = re.compile(
    r"""(?P<text>"(?:\\.|[^"\\\n])*"?)|(?P<comment>//[^\n]*|/\*.*?(?:\*/|\Z)|;;[^\n]*)"""
    r"""|(?P<number>\d+\.\d+)|(?P<open>[(\[{])|(?P<close>[)\]}])|(?P<end>[.?](?=\s|\Z))|(?P<line>\n)""",
    re.DOTALL,
)


def statements(text: str) -> Iterator[tuple[int, str]]:
    """Each statement with the line it begins on, from 1; the last may lack its end."""
    start = 0
    while start < len(text):
        start += len(blank(text[start:]))
        if start >= len(text):
            return
        size = length(text[start:])
        yield text[:start].count("\n") + 1, text[start : start + size].strip()
        start += size


def grouped(text: str) -> Iterator[tuple[int, str]]:
    """Statements, with rules and declarations that follow each other as one: they may name each other."""
    rules: list[str] = []
    first = 0
    for line, statement in statements(text):
        if is_rules(statement):
            first = first if rules else line
            rules.append(statement)
            continue
        if rules:
            yield first, "\n".join(rules)
            rules = []
        yield line, statement
    if rules:
        yield first, "\n".join(rules)


def is_rules(statement: str) -> bool:
    """Whether this is rules or declarations."""
    return bool(re.match(r"\.[A-Za-z]", statement)) or (":-" in statement and statement[0] not in "\\[")


def heads(text: str) -> list[str]:
    """What the rules of a text define."""
    found = (NAME.match(statement) for _, statement in statements(text) if not statement.startswith("."))
    return list(dict.fromkeys(each[0] for each in found if each))


def complete(text: str) -> bool:
    """Whether what was typed so far is whole statements."""
    start = 0
    while True:
        start += len(blank(text[start:]))
        if start >= len(text):
            return True
        rest = text[start:]
        size = end_of(rest)
        if size is None:
            return False
        start += size


def blank(text: str) -> str:
    """The spaces and comments in front."""
    found = re.match(r"(?:\s|//[^\n]*(?:\n|\Z)|/\*.*?\*/|;;[^\n]*(?:\n|\Z))*", text, re.DOTALL)
    return found[0] if found else ""


def length(text: str) -> int:
    """How long the first statement is."""
    size = end_of(text)
    return len(text) if size is None else size


def end_of(text: str) -> int | None:
    """Where the first statement ends, if it does."""
    line = text.split("\n", 1)[0]
    if text.startswith("\\") or NAME_ALONE.fullmatch(line.strip()):
        return len(line)
    by_line, in_brackets = BY_LINE.match(text), text.startswith("[")
    depth = 0
    for found in PIECE.finditer(text):
        kind = found.lastgroup
        if kind == "open":
            depth += 1
        elif kind == "close":
            depth -= 1
            if in_brackets and depth <= 0:
                return found.end()
        elif depth <= 0 and kind == ("line" if by_line else "end") and not in_brackets:
            return found.end()
    return len(text) if by_line and depth <= 0 else None
