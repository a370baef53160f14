"""kpg keeps the answers of queries up to date while their inputs change.

You install and drop queries while data streams in. Queries share the indexes that they read, and may be recursive;
each answer is exact for one logical time. `import kpg` is light: Python imports the engine when the program first uses
a name of `ENGINE`, and Numba when the work is too much for interpreted kernels.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from kpg.errors import (
    BadPlan,
    Closed,
    ClusterError,
    ConstraintViolation,
    Corrupt,
    DataError,
    InputError,
    InsertOnly,
    InUse,
    KpgError,
    Lagging,
    NameTaken,
    NotAuthorised,
    NotStratified,
    NotSupported,
    OverBudget,
    Overflow,
    OverLimit,
    ParseError,
    ProgramError,
    ProtocolError,
    ResourceError,
    SchemaMismatch,
    Stopped,
    StorageError,
    TimeNotReached,
    TimeTooEarly,
    TooManyRounds,
    TransactionConflict,
    TypeMismatch,
    Unavailable,
    UndefinedName,
    Unreachable,
    UnsafeRule,
    WorkerLost,
    WrongAnswer,
    WrongThread,
)

# Public name → its module, imported on first use. Each name is also imported under TYPE_CHECKING, for its type.
ENGINE: dict[str, str] = {
    "Arrangement": "kpg.api.contracts",
    "Background": "kpg.api.background",
    "Capture": "kpg.api.capture",
    "Changes": "kpg.api.changes",
    "Collection": "kpg.api.collection",
    "Database": "kpg.api.contracts",
    "Expression": "kpg.columns.expression",
    "Group": "kpg.api.group",
    "Input": "kpg.api.contracts",
    "Interval": "kpg.columns.interval",
    "Output": "kpg.api.contracts",
    "PendingRowsWarning": "kpg.api.pending_warning",
    "Recursion": "kpg.api.recursion",
    "Schema": "kpg.columns.schema",
    "Type": "kpg.columns.schema",
    "coalesce": "kpg.columns.functions",
    "col": "kpg.columns.functions",
    "count_rows": "kpg.columns.column_aggregates",
    "connect": "kpg.client.connection",
    "connect_async": "kpg.client.async_connection",
    "decimal": "kpg.columns.schema",
    "interval_part": "kpg.columns.intervals",
    "interval_span": "kpg.columns.intervals",
    "lit": "kpg.columns.functions",
    "make_interval": "kpg.columns.intervals",
    "max_of": "kpg.columns.functions",
    "min_of": "kpg.columns.functions",
    "open": "kpg.opening",
    "quotient": "kpg.columns.arithmetic",
    "replay": "kpg.api.capture_replay",
    "row_udf": "kpg.columns.functions",
    "udf": "kpg.columns.functions",
    "when": "kpg.columns.functions",
}

if TYPE_CHECKING:
    from kpg.api.background import Background
    from kpg.api.capture import Capture
    from kpg.api.capture_replay import replay
    from kpg.api.changes import Changes
    from kpg.api.collection import Collection
    from kpg.api.contracts import Arrangement, Database, Input, Output
    from kpg.api.group import Group
    from kpg.api.pending_warning import PendingRowsWarning
    from kpg.api.recursion import Recursion
    from kpg.client.async_connection import connect_async
    from kpg.client.connection import connect
    from kpg.columns.arithmetic import quotient
    from kpg.columns.column_aggregates import count_rows
    from kpg.columns.expression import Expression
    from kpg.columns.functions import coalesce, col, lit, max_of, min_of, row_udf, udf, when
    from kpg.columns.interval import Interval
    from kpg.columns.intervals import interval_part, interval_span, make_interval
    from kpg.columns.schema import Schema, Type, decimal
    from kpg.opening import open
    from kpg.version import __version__ as __version__

__all__ = [
    "Arrangement",
    "Background",
    "BadPlan",
    "Capture",
    "Changes",
    "Closed",
    "ConstraintViolation",
    "ClusterError",
    "Collection",
    "Corrupt",
    "DataError",
    "Database",
    "Expression",
    "Group",
    "InUse",
    "Input",
    "InputError",
    "InsertOnly",
    "Interval",
    "KpgError",
    "Lagging",
    "NameTaken",
    "NotAuthorised",
    "NotStratified",
    "NotSupported",
    "Output",
    "OverBudget",
    "OverLimit",
    "Overflow",
    "ParseError",
    "PendingRowsWarning",
    "ProgramError",
    "ProtocolError",
    "Recursion",
    "ResourceError",
    "Schema",
    "SchemaMismatch",
    "Stopped",
    "StorageError",
    "TimeNotReached",
    "TimeTooEarly",
    "TooManyRounds",
    "TransactionConflict",
    "Type",
    "TypeMismatch",
    "Unavailable",
    "UndefinedName",
    "Unreachable",
    "UnsafeRule",
    "WorkerLost",
    "WrongAnswer",
    "WrongThread",
    "coalesce",
    "col",
    "connect",
    "connect_async",
    "count_rows",
    "decimal",
    "interval_part",
    "interval_span",
    "lit",
    "make_interval",
    "max_of",
    "min_of",
    "open",
    "quotient",
    "replay",
    "row_udf",
    "udf",
    "when",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":  # reads the metadata of the installed package
        return import_module("kpg.version").__version__
    if name == "graphs":  # a package, imported on first use
        return import_module("kpg.graphs")
    if name not in ENGINE:
        raise AttributeError(f"module 'kpg' has no attribute {name!r}")
    value = getattr(import_module(ENGINE[name]), name)
    globals()[name] = value  # so that later uses do not come here
    return value


def load_ipython_extension(shell: Any) -> None:
    """Add the magics of kpg to a notebook: `%load_ext kpg`."""
    import_module("kpg.notebook.magics").load(shell)


def __dir__() -> list[str]:
    return sorted({*globals(), *ENGINE})
