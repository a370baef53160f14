"""Random damage to valid statements: words dropped, doubled, swapped, or replaced by others."""

from __future__ import annotations

import re

from hypothesis import strategies as st

WORD = re.compile(r"'(?:[^']|'')*'|\w+(?:\.\w+)*|::|<>|<=|>=|\|\||\S")
REPLACEMENTS = [
    "nothing", "j0.nothing", "j0.a", "j0.t", "j1.n", "a", "t", "x", "1", "'a'", "1.5", "true", "NULL",
    "date '2024-01-01'", "+", "-", "*", "/", "%", "=", "<", "<>", "||", "AND", "OR", "NOT", "IS", "LIKE", "IN",
    "BETWEEN", "DISTINCT", "ALL", "(", ")", ",", "sum", "count", "max", "length", "abs", "upper", "coalesce",
    "no_such_function", "int", "text", "date", "numeric", "boolean", "SELECT", "FROM", "WHERE", "GROUP", "BY",
    "HAVING", "ORDER", "LIMIT", "JOIN", "ON", "USING", "AS", "CASE", "WHEN", "THEN", "END", "r", "s", "u", "e",
    "interval '1 day'",
]  # fmt: skip


def words(text: str) -> list[str]:
    """Split a statement into words; a literal is one word, and a qualified name too."""
    return WORD.findall(text)


@st.composite
def damaged(draw: st.DrawFn, statements: st.SearchStrategy[str]) -> str:
    """Generate a valid statement with one or two changes; it may still be valid."""
    text = words(draw(statements))
    for _ in range(draw(st.integers(1, 2))):
        at = draw(st.integers(0, len(text) - 1))
        change = draw(st.sampled_from(["drop", "replace", "replace", "replace", "double", "swap", "other"]))
        if change == "drop" and len(text) > 1:
            del text[at]
        elif change == "double":
            text.insert(at, text[at])
        elif change == "swap" and at + 1 < len(text):
            text[at], text[at + 1] = text[at + 1], text[at]
        elif change == "other":
            text[at] = draw(st.sampled_from(text))
        else:
            text[at] = draw(st.sampled_from(REPLACEMENTS))
    return " ".join(text)
