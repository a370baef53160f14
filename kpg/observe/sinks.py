"""Sinks: where the changes of an answer go instead of to a reader.

    LatencySink("epochs.log")                  swallows them; the milliseconds of each epoch, a line each
    FileSink("changes.jsonl")                  writes them, as lines of JSON or as CSV
    open_sink({"type": "latency", "path": "epochs.log"}, directory)      by configuration, as a client sends it

A sink is told of changes, then how far all of them have been told, over all workers; and, when nothing can come any
more, that all is complete. Nothing is serialised for a sink that swallows, so what it measures is the engine. What is
measured is the time since the epoch before was closed, or since the sink began.
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
Place = str | os.PathLike[str]
LONGEST = 255  # bytes of the name of a file


class TakenChanges(Protocol):
    """Changes of an answer."""

    def __len__(self) -> int: ...

    def to_arrow(self) -> pa.Table:
        """The rows with columns `_time` and `_diff`."""


class Sink(Protocol):
    """What takes the changes of an answer."""

    def take(self, changes: TakenChanges) -> None:
        """Some changes."""

    def advance(self, frontier: Frontier) -> None:
        """All changes at times not beyond the frontier were given; an empty one: all there will ever be."""

    def close(self) -> None:
        """Nothing more will be told; may be repeated."""


class LineFile:
    """A file that lines are added to, all of them there after `flush`."""

    def __init__(self, path: Place, mode: str) -> None:
        self.path = os.fspath(path)
        try:
            self.file: IO[str] = open(path, mode, encoding="utf-8", newline="")
        except OSError as error:
            raise Unavailable(f"cannot write {self.path}", detail=str(error)) from None

    def write(self, text: str) -> None:
        """Add text and let others see it."""
        try:
            self.file.write(text)
            self.file.flush()
        except OSError as error:
            raise Unavailable(f"cannot write {self.path}", detail=str(error)) from None

    def close(self) -> None:
        """Finish; may be repeated."""
        self.file.close()


class LatencySink:
    """Swallows changes; appends the milliseconds of each epoch that is closed to a log file."""

    def __init__(self, path: Place, *, clock: Callable[[], float] = perf_counter) -> None:
        self._file = LineFile(path, "a")
        self._clock = clock
        self._last = clock()
        self._began = self._last
        self.rows = 0
        self.epochs = 0
        self.complete = False

    def take(self, changes: TakenChanges) -> None:
        """Count them."""
        self.rows += len(changes)

    def advance(self, frontier: Frontier) -> None:
        """A line for what was closed; a remark when all is."""
        now = self._clock()
        self.epochs += 1
        line = f"{(now - self._last) * 1e3:.3f}\n"
        self._last = now
        if not frontier and not self.complete:
            self.complete = True
            line += f"# complete: {self.epochs} epochs, {self.rows} changes, {(now - self._began) * 1e3:.3f} ms\n"
        self._file.write(line)

    def close(self) -> None:
        """Finish the file."""
        self._file.close()


class FileSink:
    """Writes changes to a file, with their time and diff.

    jsonl: {"row": {...}, "time": 3, "diff": 1}, after those of an epoch {"upto": 4}, at the end {"complete": true}
    csv: a head, then the columns of the answer, `_time` and `_diff`
    """

    def __init__(self, path: Place, format: Format | None = None) -> None:  # noqa: A002
        chosen = format or ("csv" if os.fspath(path).endswith(".csv") else "jsonl")
        if chosen not in ("jsonl", "csv"):
            raise TypeMismatch(f"{format!r} is not a format of a file", hint="Say jsonl or csv.")
        self.format: Format = chosen
        self._file = LineFile(path, "w")
        self._headed = False
        self.complete = False

    def take(self, changes: TakenChanges) -> None:
        """Write them."""
        table = changes.to_arrow()
        if self.format == "csv":
            writer = csv.writer(self._file.file, lineterminator="\n")
            if not self._headed:
                self._headed = True
                writer.writerow(table.column_names)
            writer.writerows(rows_of(table))
            self._file.write("")
        else:
            self._file.write("".join(map(as_line, table.to_pylist())))

    def advance(self, frontier: Frontier) -> None:
        """Say how far it is complete, where the format can."""
        self.complete = not frontier
        if self.format == "jsonl":
            upto = [list(time) if len(time) > 1 else time[0] for time in frontier]
            said = {"upto": upto[0] if len(upto) == 1 else upto} if frontier else {"complete": True}
            self._file.write(json.dumps(said) + "\n")

    def close(self) -> None:
        """Finish the file."""
        self._file.close()


def as_line(row: dict[str, Any]) -> str:
    """A change as a line of JSON; what JSON has no word for is written as text."""
    time, diff = row.pop("_time"), row.pop("_diff")
    plain = {name: str(value) if isinstance(value, float) and not math.isfinite(value) else value
             for name, value in row.items()}  # fmt: skip
    return json.dumps({"row": plain, "time": time, "diff": diff}, default=str) + "\n"


def open_sink(config: Mapping[str, Any], directory: Place | None) -> Sink:
    """A sink as a client asks for it: a type, a file name, for `file` a format. Files are made in `directory` only."""
    if directory is None:
        raise Unavailable("sinks are switched off", hint="Start the service with a directory for them.")
    kind, name = config.get("type"), config.get("path")
    if not isinstance(name, str) or not name.isprintable() or not 0 < len(name.encode()) <= LONGEST:
        raise InputError(f"{name!r} is not the name of a file", hint=f"At most {LONGEST} printable bytes.")
    if Path(name).name != name or name in (".", ".."):
        raise InputError(f"{name!r} is not the name of a file", hint="Name a file, without any directory.")
    path = Path(directory) / name
    if path.is_symlink():
        raise InputError(f"{name!r} leads elsewhere")
    match kind:
        case "latency":
            return LatencySink(path)
        case "file":
            return FileSink(path, config.get("format"))
        case _:
            raise TypeMismatch(f"{kind!r} is not a kind of sink", hint="Say latency or file.")
