"""Errors as parts of messages and back, for clients, ranks and Spark tasks alike.

    error_of(failure_of(error))      has the class, what, detail, hint and position of `error`

A class crosses by its name in `kpg.errors.WIRE_NAMES`. A name of another version becomes `KpgError`.
"""

from __future__ import annotations

from kpg.errors import KpgError, ProgramError, ProtocolError, error_class, wire_name
from kpg.protocol.parts import FailureSpec, PositionSpec


def failure_of(error: BaseException) -> FailureSpec:
    """Return an error as a message part. An error that is not kpg's reveals its class and nothing of the machine."""
    if not isinstance(error, KpgError):
        return FailureSpec("KpgError", f"the server failed ({type(error).__name__})", hint="Its log says more.")
    return FailureSpec(wire_name(error), error.what, error.detail, error.hint, position_of(error), error.sqlstate)


def position_of(error: KpgError) -> PositionSpec | None:
    """Return the position of an error, if it has one."""
    if isinstance(error, ProgramError) and error.line is not None:
        return PositionSpec(line=error.line, column=error.column)
    if isinstance(error, ProtocolError) and error.path is not None:
        return PositionSpec(path=error.path)
    return None


def error_of(failure: FailureSpec) -> KpgError:
    """Return the error that a message part describes."""
    error = error_class(failure.error)(failure.what, detail=failure.detail, hint=failure.hint)
    error.sqlstate = failure.sqlstate
    if failure.position is not None:
        if isinstance(error, ProgramError):
            error.line, error.column = failure.position.line, failure.position.column
        if isinstance(error, ProtocolError):
            error.path = failure.position.path
    return error
