"""Capture: the updates of an answer as a file that any process can follow.

A capture is an Arrow IPC stream, so whoever reads Arrow reads it:

    schema              the columns of the answer, then `_time` and `_diff`; its metadata says that this is a capture
    batches with rows   updates, in no promised order
    batches without     marks: `upper` in their metadata says that all updates at times not beyond it have been given,
                        `crc32` is the checksum of all bytes before the mark, `failed` why the answer has no value now
    the last mark       says `end`

The first mark follows what the answer held when the capture began, at the times that could still be told apart; each
advance of the db adds its changes and a mark, also when nothing changed. `_time` is a number, or a list of them if
times have several coordinates. `kpg.api.capture_replay` reads it back.
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
from kpg.columns.table_rows import decode
from kpg.columns.updates import Updates, spread
from kpg.errors import SchemaMismatch, Unavailable

if TYPE_CHECKING:
    from kpg.api.embedded_output import EmbeddedOutput

Path = str | os.PathLike[str]

FORMAT, VERSION = b"kpg.capture", b"1"
SLICE = 1 << 20  # rows of one batch at most
ENDLESS = 1 << 62


class Capture:
    """A file that follows an answer until it is closed, or the answer or its db ends."""

    def __init__(self, output: EmbeddedOutput, path: Path) -> None:
        self.path = os.fspath(path)
        self._output = output
        self._schema = file_schema(output)
        self._waiting = output.contents()
        self._upper = ""
        try:
            self._file = Checked(open(path, "wb"))
            self._stream = pa.ipc.new_stream(pa.PythonFile(self._file, "w"), self._schema)
            self._stream.write_batch(no_rows(self._schema))  # writes the schema, so that the first mark covers it
        except OSError as error:
            raise Unavailable(f"cannot write {self.path}", detail=str(error)) from None
        self.advance()
        output.start_capture(self)

    @property
    def closed(self) -> bool:
        """Whether the file is finished."""
        return self._file.closed

    def take(self, updates: Updates) -> None:
        """Updates of the answer, to be written with the next mark."""
        self._waiting.append(self._output.in_reading_order(updates))

    def advance(self) -> None:
        """Write what has come, and how far it is complete."""
        if self._output.ended:
            self.close()
            return
        waiting, self._waiting = self._waiting, []
        self._upper = dump(self._output.frontier())
        self._write(waiting)

    def close(self) -> None:
        """Finish the file; may be repeated."""
        if self.closed:
            return
        self._output.end_capture(self)
        self._write([], end="true")
        self._stream.close()
        self._file.close()

    def _write(self, waiting: list[Updates], **said: str) -> None:
        """Write updates and a mark."""
        try:
            for updates in waiting:
                for batch in to_batches(self._output, updates, self._schema):
                    self._stream.write_batch(batch)
            failure = self._output.failure()
            if failure is not None:
                said["failed"] = failure
            said |= {"upper": self._upper, "crc32": str(self._file.checksum)}
            marks = {name.encode(): value.encode() for name, value in said.items()}
            self._stream.write_batch(no_rows(self._schema), custom_metadata=marks)
            self._file.flush()
        except OSError as error:
            self._output.end_capture(self)
            with suppress(OSError):
                self._file.close()
            raise Unavailable(
                f"cannot write {self.path}",
                detail=f"{error}. The capture ends here; the answer is unharmed.",
                hint="Replay what was written with unfinished=True.",
            ) from None

    def __enter__(self) -> Capture:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Capture({self.path!r} of {self._output.name!r})"


def file_schema(output: EmbeddedOutput) -> pa.Schema:
    """The columns of a capture."""
    schema, depth = output.schema, output.db.config.coordinates
    if {"_time", "_diff"} & set(schema.names):
        raise SchemaMismatch(f"output {output.name} has a column _time or _diff", hint="Rename it first.")
    time = pa.int64() if depth == 1 else pa.list_(pa.int64(), depth)
    added = [pa.field("_time", time, nullable=False), pa.field("_diff", pa.int64(), nullable=False)]
    return pa.schema([*schema.to_arrow(), *added], metadata={FORMAT: VERSION, b"kpg.name": output.name.encode()})


def to_batches(output: EmbeddedOutput, updates: Updates, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Updates as batches of a capture."""
    n = len(updates)
    times, diffs = spread(updates.times, n), spread(updates.diffs, n)
    for start in range(0, n, SLICE):
        end = min(n, start + SLICE)
        table = decode(output.schema, np.ascontiguousarray(updates.data[:, start:end]), output.db.symbols)
        time: Any = pa.array(np.ascontiguousarray(times[:, start:end].T).reshape(-1))
        if len(times) > 1:
            time = pa.FixedSizeListArray.from_arrays(time, len(times))
        whole = pa.Table.from_arrays([*table.columns, time, pa.array(diffs[0, start:end])], schema=schema)
        yield from whole.to_batches()


def no_rows(schema: pa.Schema) -> pa.RecordBatch:
    """The batch that carries a mark."""
    return pa.RecordBatch.from_arrays([pa.array([], field.type) for field in schema], schema=schema)


def dump(frontier: Frontier) -> str:
    """A frontier as text."""
    return json.dumps([list(time) for time in frontier])


class Checked(io.RawIOBase):
    """A file, with the checksum of all that has passed through it."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        status = os.fstat(file.fileno())
        self._left = status.st_size if stat.S_ISREG(status.st_mode) else ENDLESS
        self.checksum = 0
        self.place = 0
        self.ended = False  # a read got less than it asked for

    def write(self, data: Any) -> int:
        """Write bytes."""
        self.checksum = zlib.crc32(data, self.checksum)
        return self._file.write(data)

    def read(self, n: int = -1) -> bytes:
        """Read at most n bytes: a damaged length must not ask for more memory than there is file."""
        data = self._file.read(min(n, self._left) if n >= 0 else self._left)
        self.ended = self.ended or len(data) < n
        self.checksum = zlib.crc32(data, self.checksum)
        self._left -= len(data)
        self.place += len(data)
        return data

    def readable(self) -> bool:
        """Whether it was opened for reading."""
        return self._file.readable()

    def writable(self) -> bool:
        """Whether it was opened for writing."""
        return self._file.writable()

    def flush(self) -> None:
        """Let others see what was written."""
        if not self._file.closed:
            self._file.flush()

    def close(self) -> None:
        """Close the file."""
        try:
            self._file.close()
        finally:
            super().close()
