"""Parse SQL text: whole scripts, one query, or one expression."""

from __future__ import annotations

from kpg.sql.parse.sql_statements import AnyStatement, SyntaxTree


def parse_statements(text: str, name: str = "query") -> tuple[AnyStatement, ...]:
    """Return the statements of a text, which are separated by semicolons. Errors call the text `name`."""
    raise NotImplementedError


def parse_query(text: str, name: str = "query") -> SyntaxTree:
    """Return the one query that a text is, such as the text of a view."""
    raise NotImplementedError


def parse_expression(text: str, name: str = "expression") -> SyntaxTree:
    """Return the one expression that a text is, such as a default or the condition of a check."""
    raise NotImplementedError
