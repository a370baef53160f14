"""Replay: read a capture back section by section, or insert it into an input at its own times.

    accumulated to any t before the last upper:   replayed  ==  the answer at t

A section is the updates up to a mark with the right checksum of all bytes before it. Replay yields only such sections;
when it meets a truncated or damaged part it raises, after it has yielded every section before that part.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kpg.algebra.frontier import Frontier
from kpg.algebra.order import Time
from kpg.api.capture import FORMAT, VERSION, ChecksumFile, Path
from kpg.columns.schema import Type, parse_arrow
from kpg.errors import Corrupt, DataError, SchemaMismatch, TypeMismatch, Unavailable

if TYPE_CHECKING:
    from kpg.api.contracts import Database, Input

DAMAGE_ERRORS = (pa.ArrowException, OSError, EOFError, ValueError, KeyError, TypeError)


@dataclass(frozen=True, slots=True)
class Replayed:
    """One section of a capture: its updates, and the frontier up to which they are complete.

    It unpacks as (changes, upper).
    """

    changes: pa.Table
    upper: tuple[Time, ...]
    failed: str | None = None  # the reason, if the answer had no value at this point

    def __iter__(self) -> Iterator[Any]:
        yield self.changes
        yield self.upper


def replay(path: Path, *, unfinished: bool = False) -> Iterator[Replayed]:
    """Yield the sections of a capture, in order: `for changes, upper in kpg.replay(path)`.

    `unfinished` accepts a file that is still being written, or is truncated, and ends with its last whole section.
    """
    try:
        file = open(path, "rb")
    except OSError as error:
        raise Unavailable(f"cannot read {os.fspath(path)}", detail=str(error)) from None
    with file:
        checked = ChecksumFile(file)
        stream = _open(os.fspath(path), checked, unfinished)
        if stream is not None:
            yield from _sections(os.fspath(path), checked, stream, unfinished)


def _open(path: str, file: ChecksumFile, unfinished: bool) -> Any:
    """Open the Arrow stream of a capture; return None if its writer has not written the schema yet."""
    try:
        stream = pa.ipc.open_stream(pa.PythonFile(file, "r"))
        version = (stream.schema.metadata or {}).get(FORMAT)
    except DAMAGE_ERRORS as error:
        if unfinished and file.ended:
            return None
        raise Corrupt(f"{path} is not a capture, or is truncated", detail=str(error)) from None
    if version is None or stream.schema.names[-2:] != ["_time", "_diff"]:
        raise Corrupt(f"{path} is not a capture", detail=f"Its columns are {', '.join(stream.schema.names)}.")
    if version != VERSION:
        raise Corrupt(
            f"{path} is a capture of another version of the format", detail=f"Found {version!r}, expected {VERSION!r}."
        )
    return stream


def _sections(path: str, file: ChecksumFile, stream: Any, unfinished: bool) -> Iterator[Replayed]:
    batches: list[pa.RecordBatch] = []
    while True:
        before = file.checksum
        try:
            batch, marks = stream.read_next_batch_with_custom_metadata()
            if marks is None:
                batches.append(batch)
                continue
            fits, ends, section = _section(dict(marks), batches, stream.schema, before)
        except StopIteration:
            if unfinished:
                return
            raise Corrupt(
                f"{path} is truncated",
                detail="It has no last mark: its writer is still running, or was stopped.",
                hint="Read its complete sections with unfinished=True.",
            ) from None
        except DAMAGE_ERRORS as error:
            if unfinished and file.ended:
                return
            raise Corrupt(
                f"{path} is damaged or truncated", detail=f"After {file.position:,} bytes: {error}."
            ) from None
        if not fits:
            raise Corrupt(f"{path} is damaged", detail=f"A checksum does not fit, after {file.position:,} bytes.")
        if not ends or section.failed:
            yield section
        if ends:
            return
        batches = []


def _section(
    marks: dict[bytes, bytes], batches: list[pa.RecordBatch], schema: pa.Schema, checksum: int
) -> tuple[bool, bool, Replayed]:
    """Return whether the checksum of a mark is right, whether it is the last mark, and the section before it."""
    table = pa.Table.from_batches(batches, schema=schema.remove_metadata())
    upper = tuple(tuple(int(x) for x in time) for time in json.loads(marks[b"upper"]))
    failed = marks.get(b"failed")
    section = Replayed(table, upper, None if failed is None else failed.decode())
    return int(marks[b"crc32"]) == checksum, b"end" in marks, section


def replay_into(db: Database, path: Path, into: Input, unfinished: bool) -> int:
    """Insert a capture into an input at its own times, advancing the db; return the number of updates."""
    total = 0
    for section in replay(path, unfinished=unfinished):
        columns = section.changes.drop_columns(["_time", "_diff"])
        check_fits(into, columns.schema, section.changes.schema.field("_time").type)
        if section.failed is not None:
            raise DataError(f"{os.fspath(path)} was captured from an answer that failed", detail=section.failed)
        if columns.num_rows:
            into.update_at(columns, times_of(section.changes), section.changes.column("_diff").to_numpy())
            total += columns.num_rows
        upper = Frontier(section.upper)
        if not upper:
            into.close()
        elif db.time.precedes(upper):
            db.advance_to(upper)
    return total


def check_fits(into: Input, columns: pa.Schema, time: pa.DataType) -> None:
    """Raise if the columns or times of a capture differ from those of an input."""
    expected = into.schema
    if set(columns.names) != set(expected.names) or not all(
        holds(expected.type_of(name), columns.field(name).type) for name in expected.names
    ):
        found = ", ".join(f"{field.name}: {field.type}" for field in columns)
        raise SchemaMismatch(f"the capture does not fit {into.name}", detail=f"Found ({found}), expected {expected!r}.")
    coordinates = into.db.config.coordinates
    if coordinates_of(time) != coordinates:
        raise SchemaMismatch(
            f"the capture does not fit {into.name}",
            detail=f"Its times have {coordinates_of(time)} coordinate(s), those of the db {coordinates}.",
        )


def holds(type_: Type, source: pa.DataType) -> bool:
    """Return whether captured columns of a type have an Arrow type, which may stand for several types, as text does."""
    if source == type_.to_arrow():
        return True
    try:
        return parse_arrow(source).same(type_)
    except TypeMismatch:
        return False


def times_of(changes: pa.Table) -> Any:
    """Return the times of captured updates: int64[n], or int64[n, coordinates]."""
    column: Any = changes.column("_time")
    depth = coordinates_of(column.type)
    return column.to_numpy() if depth == 1 else column.combine_chunks().flatten().to_numpy().reshape(-1, depth)


def coordinates_of(time: Any) -> int:
    """Return the number of coordinates of the times of a capture."""
    return int(time.list_size) if pa.types.is_fixed_size_list(time) else 1
