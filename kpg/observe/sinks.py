"""Sinks receive the changes of an answer in place of a reader.

    LatencySink("epochs.log")                  discards changes; writes the milliseconds of each epoch, one line each
    FileSink("changes.jsonl")                  writes changes as lines of JSON, or as CSV
    open_sink({"type": "latency", "path": "epochs.log"}, directory)      from a description, as a client sends it

A sink receives changes, then the frontier up to which they are complete over all workers. The empty frontier is the
last: the answer is complete. A LatencySink serialises nothing, so it measures the engine: the time since the previous
epoch was closed, or since the sink was created.
"""

from __future__ import annotations

import csv
import json
import math
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from time import perf_counter
from typing import IO, Any, Literal, Protocol

import pyarrow as pa

from kpg.algebra.frontier import Frontier
from kpg.columns.rows import rows_of
from kpg.errors import InputError, TypeMismatch, Unavailable

Format = Literal["jsonl", "csv"]
FilePath = str | os.PathLike[str]
MAX_FILE_NAME_BYTES = 255  # the limit of common file systems


class TakenChanges(Protocol):
    """Changes taken from an answer."""

    def __len__(self) -> int: ...

    def to_arrow(self) -> pa.Table:
        """Return the rows with columns `_time` and `_diff`."""


class Sink(Protocol):
    """Receives the changes of an answer."""

    def take(self, changes: TakenChanges) -> None:
        """Receive changes."""

    def advance(self, frontier: Frontier) -> None:
        """Receive the frontier: all changes at times not beyond it were passed. The empty frontier ends the answer."""

    def close(self) -> None:
        """Release resources; nothing follows. Repeating it has no effect."""


class LineFile:
    """A text file. Other programs see its lines after each write."""

    def __init__(self, path: FilePath, mode: str) -> None:
        self.path = os.fspath(path)
        try:
            self.file: IO[str] = open(path, mode, encoding="utf-8", newline="")
        except OSError as error:
            raise Unavailable(f"cannot write {self.path}", detail=str(error)) from None

    def write(self, text: str) -> None:
        """Write text and flush it."""
        try:
            self.file.write(text)
            self.file.flush()
        except OSError as error:
            raise Unavailable(f"cannot write {self.path}", detail=str(error)) from None

    def close(self) -> None:
        """Close the file; repeating it has no effect."""
        self.file.close()


class LatencySink:
    """Discards changes, and appends the milliseconds of each closed epoch to a file."""

    def __init__(self, path: FilePath, *, clock: Callable[[], float] = perf_counter) -> None:
        self._file = LineFile(path, "a")
        self._clock = clock
        self._last = clock()
        self._began = self._last
        self.rows = 0
        self.epochs = 0
        self.complete = False

    def take(self, changes: TakenChanges) -> None:
        """Count changes."""
        self.rows += len(changes)

    def advance(self, frontier: Frontier) -> None:
        """Write a line for the closed epochs, and a comment line when the answer is complete."""
        now = self._clock()
        self.epochs += 1
        line = f"{(now - self._last) * 1e3:.3f}\n"
        self._last = now
        if not frontier and not self.complete:
            self.complete = True
            line += f"# complete: {self.epochs} epochs, {self.rows} changes, {(now - self._began) * 1e3:.3f} ms\n"
        self._file.write(line)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class FileSink:
    """Writes changes to a file, with their time and diff.

    jsonl: {"row": {...}, "time": 3, "diff": 1} per change, {"upto": 4} after each epoch, {"complete": true} at the end
    csv: a header, then the columns of the answer, `_time` and `_diff`
    """

    def __init__(self, path: FilePath, format: Format | None = None) -> None:  # noqa: A002
        chosen = format or ("csv" if os.fspath(path).endswith(".csv") else "jsonl")
        if chosen not in ("jsonl", "csv"):
            raise TypeMismatch(f"{format!r} is not a file format of sinks", hint="Use jsonl or csv.")
        self.format: Format = chosen
        self._file = LineFile(path, "w")
        self._has_header = False
        self.complete = False

    def take(self, changes: TakenChanges) -> None:
        """Write changes."""
        table = changes.to_arrow()
        if self.format == "csv":
            writer = csv.writer(self._file.file, lineterminator="\n")
            if not self._has_header:
                self._has_header = True
                writer.writerow(table.column_names)
            writer.writerows(rows_of(table))
            self._file.write("")
        else:
            self._file.write("".join(map(as_line, table.to_pylist())))

    def advance(self, frontier: Frontier) -> None:
        """Write the frontier, if the format has a line for it."""
        self.complete = not frontier
        if self.format == "jsonl":
            upto = [list(time) if len(time) > 1 else time[0] for time in frontier]
            line = {"upto": upto[0] if len(upto) == 1 else upto} if frontier else {"complete": True}
            self._file.write(json.dumps(line) + "\n")

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def as_line(row: dict[str, Any]) -> str:
    """Return a change as a line of JSON; values without a JSON form are written as strings."""
    time, diff = row.pop("_time"), row.pop("_diff")
    plain = {name: str(value) if isinstance(value, float) and not math.isfinite(value) else value
             for name, value in row.items()}  # fmt: skip
    return json.dumps({"row": plain, "time": time, "diff": diff}, default=str) + "\n"


def open_sink(config: Mapping[str, Any], directory: FilePath | None) -> Sink:
    """Open a sink from a description: type, file name and, for `file`, a format. It writes only to `directory`."""
    if directory is None:
        raise Unavailable("sinks are switched off", hint="Start the server or service with a directory for them.")
    kind, name = config.get("type"), config.get("path")
    if not isinstance(name, str) or not name.isprintable() or not 0 < len(name.encode()) <= MAX_FILE_NAME_BYTES:
        raise InputError(
            f"{name!r} is not the name of a file", hint=f"Give at most {MAX_FILE_NAME_BYTES} printable bytes."
        )
    if Path(name).name != name or name in (".", ".."):
        raise InputError(f"{name!r} is not the name of a file", hint="Give a file name without a directory.")
    path = Path(directory) / name
    if path.is_symlink():
        raise InputError(f"{name!r} is a symbolic link", hint="Choose another name.")
    match kind:
        case "latency":
            return LatencySink(path)
        case "file":
            return FileSink(path, config.get("format"))
        case _:
            raise TypeMismatch(f"{kind!r} is not a type of sink", hint="Use latency or file.")
