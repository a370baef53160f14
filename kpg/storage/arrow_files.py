"""The files of a directory of any filesystem of `pyarrow.fs`.

Each segment takes one frame, a write is as durable as the filesystem makes a closed file, and nothing keeps a second
process out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyarrow import fs

from kpg.storage.file_store import Bytes, removing, unavailable


class ArrowFiles:
    """A directory of any filesystem that Arrow knows."""

    grows = False

    def __init__(self, filesystem: Any, place: str) -> None:
        self.place = place.rstrip("/")
        self._fs = filesystem
        try:
            self._fs.create_dir(self.place, recursive=True)
        except OSError as error:
            raise unavailable(f"cannot open {self.place}", error) from None

    def names(self) -> list[str]:
        """All files."""
        found = self._fs.get_file_info(fs.FileSelector(self.place, allow_not_found=True))
        return sorted(info.base_name for info in found if info.type == fs.FileType.File)

    def read(self, name: str) -> bytes:
        """A whole file."""
        try:
            with self._fs.open_input_file(self._path(name)) as file:
                return bytes(file.read())
        except OSError as error:
            raise unavailable(f"cannot read {self._path(name)}", error) from None

    def write(self, name: str, parts: Sequence[Bytes]) -> None:
        """A new file: whole when it is closed, where the filesystem says so; a checksum finds it out if not."""
        try:
            with self._fs.open_output_stream(self._path(name), compression=None) as file:
                for part in parts:
                    file.write(part)
        except OSError as error:
            raise unavailable(f"cannot write {self._path(name)}", error) from None

    def remove(self, name: str) -> None:
        """Let go of a file; one that is not there is none the worse."""
        with removing(self._path(name)):
            self._fs.delete_file(self._path(name))

    def cut(self, name: str, size: int) -> None:
        """Keep the first bytes of a file."""
        if size == 0:
            self.remove(name)
        else:
            self.write(name, [self.read(name)[:size]])

    def segment(self, name: str, head: bytes) -> ArrowSegment:
        """A new segment of the log."""
        return ArrowSegment(self, name, head)

    def close(self) -> None:
        """Nothing is held."""

    def _path(self, name: str) -> str:
        return f"{self.place}/{name}"


class ArrowSegment:
    """A segment of one frame, written when that comes."""

    def __init__(self, files: ArrowFiles, name: str, head: bytes) -> None:
        self._files, self._name, self._head = files, name, head
        self.end = self.forced = len(head)

    def append(self, frame: Sequence[bytes]) -> None:
        """Write the file."""
        self._files.write(self._name, [self._head, *frame])
        self.end += sum(map(len, frame))

    def begin(self) -> None:
        """It was forced, as far as the filesystem does that, when it was closed."""

    def wait(self) -> None:
        """Likewise."""
        self.forced = self.end

    def close(self) -> None:
        """Nothing is held."""
