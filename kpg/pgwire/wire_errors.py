"""Errors of kpg as PostgreSQL's error fields: severity, SQLSTATE, message, detail, hint and position.

The position is the character of the statement's text, counted from 1. An error without an SQLSTATE gets that of its
class. An exception that is no KpgError is a bug: the client learns its class only, and the server logs the rest.
"""

from __future__ import annotations

import re
from typing import Final

from kpg import errors
from kpg.pgwire.wire_format import notice_fields

STATES: Final[tuple[tuple[type[errors.KpgError], str], ...]] = (  # the first class that fits counts
    (errors.ParseError, "42601"),
    (errors.UndefinedName, "42704"),
    (errors.TypeMismatch, "42804"),
    (errors.NotSupported, "0A000"),
    (errors.NotAuthorised, "42501"),
    (errors.ProtocolError, "08P01"),
    (errors.DataError, "22000"),
    (errors.ConstraintViolation, "23000"),
    (errors.TransactionConflict, "40001"),
    (errors.InUse, "55006"),
    (errors.Closed, "57P01"),
    (errors.ProgramError, "42000"),
    (errors.InputError, "22000"),
    (errors.ResourceError, "54000"),
    (errors.StorageError, "58000"),
)
INTERNAL: Final = "XX000"
POSITION: Final = re.compile(r"query:(\d+):(\d+): ")  # before a message about the text of the client


def sqlstate_of(error: BaseException) -> str:
    """Return the SQLSTATE of an error."""
    if isinstance(error, errors.KpgError) and error.sqlstate is not None:
        return error.sqlstate
    return next((state for kind, state in STATES if isinstance(error, kind)), INTERNAL)


def error_response(error: BaseException, text: str = "", severity: str = "ERROR") -> bytes:
    """Return ErrorResponse for an error that a statement of this text led to."""
    fields = {"S": severity, "V": severity, "C": sqlstate_of(error)}
    if not isinstance(error, errors.KpgError):
        return notice_fields(b"E", fields | {"M": f"the server failed ({type(error).__name__})"})
    what, detail, at = error.what, error.detail, None
    located = POSITION.match(what)
    if located is not None:
        line, column = int(located[1]), int(located[2])
        what, detail, at = what[located.end() :], without_excerpt(detail, line), offset(text, line, column)
    fields["M"] = what
    if detail:
        fields["D"] = detail
    if error.hint:
        fields["H"] = error.hint
    if at is not None and text:
        fields["P"] = str(at)
    return notice_fields(b"E", fields)


def offset(text: str, line: int, column: int) -> int:
    """Return the character of a text at a line and column, counted from 1."""
    return sum(len(earlier) + 1 for earlier in text.split("\n")[: line - 1]) + column


def without_excerpt(detail: str | None, line: int) -> str | None:
    """Return the detail without the excerpt of the text, which clients show themselves."""
    lines = (detail or "").split("\n")
    if lines[0].startswith(f"{line} | ") and len(lines) > 1 and not lines[1].strip(" ^"):
        lines = lines[2:]
    return "\n".join(lines) or None


def warning(sqlstate: str, what: str) -> bytes:
    """Return NoticeResponse with a warning."""
    return notice_fields(b"N", {"S": "WARNING", "V": "WARNING", "C": sqlstate, "M": what})
