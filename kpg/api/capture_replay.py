"""Replay: a capture, read back stretch by stretch or fed into an input at its own times.

    accumulated to any t before the last upper:   replayed  ==  what the answer was at t

Nothing is given that a mark of the file has not confirmed: a stretch is the updates up to a mark whose checksum fits
all bytes before it. What is cut off or damaged is refused, and whatever came before it has been given.
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
from kpg.api.capture import FORMAT, VERSION, Checked, Path
from kpg.columns.schema import Schema
from kpg.errors import Corrupt, DataError, SchemaMismatch, Unavailable

if TYPE_CHECKING:
    from kpg.api.contracts import Database, Input

DAMAGE = (pa.ArrowException, OSError, EOFError, ValueError, KeyError, TypeError)


@dataclass(frozen=True, slots=True)
class Replayed:
    """One stretch of a capture: its updates, and the times up to which all is told. Unpacks as (changes, upper)."""

    changes: pa.Table
    upper: tuple[Time, ...]
    failed: str | None = None  # why the answer had no value at this point

    def __iter__(self) -> Iterator[Any]:
        yield self.changes
        yield self.upper


def replay(path: Path, *, unfinished: bool = False) -> Iterator[Replayed]:
    """The stretches of a capture, in order: `for changes, upper in kpg.replay(path)`.

    `unfinished` accepts a file that is still being written, or was cut off, and ends with its last whole stretch.
    """
    try:
        file = open(path, "rb")
    except OSError as error:
        raise Unavailable(f"cannot read {os.fspath(path)}", detail=str(error)) from None
    with file:
        checked = Checked(file)
        stream = _open(os.fspath(path), checked, unfinished)
        if stream is not None:
            yield from _stretches(os.fspath(path), checked, stream, unfinished)


def _open(path: str, file: Checked, unfinished: bool) -> Any:
    """The Arrow stream of a capture; none if its writer has not come so far."""
    try:
        stream = pa.ipc.open_stream(pa.PythonFile(file, "r"))
        version = (stream.schema.metadata or {}).get(FORMAT)
    except DAMAGE as error:
        if unfinished and file.ended:
            return None
        raise Corrupt(f"{path} is not a capture, or cut off", detail=str(error)) from None
    if version is None or stream.schema.names[-2:] != ["_time", "_diff"]:
        raise Corrupt(f"{path} is not a capture", detail=f"Its columns are {', '.join(stream.schema.names)}.")
    if version != VERSION:
        raise Corrupt(f"{path} is a capture of another version", detail=f"Found {version!r}, expected {VERSION!r}.")
    return stream


def _stretches(path: str, file: Checked, stream: Any, unfinished: bool) -> Iterator[Replayed]:
    waiting: list[pa.RecordBatch] = []
    while True:
        before = file.checksum
        try:
            batch, marks = stream.read_next_batch_with_custom_metadata()
            if marks is None:
                waiting.append(batch)
                continue
            fits, ends, stretch = _stretch(dict(marks), waiting, stream.schema, before)
        except StopIteration:
            if unfinished:
                return
            raise Corrupt(
                f"{path} is cut off",
                detail="It ends without saying so: its writer is still at work, or was stopped.",
                hint="Read as far as it goes with unfinished=True.",
            ) from None
        except DAMAGE as error:
            if unfinished and file.ended:
                return
            raise Corrupt(f"{path} is damaged or cut off", detail=f"After {file.place:,} bytes: {error}.") from None
        if not fits:
            raise Corrupt(f"{path} is damaged", detail=f"A checksum does not fit, after {file.place:,} bytes.")
        if not ends or stretch.failed:
            yield stretch
        if ends:
            return
        waiting = []


def _stretch(
    marks: dict[bytes, bytes], batches: list[pa.RecordBatch], schema: pa.Schema, checksum: int
) -> tuple[bool, bool, Replayed]:
    """Whether the checksum of a mark fits, whether it is the last, and what it confirms."""
    table = pa.Table.from_batches(batches, schema=schema.remove_metadata())
    upper = tuple(tuple(int(x) for x in time) for time in json.loads(marks[b"upper"]))
    failed = marks.get(b"failed")
    stretch = Replayed(table, upper, None if failed is None else failed.decode())
    return int(marks[b"crc32"]) == checksum, b"end" in marks, stretch


def replay_into(db: Database, path: Path, into: Input, unfinished: bool) -> int:
    """Feed a capture into an input at its own times, advancing the db; how many updates those were."""
    total = 0
    for stretch in replay(path, unfinished=unfinished):
        columns = stretch.changes.drop_columns(["_time", "_diff"])
        check_fits(into, columns.schema, stretch.changes.schema.field("_time").type)
        if stretch.failed is not None:
            raise DataError(f"{os.fspath(path)} was captured from an answer that failed", detail=stretch.failed)
        if columns.num_rows:
            into.update_at(columns, times_of(stretch.changes), stretch.changes.column("_diff").to_numpy())
            total += columns.num_rows
        upper = Frontier(stretch.upper)
        if not upper:
            into.close()
        elif db.time.precedes(upper):
            db.advance_to(upper)
    return total


def check_fits(into: Input, columns: pa.Schema, time: pa.DataType) -> None:
    """Refuse a capture whose columns or times are not those of an input."""
    found, wanted = Schema.from_arrow(columns), into.schema
    if set(found.names) != set(wanted.names) or not all(
        found.type_of(name).same(wanted.type_of(name)) for name in wanted.names
    ):
        raise SchemaMismatch(f"the capture does not fit {into.name}", detail=f"Found {found!r}, expected {wanted!r}.")
    coordinates = into.db.config.coordinates
    if coordinates_of(time) != coordinates:
        raise SchemaMismatch(
            f"the capture does not fit {into.name}",
            detail=f"Its times have {coordinates_of(time)} coordinate(s), those of the db {coordinates}.",
        )


def times_of(changes: pa.Table) -> Any:
    """The times of captured updates: int64[n], or int64[n, coordinates]."""
    column: Any = changes.column("_time")
    depth = coordinates_of(column.type)
    return column.to_numpy() if depth == 1 else column.combine_chunks().flatten().to_numpy().reshape(-1, depth)


def coordinates_of(time: Any) -> int:
    """How many coordinates the times of a capture have."""
    return int(time.list_size) if pa.types.is_fixed_size_list(time) else 1
