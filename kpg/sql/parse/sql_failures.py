"""Errors of SQL: each has a position with a caret and an SQLSTATE of PostgreSQL's table."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

from kpg.errors import NotSupported, ProgramError
from kpg.query.source_text import NOWHERE, Position, failure
from kpg.sql.parse.spans import Span

SqlFailure = TypeVar("SqlFailure", bound=ProgramError)


def position_of(span: Span | None) -> Position:
    """Return where a span starts, with its length in its first line."""
    if span is None:
        return NOWHERE
    text = span.source.text
    line = text.count("\n", 0, span.start) + 1
    line_start = text.rfind("\n", 0, span.start) + 1
    line_end = text.find("\n", span.start)
    end = min(span.end, len(text) if line_end < 0 else line_end)
    return Position(span.source, line, span.start - line_start + 1, max(1, end - span.start))


def sql_failure(
    kind: type[SqlFailure],
    what: str,
    span: Span | None,
    sqlstate: str,
    *,
    detail: str | None = None,
    hint: str | None = None,
) -> SqlFailure:
    """Return an error with a position and an SQLSTATE, for the caller to raise."""
    error = failure(kind, what, position_of(span), detail=detail, hint=hint)
    error.sqlstate = sqlstate
    return error


@contextmanager
def bounded_depth(span: Span) -> Iterator[None]:
    """Turn the end of Python's stack into an error of the statement."""
    try:
        yield
    except RecursionError:
        what = "the statement is nested too deeply"
        raise sql_failure(ProgramError, what, span, "54001", hint="Split it into several views.") from None


def not_supported(what: str, span: Span | None, *, hint: str | None = None) -> NotSupported:
    """Return the error of something that kpg does not support, by its name."""
    return sql_failure(NotSupported, f"{what} is not supported", span, "0A000", hint=hint)
