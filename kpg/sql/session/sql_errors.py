"""Errors of statements, with their SQLSTATE."""

from __future__ import annotations

from typing import Final, TypeVar

from kpg.errors import KpgError
from kpg.sql.sql_states import with_sqlstate

Failure = TypeVar("Failure", bound=KpgError)

UNIQUE_VIOLATION: Final = "23505"
NOT_NULL_VIOLATION: Final = "23502"
CHECK_VIOLATION: Final = "23514"
READ_ONLY_TRANSACTION: Final = "25006"
CARDINALITY_VIOLATION: Final = "21000"
RESERVED_NAME: Final = "42939"
DUPLICATE_NAME: Final = "42P07"
UNDEFINED_TABLE: Final = "42P01"
UNDEFINED_COLUMN: Final = "42703"
WRONG_OBJECT_TYPE: Final = "42809"
INVALID_TABLE_DEFINITION: Final = "42P16"
INVALID_OBJECT_DEFINITION: Final = "42P17"
OBJECT_IN_USE: Final = "55006"
DEPENDENT_OBJECTS: Final = "2BP01"
NOT_SUPPORTED: Final = "0A000"
SERIALIZATION_FAILURE: Final = "40001"
NO_ACTIVE_TRANSACTION: Final = "25P01"
ACTIVE_TRANSACTION: Final = "25001"
FAILED_TRANSACTION: Final = "25P02"
NOT_READY: Final = "55000"
INVALID_PARAMETER: Final = "22023"
OUT_OF_RANGE: Final = "22003"
SEQUENCE_LIMIT: Final = "2200H"
INVALID_TEXT: Final = "22P02"
BAD_COPY_FORMAT: Final = "22P04"
GENERATED_ALWAYS: Final = "428C9"


def sql_error(
    kind: type[Failure], sqlstate: str, what: str, *, detail: str | None = None, hint: str | None = None
) -> Failure:
    """Return an error with an SQLSTATE, for the caller to raise."""
    return with_sqlstate(sqlstate, kind(what, detail=detail, hint=hint))
