"""What messages are made of: columns, rows, positions, and why something failed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from kpg.protocol.strict_decoder import Between, Count, Name, Rows, Size, Value
from kpg.protocol.value_codec import EXACT

Text = Annotated[str, Size(0, 4_000_000)]
Token = Annotated[str, Size(0, 500)]
Language = Literal["datalog", "edn", "plan"]
Semantics = Literal["raw", "distinct", "cardinality-one", "last-write-wins"]
Arguments = Annotated[tuple[dict[str, Value], ...], Size(1, 1_000_000)]


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its name and its type, as `int64`, `string?`, `decimal(10,2)`."""

    name: Name
    type: Name


@dataclass(frozen=True, slots=True)
class Block:
    """Rows of one relation, all with the same diff: 1 inserts them, -1 removes them."""

    relation: Name
    rows: Rows
    diff: Annotated[int, Between(-EXACT, EXACT)] = 1


@dataclass(frozen=True, slots=True)
class Origin:
    """Says that a transaction is batch so-and-so of a writer: a batch that was applied before has no effect."""

    writer: Name
    batch: Count


@dataclass(frozen=True, slots=True)
class Sink:
    """Where output goes instead, a file in the server's directory for sinks: `file` has the changes, `latency` the
    milliseconds of each closed epoch."""

    type: Literal["file", "latency"]
    path: Name
    format: Literal["jsonl", "csv"] | None = None


@dataclass(frozen=True, slots=True)
class Relation:
    """What is known of a relation, attribute or rule."""

    name: Name
    role: Literal["relation", "attribute", "rule"]
    columns: tuple[Column, ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Position:
    """Where something is wrong: line and column of a text from 1, or the path in a message."""

    line: int | None = None
    column: int | None = None
    path: str | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """Why something failed: the class of the error, and what it says."""

    error: Name
    what: str
    detail: str | None = None
    hint: str | None = None
    position: Position | None = None


Columns = Annotated[tuple[Column, ...], Size(1, 1_000)]
