"""The files of a directory: written whole and never changed, except for the segment of the log that is written to.

    write(name, parts)     after it the file is there whole, also after a power cut; until then it is not there at all
    segment(name, head)    a file that grows by frames, each forced to disk when asked

`LocalFiles` forces data and directory to disk, and is owned by one process at a time. `ArrowFiles` is any filesystem of
`pyarrow.fs`: each segment takes one frame, a write is as durable as the filesystem makes a closed file, and nothing
keeps a second process out.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from typing import Any, Protocol

from pyarrow import fs

from kpg.errors import Unavailable
from kpg.storage.flush import Flush, flusher
from kpg.storage.lock import Lock

Bytes = bytes | memoryview
PARTIAL = ".partial"
ROOM_BYTES = 1 << 20  # zeros are written ahead by so much, so that a small frame changes nothing but its own bytes


class Segment(Protocol):
    """A file that grows by frames."""

    end: int
    forced: int

    def append(self, frame: Sequence[bytes]) -> None: ...

    def begin(self) -> None: ...

    def wait(self) -> None: ...

    def close(self) -> None: ...


class Files(Protocol):
    """The files of one directory, by name."""

    place: str
    grows: bool  # whether a segment can take a second frame

    def names(self) -> list[str]: ...

    def read(self, name: str) -> bytes: ...

    def write(self, name: str, parts: Sequence[Bytes]) -> None: ...

    def remove(self, name: str) -> None: ...

    def cut(self, name: str, size: int) -> None: ...

    def segment(self, name: str, head: bytes) -> Segment: ...

    def close(self) -> None: ...


def unavailable(what: str, error: OSError) -> Unavailable:
    """The error for something that the system refused."""
    full = error.errno in (28, 122, 27)  # no space, over quota, file too large
    hint = "Free some space and try again; what was acknowledged is safe." if full else None
    return Unavailable(what, detail=f"{error.strerror or error}.", hint=hint)


class LocalFiles:
    """A directory of this machine, locked."""

    grows = True

    def __init__(self, place: str) -> None:
        self.place = os.path.abspath(place)
        try:
            os.makedirs(self.place, exist_ok=True)
            self._directory = os.open(self.place, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
        except OSError as error:
            raise unavailable(f"cannot open {self.place}", error) from None
        try:
            self._lock = Lock(self.place)
            os.fsync(self._directory)
        except BaseException:
            os.close(self._directory)
            raise

    def names(self) -> list[str]:
        """All files but the lock; what was left half written is removed."""
        found = os.listdir(self.place)
        for name in found:
            if name.endswith(PARTIAL):
                self.remove(name)
        return sorted(name for name in found if not name.endswith(PARTIAL) and name != Lock.NAME)

    def read(self, name: str) -> bytes:
        """A whole file."""
        try:
            with open(self._path(name), "rb") as file:
                return file.read()
        except OSError as error:
            raise unavailable(f"cannot read {self._path(name)}", error) from None

    def write(self, name: str, parts: Sequence[Bytes]) -> None:
        """A new file, whole: forced under another name, then renamed, then the directory forced."""
        partial = self._path(name + PARTIAL)
        try:
            with open(partial, "wb") as file:
                for part in parts:
                    file.write(part)
                file.flush()
                os.fsync(file.fileno())
            os.rename(partial, self._path(name))
            os.fsync(self._directory)
        except OSError as error:
            self.remove(name + PARTIAL)
            raise unavailable(f"cannot write {self._path(name)}", error) from None

    def remove(self, name: str) -> None:
        """Let go of a file; one that is not there is none the worse."""
        try:
            os.unlink(self._path(name))
        except FileNotFoundError:
            pass
        except OSError as error:
            raise unavailable(f"cannot remove {self._path(name)}", error) from None

    def cut(self, name: str, size: int) -> None:
        """Keep the first bytes of a file."""
        if size == 0:
            self.remove(name)
            os.fsync(self._directory)
            return
        try:
            with open(self._path(name), "r+b") as file:
                file.truncate(size)
                os.fsync(file.fileno())
        except OSError as error:
            raise unavailable(f"cannot cut {self._path(name)}", error) from None

    def segment(self, name: str, head: bytes) -> LocalSegment:
        """A new segment of the log."""
        try:
            made = LocalSegment(self._path(name), head)
            os.fsync(self._directory)
        except OSError as error:
            self.remove(name)
            raise unavailable(f"cannot write {self._path(name)}", error) from None
        return made

    def close(self) -> None:
        """Give up the directory."""
        os.close(self._directory)
        self._lock.release()

    def _path(self, name: str) -> str:
        return os.path.join(self.place, name)


class LocalSegment:
    """A local file that grows by frames.

    Small frames are written over zeros that are on disk already: forcing them then does not concern the file's length,
    and a full disk is met before a frame is begun. An append that fails leaves the segment as it was; if even that
    fails, or forcing does, `broken` is set and nothing more is taken.
    """

    def __init__(self, path: str, head: bytes) -> None:
        self._path = path
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | getattr(os, "O_CLOEXEC", 0), 0o644)
        self._flush: Flush = flusher()
        self.broken = False
        self.end = self._room = 0  # bytes used, and bytes there
        try:
            self._put(head + bytes(ROOM_BYTES - len(head)), 0)
            os.fsync(self._fd)
        except OSError:
            os.close(self._fd)
            raise
        self._room = ROOM_BYTES
        self.end = self.forced = len(head)

    def append(self, frame: Sequence[bytes]) -> None:
        """Write a frame, given in parts; it is not on disk yet."""
        if self.broken:
            raise Unavailable(f"{self._path} takes no more", hint="Close the db and open it again.")
        size = sum(map(len, frame))
        at = self.end
        try:
            self._make_room(size)
            for part in [b"".join(frame)] if size < ROOM_BYTES else frame:
                self._put(part, at)
                at += len(part)
        except OSError as error:
            self._undo()
            raise unavailable(f"cannot write {self._path}", error) from None
        self.end = at
        self._room = max(self._room, self.end)

    def _make_room(self, size: int) -> None:
        if size < ROOM_BYTES and self.end + size > self._room:
            self._put(bytes(ROOM_BYTES), self._room)
            os.fsync(self._fd)
            self._room += ROOM_BYTES

    def _put(self, data: bytes, at: int) -> None:
        view = memoryview(data)
        while view:
            written = os.pwrite(self._fd, view, at)
            view, at = view[written:], at + written

    def _undo(self) -> None:
        try:
            os.ftruncate(self._fd, self.end)
            os.fsync(self._fd)
            self._room = self.end
        except OSError:
            self.broken = True

    def begin(self) -> None:
        """Have what was appended forced to disk, without waiting."""
        try:
            self._flush.begin(self._fd)
        except OSError as error:
            self._fail(error)

    def wait(self) -> None:
        """Wait until what was appended before `begin` is on disk."""
        try:
            self._flush.wait()
        except OSError as error:
            self._fail(error)
        self.forced = self.end

    def _fail(self, error: OSError) -> None:
        self.broken = True  # the system may have dropped what it could not write: trying again would prove nothing
        raise unavailable(f"cannot force {self._path} to disk", error) from None

    def close(self) -> None:
        """Let go of the file."""
        if self._fd >= 0:
            with contextlib.suppress(OSError):
                self._flush.wait()
            os.close(self._fd)
            self._fd = -1


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
        try:
            self._fs.delete_file(self._path(name))
        except FileNotFoundError:
            pass
        except OSError as error:
            raise unavailable(f"cannot remove {self._path(name)}", error) from None

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


def open_files(place: str | os.PathLike[str], filesystem: Any = None) -> Files:
    """The files of a directory: a path of this machine, a URI that Arrow knows, or a path of the given filesystem."""
    where = os.fspath(place)
    if filesystem is not None:
        return ArrowFiles(filesystem, where)
    if "://" in where:
        try:
            filesystem, where = fs.FileSystem.from_uri(where)
        except (OSError, ValueError) as error:
            raise Unavailable(f"cannot open {os.fspath(place)}", detail=str(error)) from None
        return LocalFiles(where) if isinstance(filesystem, fs.LocalFileSystem) else ArrowFiles(filesystem, where)
    return LocalFiles(where)
