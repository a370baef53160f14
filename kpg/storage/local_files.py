"""The files of a directory of this machine: forced to disk, data and directory, and owned by one process at a time."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence

from kpg.errors import Unavailable
from kpg.storage.file_store import Bytes, removing, unavailable
from kpg.storage.flush import Flush, flusher
from kpg.storage.lock import Lock

PARTIAL = ".partial"
ROOM_BYTES = 1 << 20  # zeros are written ahead by so much, so that a small frame changes nothing but its own bytes


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
        with removing(self._path(name)):
            os.unlink(self._path(name))

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
