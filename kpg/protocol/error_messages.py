"""Errors as messages and back: the class by name, what, detail, hint and position."""

from __future__ import annotations

from kpg import errors
from kpg.errors import KpgError, ProgramError, ProtocolError
from kpg.protocol.parts import Failure, Position


def failure_of(error: BaseException) -> Failure:
    """An error as it travels; what is not an error of kpg tells its kind and nothing of the machine."""
    if not isinstance(error, KpgError):
        return Failure("KpgError", f"the server failed ({type(error).__name__})", hint="Its log says more.")
    return Failure(type(error).__name__, error.what, error.detail, error.hint, position_of(error))


def position_of(error: KpgError) -> Position | None:
    """Where an error is, if it says so."""
    if isinstance(error, ProgramError) and error.line is not None:
        return Position(line=error.line, column=error.column)
    if isinstance(error, ProtocolError) and error.path is not None:
        return Position(path=error.path)
    return None


def error_of(failure: Failure) -> KpgError:
    """The error that travelled; of a class that is not known here, the root of all."""
    kind = getattr(errors, failure.error, KpgError)
    known = isinstance(kind, type) and issubclass(kind, KpgError)
    made: KpgError = (kind if known else KpgError)(failure.what, detail=failure.detail, hint=failure.hint)
    if failure.position is not None:
        if isinstance(made, ProgramError):
            made.line, made.column = failure.position.line, failure.position.column
        if isinstance(made, ProtocolError):
            made.path = failure.position.path
    return made
