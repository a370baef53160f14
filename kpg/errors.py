"""Every error a user can meet.

    KpgError
      ProgramError        the query is wrong
        ParseError          text that is not a program, query or plan
        UndefinedName       a column, relation or answer that does not exist
        TypeMismatch        types that do not fit an operation or each other
        BadPlan             operators combined in a way that has no meaning (a loop whose time does not grow, ...)
        UnsafeRule          a rule with a variable that nothing binds
        NotStratified       a rule that negates or aggregates what depends on itself
        NameTaken           a rule or relation by the name of another
      InputError          the data or the protocol is wrong
        SchemaMismatch      rows of another arity or type than the relation's
        TimeTooEarly        an insert, advance or read before what is still open
        TimeNotReached      a read as of a time that is not complete yet
        Closed              use of an input, handle or db after its end
        InUse               dropping what others still read
        InsertOnly          removing rows from what an insert-only program reads
      DataError           an answer failed: rows on which an expression or reducer fails are in its input
      ResourceError       a limit was met; retry may help
        OverBudget          the memory limit
        OverLimit           what one user of a service may take
        TooManyRounds       a recursion ran past its limit of rounds
        Overflow            a number left the range of its type
      StorageError        a file is not what it should be
        Corrupt             damaged, cut off, or of another kind
        Unavailable         cannot be opened, read or written
      ClusterError        the workers of a db, or the way to them
        WorkerLost          a worker is gone: killed, crashed, or out of reach
        Unreachable         a connection cannot be made, or ended
        NotAuthorised       the other end does not know the secret of the db
        ProtocolError       what came over a connection has no meaning
      WrongAnswer         an experiment's answer differs from an independent computation
      WrongThread         a db was used from a thread that does not own it

Each message says what failed, lower case, no full stop; `detail` says what was found, `hint` what to do instead.
"""

from __future__ import annotations


class KpgError(Exception):
    """The root of all errors of kpg: what failed, and optionally detail and hint."""

    def __init__(self, what: str, *, detail: str | None = None, hint: str | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.detail = detail
        self.hint = hint

    def __str__(self) -> str:
        lines = [self.what]
        if self.detail:
            lines.append(f"detail: {self.detail}")
        if self.hint:
            lines.append(f"hint: {self.hint}")
        return "\n".join(lines)


class ProgramError(KpgError):
    """The query is wrong; where its text is known, `line` and `column` say where, from 1."""

    line: int | None = None
    column: int | None = None


class ParseError(ProgramError):
    """Text that is not a program, query or plan."""


class UndefinedName(ProgramError):
    """A column, relation or answer that does not exist."""


class TypeMismatch(ProgramError):
    """Types that do not fit an operation or each other."""


class BadPlan(ProgramError):
    """Operators combined in a way that has no meaning."""


class UnsafeRule(ProgramError):
    """A rule with a variable that nothing binds."""


class NotStratified(ProgramError):
    """A rule that negates or aggregates what depends on itself."""


class NameTaken(ProgramError):
    """A rule or relation by the name of another."""


class InputError(KpgError):
    """The data or the protocol is wrong."""


class SchemaMismatch(InputError):
    """Rows of another arity or type than the relation's."""


class TimeTooEarly(InputError):
    """An insert, advance or read before what is still open."""


class TimeNotReached(InputError):
    """A read as of a time that is not complete yet."""


class Closed(InputError):
    """Use of an input, handle or db after its end."""


class InUse(InputError):
    """Dropping what others still read."""


class InsertOnly(InputError):
    """Removing rows from what an insert-only program reads."""


class DataError(KpgError):
    """An answer failed: its input holds rows on which an expression or reducer fails."""


class ResourceError(KpgError):
    """A limit was met; retry may help."""


class OverBudget(ResourceError):
    """The memory limit was met."""


class OverLimit(ResourceError):
    """What one user of a service may take was met."""


class TooManyRounds(ResourceError):
    """A recursion ran past its limit of rounds."""


class Overflow(ResourceError):
    """A number left the range of its type."""


class StorageError(KpgError):
    """A file is not what it should be."""


class Corrupt(StorageError):
    """A file is damaged, cut off, or of another kind."""


class Unavailable(StorageError):
    """A file cannot be opened, read or written."""


class ClusterError(KpgError):
    """The workers of a db, or the way to them."""


class WorkerLost(ClusterError):
    """A worker is gone: killed, crashed, or out of reach."""


class Unreachable(ClusterError):
    """A connection cannot be made, or ended."""


class NotAuthorised(ClusterError):
    """The other end does not know the secret of the db."""


class ProtocolError(ClusterError):
    """What came over a connection has no meaning; `path` says where in a message of JSON."""

    path: str | None = None


class WrongThread(KpgError):
    """A db was used from a thread that does not own it."""


class WrongAnswer(KpgError):
    """An experiment's answer differs from an independent computation: a fault of kpg, or of the experiment."""
