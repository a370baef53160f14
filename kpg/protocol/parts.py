"""The parts of messages: columns, rows, origins, sinks, positions and failures."""

from __future__ import annotations

from typing import Annotated, Literal

from kpg.protocol.definitions import part
from kpg.protocol.strict_decoder import Between, Count, Name, Rows, Size, Value
from kpg.protocol.value_codec import EXACT

Text = Annotated[str, Size(0, 4_000_000)]
Token = Annotated[str, Size(0, 500)]
Key = Annotated[str, Size(16, 100)]
Language = Literal["datalog", "edn", "plan"]
Semantics = Literal["raw", "distinct", "cardinality-one", "last-write-wins"]
Arguments = Annotated[tuple[dict[str, Value], ...], Size(1, 1_000_000)]


@part("Column")
class ColumnSpec:
    """A column: its name and its type, as `int64`, `string?`, `decimal(10,2)`."""

    name: Name
    type: Name


@part("Block")
class BlockSpec:
    """Rows of one relation, all with the same diff: 1 inserts them, -1 removes them."""

    relation: Name
    rows: Rows
    diff: Annotated[int, Between(-EXACT, EXACT)] = 1


@part("Origin")
class OriginSpec:
    """The writer of a transaction and the number of its batch. A batch that was applied before has no effect."""

    writer: Name
    batch: Count


@part("Sink")
class SinkSpec:
    """A file in the server's directory for sinks that takes the output: `file` gets the changes, `latency` the
    milliseconds of each closed epoch."""

    type: Literal["file", "latency"]
    path: Name
    format: Literal["jsonl", "csv"] | None = None


@part("Relation")
class RelationSpec:
    """A relation, attribute or rule: its role and its columns."""

    name: Name
    role: Literal["relation", "attribute", "rule"]
    columns: tuple[ColumnSpec, ...]
    note: str = ""


@part("Position")
class PositionSpec:
    """The position of a mistake: line and column of a text, from 1, or the path in a message."""

    line: int | None = None
    column: int | None = None
    path: str | None = None


@part("Failure")
class FailureSpec:
    """The reason of a failure: the class of the error and its message."""

    error: Name
    what: str
    detail: str | None = None
    hint: str | None = None
    position: PositionSpec | None = None
    sqlstate: str | None = None  # PostgreSQL's code, of errors of SQL


Columns = Annotated[tuple[ColumnSpec, ...], Size(1, 1_000)]
