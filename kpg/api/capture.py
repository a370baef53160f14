"""Capture: the updates of an answer as a file that another process can follow.

A capture is an Arrow IPC stream, which every Arrow library reads:

    schema              the columns of the answer, then `_time` and `_diff`; its metadata marks the file as a capture
    batches with rows   updates, in no promised order
    batches without     marks: their metadata has `upper` (the file holds all updates at times not beyond it),
                        `crc32` (the checksum of all bytes before the mark), and `failed` (why the answer has no value)
    the last mark       has `end`

The first mark follows the content of the answer when the capture began, at the times that could still be
distinguished. Each advance of the db appends its changes and a mark, even if nothing changed. `_time` is a number, or a
list if times have several coordinates. `kpg.api.capture_replay` reads the file back. Writing costs the changes; nothing
stays in memory between advances.
"""

from __future__ import annotations

import io
import json
import os
import stat
import zlib
from collections.abc import Iterator
from contextlib import suppress
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from kpg.algebra.frontier import Frontier
from kpg.columns.count_limits import counts_as_int64
from kpg.columns.table_rows import decode
from kpg.columns.updates import Updates, spread
from kpg.errors import SchemaMismatch, Unavailable

if TYPE_CHECKING:
    from kpg.api.embedded_output import EmbeddedOutput

Path = str | os.PathLike[str]

FORMAT, VERSION = b"kpg.capture", b"1"
MAX_BATCH_ROWS = 1 << 20  # bounds the memory for decoding, and for a reader
UNBOUNDED_BYTES = 1 << 62  # used for a pipe, which has no size


class Capture:
    """A file that receives an answer and its changes until it is closed, or the answer or its db ends."""

    def __init__(self, output: EmbeddedOutput, path: Path) -> None:
        self.path = os.fspath(path)
        self._output = output
        self._schema = file_schema(output)
        self._unwritten = output.contents()
        self._upper = ""
        try:
            self._file = ChecksumFile(open(path, "wb"))
            self._stream = pa.ipc.new_stream(pa.PythonFile(self._file, "w"), self._schema)
            self._stream.write_batch(no_rows(self._schema))  # writes the schema, which the first mark covers
        except OSError as error:
            raise Unavailable(f"cannot write {self.path}", detail=str(error)) from None
        self.advance()
        output.start_capture(self)

    @property
    def closed(self) -> bool:
        """Whether the file is finished."""
        return self._file.closed

    def take(self, updates: Updates) -> None:
        """Accept updates of the answer, to write with the next mark."""
        self._unwritten.append(self._output.in_reading_order(updates))

    def advance(self) -> None:
        """Write the new updates, and the frontier up to which they are complete."""
        if self._output.ended:
            self.close()
            return
        updates, self._unwritten = self._unwritten, []
        self._upper = dump(self._output.frontier())
        self._write(updates)

    def close(self) -> None:
        """Finish the file; may be repeated."""
        if self.closed:
            return
        self._output.end_capture(self)
        self._write([], end="true")
        self._stream.close()
        self._file.close()

    def _write(self, parts: list[Updates], **mark: str) -> None:
        """Write updates and a mark."""
        try:
            for updates in parts:
                for batch in to_batches(self._output, updates, self._schema):
                    self._stream.write_batch(batch)
            failure = self._output.failure()
            if failure is not None:
                mark["failed"] = failure
            mark |= {"upper": self._upper, "crc32": str(self._file.checksum)}
            metadata = {name.encode(): value.encode() for name, value in mark.items()}
            self._stream.write_batch(no_rows(self._schema), custom_metadata=metadata)
            self._file.flush()
        except OSError as error:
            self._output.end_capture(self)
            with suppress(OSError):
                self._file.close()
            raise Unavailable(
                f"cannot write {self.path}",
                detail=f"{error}. The capture ends here; the answer is not affected.",
                hint="Replay the part that was written with unfinished=True.",
            ) from None

    def __enter__(self) -> Capture:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Capture({self.path!r} of {self._output.name!r})"


def file_schema(output: EmbeddedOutput) -> pa.Schema:
    """Return the columns of a capture."""
    schema, depth = output.schema, output.db.config.coordinates
    if {"_time", "_diff"} & set(schema.names):
        raise SchemaMismatch(f"output {output.name} has a column _time or _diff", hint="Rename it first.")
    time = pa.int64() if depth == 1 else pa.list_(pa.int64(), depth)
    added = [pa.field("_time", time, nullable=False), pa.field("_diff", pa.int64(), nullable=False)]
    return pa.schema([*schema.to_arrow(), *added], metadata={FORMAT: VERSION, b"kpg.name": output.name.encode()})


def to_batches(output: EmbeddedOutput, updates: Updates, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield updates as batches of a capture."""
    n = len(updates)
    times = spread(updates.times, n)
    diffs = counts_as_int64(output.name, output.schema, updates.data, spread(updates.diffs, n)[0], output.db.symbols)
    for start in range(0, n, MAX_BATCH_ROWS):
        end = min(n, start + MAX_BATCH_ROWS)
        table = decode(output.schema, np.ascontiguousarray(updates.data[:, start:end]), output.db.symbols)
        time: Any = pa.array(np.ascontiguousarray(times[:, start:end].T).reshape(-1))
        if len(times) > 1:
            time = pa.FixedSizeListArray.from_arrays(time, len(times))
        whole = pa.Table.from_arrays([*table.columns, time, pa.array(diffs[start:end])], schema=schema)
        yield from whole.to_batches()


def no_rows(schema: pa.Schema) -> pa.RecordBatch:
    """Return the empty batch that carries a mark."""
    return pa.RecordBatch.from_arrays([pa.array([], field.type) for field in schema], schema=schema)


def dump(frontier: Frontier) -> str:
    """Write a frontier as text."""
    return json.dumps([list(time) for time in frontier])


class ChecksumFile(io.RawIOBase):
    """A file, with the checksum of all bytes that were read or written."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        status = os.fstat(file.fileno())
        self._left = status.st_size if stat.S_ISREG(status.st_mode) else UNBOUNDED_BYTES
        self.checksum = 0
        self.position = 0
        self.ended = False  # whether a read returned fewer bytes than it asked for

    def write(self, data: Any) -> int:
        """Write bytes."""
        self.checksum = zlib.crc32(data, self.checksum)
        return self._file.write(data)

    def read(self, n: int = -1) -> bytes:
        """Read at most n bytes, bounded by the size of the file: a damaged length must not exhaust the memory."""
        data = self._file.read(min(n, self._left) if n >= 0 else self._left)
        self.ended = self.ended or len(data) < n
        self.checksum = zlib.crc32(data, self.checksum)
        self._left -= len(data)
        self.position += len(data)
        return data

    def readable(self) -> bool:
        """Return whether it was opened for reading."""
        return self._file.readable()

    def writable(self) -> bool:
        """Return whether it was opened for writing."""
        return self._file.writable()

    def flush(self) -> None:
        """Make the written bytes visible to other processes."""
        if not self._file.closed:
            self._file.flush()

    def close(self) -> None:
        """Close the file."""
        try:
            self._file.close()
        finally:
            super().close()
