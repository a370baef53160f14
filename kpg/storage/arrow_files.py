"""The files of a directory on any filesystem of `pyarrow.fs`.

Each segment of the log holds one frame. A write is as durable as a closed file is on that filesystem. There is no lock:
the user must not open the directory from two processes.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from pyarrow import fs

from kpg.storage.file_store import Bytes, unavailable_on_error


class ArrowFiles:
    """A directory on a filesystem that Arrow knows."""

    can_append = False

    def __init__(self, filesystem: Any, path: str) -> None:
        self.location = path.rstrip("/")
        self._fs = filesystem
        with unavailable_on_error(f"cannot open {self.location}"):
            self._fs.create_dir(self.location, recursive=True)

    def names(self) -> list[str]:
        """Return the names of all files, sorted."""
        entries = self._fs.get_file_info(fs.FileSelector(self.location, allow_not_found=True))
        return sorted(entry.base_name for entry in entries if entry.type == fs.FileType.File)

    def read(self, name: str) -> bytes:
        """Return the content of a file."""
        path = self._path(name)
        with unavailable_on_error(f"cannot read {path}"), self._fs.open_input_file(path) as file:
            return bytes(file.read())

    def write(self, name: str, parts: Sequence[Bytes]) -> None:
        """Create a file. If the filesystem leaves it incomplete, its checksum reveals that to the reader."""
        path = self._path(name)
        with (
            unavailable_on_error(f"cannot write {path}"),
            self._fs.open_output_stream(path, compression=None) as file,
        ):
            for part in parts:
                file.write(part)

    def remove(self, name: str) -> None:
        """Remove a file if it exists."""
        path = self._path(name)
        with unavailable_on_error(f"cannot remove {path}"), suppress(FileNotFoundError):
            self._fs.delete_file(path)

    def truncate(self, name: str, size: int) -> None:
        """Keep the first `size` bytes of a file; remove it if that is 0."""
        if size == 0:
            self.remove(name)
        else:
            self.write(name, [self.read(name)[:size]])

    def create_segment(self, name: str, head: bytes) -> ArrowSegment:
        """Create a segment of the log; its file is written with its frame."""
        return ArrowSegment(self, name, head)

    def close(self) -> None:
        """Do nothing: no file and no lock is held."""

    def _path(self, name: str) -> str:
        return f"{self.location}/{name}"


class ArrowSegment:
    """A segment of one frame."""

    def __init__(self, files: ArrowFiles, name: str, head: bytes) -> None:
        self._files, self._name, self._head = files, name, head
        self.end = self.forced = len(head)

    def append(self, frame: Sequence[bytes]) -> None:
        """Write the file."""
        self._files.write(self._name, [self._head, *frame])
        self.end += sum(map(len, frame))

    def begin_append(self, frame: Sequence[bytes]) -> None:
        """Write the file."""
        self.append(frame)

    def begin_flush(self) -> None:
        """Do nothing: closing the file forced it to disk, if the filesystem does that."""

    def wait_flush(self) -> None:
        """Count the frame as forced."""
        self.forced = self.end

    def close(self) -> None:
        """Do nothing: no file is held."""
