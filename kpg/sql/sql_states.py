"""SQLSTATE: the code that PostgreSQL gives a mistake, on the errors that kpg raises for it."""

from __future__ import annotations

from typing import Final, TypeVar

from kpg.errors import KpgError

Raised = TypeVar("Raised", bound=KpgError)
QUERY_CANCELED: Final = "57014"


def with_sqlstate(sqlstate: str, error: Raised) -> Raised:
    """Return the error, with its code set."""
    error.sqlstate = sqlstate
    return error
