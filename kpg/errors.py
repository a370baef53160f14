"""Every error that kpg raises, and the name by which each class travels between processes.

    KpgError
      ProgramError        the query is wrong
        ParseError          text that is not a program, query or plan
        UndefinedName       a column, relation or answer that does not exist
        TypeMismatch        types that do not fit an operation or each other
        BadPlan             operators combined in a way that has no meaning (a loop whose time does not grow, ...)
        UnsafeRule          a rule with a variable that nothing binds
        NotStratified       a rule that negates or aggregates a relation that depends on the rule
        NameTaken           a rule or relation with the name of another
        NotSupported        SQL that PostgreSQL accepts and kpg does not
      InputError          the data or the order of calls is wrong
        SchemaMismatch      rows with another arity or other types than the relation
        TimeTooEarly        an insert, advance or read at a time that is complete or compacted
        TimeNotReached      a read as of a time that is not complete yet
        Closed              use of an input, handle or db after its end
        InUse               dropping something that has readers, or creating something that exists
        InsertOnly          removing rows from a relation that an insert-only program reads
        ConstraintViolation rows that a key, NOT NULL or CHECK of a table refuses
        TransactionConflict a table that a transaction depends on was changed by another
      DataError           an answer failed: an expression or reducer fails on some rows of its input
      ResourceError       a limit was reached; a retry may succeed
        OverBudget          the memory limit
        OverLimit           a limit of one user of a service
        TooManyRounds       the maximum number of rounds of a recursion
        Lagging             the number of epochs, or the memory, by which an answer may lag behind
        Stopped             a query that an administrator stopped
        Overflow            the range of a number's type
      StorageError        a file cannot be used
        Corrupt             damaged, truncated, or of another kind
        Unavailable         cannot be opened, read or written
      ClusterError        the workers of a db, or the connections to them
        WorkerLost          a worker was killed, crashed, or is unreachable
        Unreachable         a connection cannot be made, or ended
        NotAuthorised       the other side of a connection does not know the secret of the db
        ProtocolError       a message that has no meaning
      WrongAnswer         the answer of an experiment differs from an independent computation
      WrongThread         a db was used from a thread that does not own it

Each message says what failed, lower case, no full stop; `detail` says what was found, `hint` what to do instead.
An error that crosses a process boundary travels as the name in `WIRE_NAMES`, so renaming a class breaks no peer.
To add an error: write its class, add it to the list above and to `WIRE_NAMES`, export it from kpg/__init__.py, and add
it to tests/test_errors.py and docs/errors.md.
"""

from __future__ import annotations


class KpgError(Exception):
    """The root of all errors of kpg: what failed, and optionally detail and hint. Errors of SQL have an SQLSTATE."""

    sqlstate: str | None = None  # five characters, by PostgreSQL's table of error codes

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
    """The query is wrong. `line` and `column` give the position in its text, from 1, where that is known."""

    line: int | None = None
    column: int | None = None


class ParseError(ProgramError):
    """Text that is not a program, query or plan."""


class UndefinedName(ProgramError):
    """A column, relation or answer that does not exist; `name` is that of a relation that a text names."""

    name: str | None = None
    existing: tuple[str, ...] = ()  # the names that it was compared with


class TypeMismatch(ProgramError):
    """Types that do not fit an operation or each other."""


class BadPlan(ProgramError):
    """Operators combined in a way that has no meaning."""


class UnsafeRule(ProgramError):
    """A rule with a variable that nothing binds."""


class NotStratified(ProgramError):
    """A rule that negates or aggregates a relation that depends on the rule."""


class NameTaken(ProgramError):
    """A rule or relation with the name of another."""


class NotSupported(ProgramError):
    """SQL that PostgreSQL accepts and kpg does not."""


class InputError(KpgError):
    """The data or the order of calls is wrong."""


class SchemaMismatch(InputError):
    """Rows with another arity or other types than the relation."""


class TimeTooEarly(InputError):
    """An insert, advance or read at a time that is complete or compacted."""


class TimeNotReached(InputError):
    """A read as of a time that is not complete yet."""


class Closed(InputError):
    """Use of an input, handle or db after its end."""


class InUse(InputError):
    """Dropping something that has readers, or creating something that exists."""


class InsertOnly(InputError):
    """Removing rows from a relation that an insert-only program reads."""


class ConstraintViolation(InputError):
    """Rows that a key, NOT NULL or CHECK of a table refuses."""


class TransactionConflict(InputError):
    """A table that a transaction depends on was changed by another; the whole transaction may be tried again."""


class DataError(KpgError):
    """An answer failed: an expression or reducer fails on some rows of its input."""


class ResourceError(KpgError):
    """A limit was reached; a retry may succeed."""


class OverBudget(ResourceError):
    """The process reached its memory limit."""


class OverLimit(ResourceError):
    """One user of a service reached a limit."""


class TooManyRounds(ResourceError):
    """A recursion exceeded its maximum number of rounds."""


class Lagging(ResourceError):
    """An answer fell too far behind the clock."""


class Stopped(ResourceError):
    """A query was stopped by an administrator."""


class Overflow(ResourceError):
    """A number left the range of its type."""


class StorageError(KpgError):
    """A file cannot be used."""


class Corrupt(StorageError):
    """A file is damaged, truncated, or of another kind."""


class Unavailable(StorageError):
    """A file cannot be opened, read or written, or an optional package is not installed."""


class ClusterError(KpgError):
    """The workers of a db, or the connections to them, failed."""


class WorkerLost(ClusterError):
    """A worker was killed, crashed, or is unreachable."""


class Unreachable(ClusterError):
    """A connection cannot be made, or ended."""


class NotAuthorised(ClusterError):
    """The other side of a connection does not know the secret of the db."""


class ProtocolError(ClusterError):
    """A message has no meaning; `path` names the member of the JSON document that is wrong."""

    path: str | None = None


class WrongThread(KpgError):
    """A db was used from a thread that does not own it."""


class WrongAnswer(KpgError):
    """The answer of an experiment differs from an independent computation: a fault of kpg, or of the experiment."""


# The name of each class in messages between processes, in server messages and in files. Never change a name here: peers
# of another version and clients in other languages rely on it. A class may be renamed; its wire name stays.
WIRE_NAMES: dict[str, type[KpgError]] = {
    "KpgError": KpgError,
    "ProgramError": ProgramError,
    "ParseError": ParseError,
    "UndefinedName": UndefinedName,
    "TypeMismatch": TypeMismatch,
    "BadPlan": BadPlan,
    "UnsafeRule": UnsafeRule,
    "NotStratified": NotStratified,
    "NameTaken": NameTaken,
    "NotSupported": NotSupported,
    "InputError": InputError,
    "SchemaMismatch": SchemaMismatch,
    "TimeTooEarly": TimeTooEarly,
    "TimeNotReached": TimeNotReached,
    "Closed": Closed,
    "InUse": InUse,
    "InsertOnly": InsertOnly,
    "ConstraintViolation": ConstraintViolation,
    "TransactionConflict": TransactionConflict,
    "DataError": DataError,
    "ResourceError": ResourceError,
    "OverBudget": OverBudget,
    "OverLimit": OverLimit,
    "TooManyRounds": TooManyRounds,
    "Lagging": Lagging,
    "Stopped": Stopped,
    "Overflow": Overflow,
    "StorageError": StorageError,
    "Corrupt": Corrupt,
    "Unavailable": Unavailable,
    "ClusterError": ClusterError,
    "WorkerLost": WorkerLost,
    "Unreachable": Unreachable,
    "NotAuthorised": NotAuthorised,
    "ProtocolError": ProtocolError,
    "WrongThread": WrongThread,
    "WrongAnswer": WrongAnswer,
}
_NAME_OF_CLASS = {error: name for name, error in WIRE_NAMES.items()}


def wire_name(error: KpgError) -> str:
    """Return the name by which an error travels: that of its class, or of the nearest registered base class."""
    return next(_NAME_OF_CLASS[base] for base in type(error).__mro__ if base in _NAME_OF_CLASS)


def error_class(name: str) -> type[KpgError]:
    """Return the class with a wire name; `KpgError` for a name of another version."""
    return WIRE_NAMES.get(name, KpgError)
