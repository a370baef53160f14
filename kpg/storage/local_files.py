"""The files of a directory on this machine. File data and directory entries are forced to disk; one process owns it.

A new directory and all files are private: only the user that creates them can read them, under any umask.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from time import perf_counter

from kpg.errors import Unavailable
from kpg.storage.direct_blocks import MAX_DATA_BYTES, DirectBlocks, block_end
from kpg.storage.file_store import Bytes, unavailable_on_error
from kpg.storage.flush import force, start_writing
from kpg.storage.forcing_choice import ForcingChoice
from kpg.storage.kernel_write import open_kernel_write
from kpg.storage.lock import Lock

CLUSTER_NOTE = "cluster.json"  # the file that marks the directory of several workers; a name on disk
PARTIAL_SUFFIX = ".partial"  # suffix of a file that is not complete yet
PRIVATE_DIRECTORY, PRIVATE_FILE = 0o700, 0o600  # modes of what is created here
PIECE_BYTES = 4 << 20  # of a large file that are forced to disk together: some milliseconds of writing
RESERVED_BYTES = 1 << 20  # zeros written ahead of the log, so that a small frame changes only its own bytes


class LocalFiles:
    """A locked directory on this machine."""

    can_append = True

    def __init__(self, path: str) -> None:
        self.location = make_private_directory(path)
        with unavailable_on_error(f"cannot open {self.location}"):
            self._directory = os.open(self.location, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
        try:
            with unavailable_on_error(f"cannot open {self.location}"):
                self._lock = Lock(self.location)
        except BaseException:
            os.close(self._directory)
            raise
        try:
            with unavailable_on_error(f"cannot open {self.location}"):
                self._remove_partial_files()
                os.fsync(self._directory)
        except BaseException:
            self.close()
            raise

    def _remove_partial_files(self) -> None:
        """Remove the files that a crash left incomplete."""
        for name in os.listdir(self.location):
            if name.endswith(PARTIAL_SUFFIX):
                self.remove(name)

    def names(self) -> list[str]:
        """Return the names of all files but the lock, sorted."""
        with unavailable_on_error(f"cannot list {self.location}"):
            names = os.listdir(self.location)
        return sorted(name for name in names if not name.endswith(PARTIAL_SUFFIX) and name != Lock.NAME)

    def read(self, name: str) -> bytes:
        """Return the content of a file."""
        path = self._path(name)
        with unavailable_on_error(f"cannot read {path}"), open(path, "rb") as file:
            return file.read()

    def write(self, name: str, parts: Sequence[Bytes]) -> None:
        """Create a file, whole: force it under another name, rename it, then force the directory."""
        path, partial = self._path(name), self._path(name + PARTIAL_SUFFIX)
        with unavailable_on_error(f"cannot write {path}", undo=lambda: self.remove(name + PARTIAL_SUFFIX)):
            with open(partial, "wb", buffering=0, opener=open_private) as file:
                for part in parts:
                    write_in_pieces(file.fileno(), part)
                os.fsync(file.fileno())
            os.rename(partial, path)
            os.fsync(self._directory)

    def remove(self, name: str) -> None:
        """Remove a file if it exists."""
        path = self._path(name)
        with unavailable_on_error(f"cannot remove {path}"), suppress(FileNotFoundError):
            os.unlink(path)

    def truncate(self, name: str, size: int) -> None:
        """Keep the first `size` bytes of a file; remove it if that is 0."""
        path = self._path(name)
        if size == 0:
            self.remove(name)
            with unavailable_on_error(f"cannot remove {path}"):
                os.fsync(self._directory)
            return
        with unavailable_on_error(f"cannot truncate {path}"), open(path, "r+b") as file:
            file.truncate(size)
            os.fsync(file.fileno())

    def create_segment(self, name: str, head: bytes) -> LocalSegment:
        """Create a segment of the log. One of the same name, which then has no frames, is replaced, not emptied."""
        path, partial = self._path(name), self._path(name + PARTIAL_SUFFIX)
        with unavailable_on_error(f"cannot write {path}", undo=lambda: self.remove(name + PARTIAL_SUFFIX)):
            segment = LocalSegment(partial, head)
            try:
                os.rename(partial, path)
                os.fsync(self._directory)
            except BaseException:
                segment.close()
                raise
        segment.path = path
        return segment

    def close(self) -> None:
        """Release the directory, so that another process can open it."""
        os.close(self._directory)
        self._lock.release()

    def _path(self, name: str) -> str:
        return os.path.join(self.location, name)


def write_in_pieces(fd: int, part: Bytes) -> None:
    """Append to a file, and force large parts piece by piece: the log on the same disk waits for at most one."""
    view = memoryview(part)
    for start in range(0, len(view), PIECE_BYTES):
        piece = view[start : start + PIECE_BYTES]
        while piece:
            piece = piece[os.write(fd, piece) :]
        if len(view) > PIECE_BYTES:
            force(fd)


def make_private_directory(path: str) -> str:
    """Create a directory that only its user can read, unless it exists; return its absolute path."""
    if "\0" in path:
        raise Unavailable(f"cannot open {path!r}", detail="A path cannot contain the character NUL.")
    location = os.path.abspath(path)
    with unavailable_on_error(f"cannot open {location}"):
        if not os.path.isdir(location):
            os.makedirs(os.path.dirname(location), exist_ok=True)
            with suppress(FileExistsError):  # another process was faster; a file of that name is noticed later
                os.mkdir(location, PRIVATE_DIRECTORY)
    return location


def open_private(path: str, flags: int) -> int:
    """Open a file; if that creates it, only its user can read it. For `open(opener=…)`."""
    return os.open(path, flags | getattr(os, "O_CLOEXEC", 0), PRIVATE_FILE)


class LocalSegment:
    """A local file that grows by frames.

    A small frame overwrites zeros that are on disk already. Forcing it then does not change the file's length, and an
    append detects a full disk before it writes any byte of a frame. An append that fails restores the segment. If that
    fails too, or if forcing fails, the segment sets `broken` and refuses further frames. Where the system can, a small
    frame that is forced at once is written past the page cache (kpg.storage.direct_blocks), and the kernel forces it
    unless that takes long (kpg.storage.forcing_choice).
    """

    def __init__(self, path: str, head: bytes) -> None:
        self.path = path
        self._fd = open_private(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        self._must_force = False  # whether `wait_flush` forces the file
        self._kernel_forces = False  # whether the kernel forces the frame that it waits for
        self._choice = ForcingChoice()
        self.broken = False
        self.end = self._reserved = 0  # bytes used, and bytes the file has
        try:
            self._write_at(head + bytes(RESERVED_BYTES - len(head)), 0)
            os.fsync(self._fd)
        except OSError:
            os.close(self._fd)
            raise
        self._reserved = RESERVED_BYTES
        self.end = self.forced = len(head)
        self._blocks = self._open_blocks()

    def _open_blocks(self) -> DirectBlocks | None:
        write = open_kernel_write()
        if write is None:
            return None
        try:
            return DirectBlocks(self.path, write)
        except OSError:  # the filesystem has no such writes
            return None

    def append(self, frame: Sequence[bytes]) -> None:
        """Write a frame, given in parts; it is not on disk yet."""
        self._require_intact()
        size = sum(map(len, frame))
        offset = self.end
        with unavailable_on_error(f"cannot write {self.path}", undo=self._undo_append):
            self._reserve(size)
            for part in [b"".join(frame)] if size < RESERVED_BYTES else frame:
                self._write_at(part, offset)
                offset += len(part)
        self.end = offset
        self._reserved = max(self._reserved, self.end)

    def begin_append(self, frame: Sequence[bytes]) -> None:
        """Write a frame and start to force it to disk, without waiting."""
        size = sum(map(len, frame))
        if self._blocks is None or size > MAX_DATA_BYTES:
            self.append(frame)
            self.begin_flush()
            return
        self._require_intact()
        with unavailable_on_error(f"cannot write {self.path}", undo=self._undo_append):
            self._reserve(size)
            by_kernel = self._choice.by_kernel
            self._blocks.begin(b"".join(frame), self.end, by_kernel)
        self.end += size
        if by_kernel:
            self._kernel_forces = True
        else:
            self._must_force = True

    def _require_intact(self) -> None:
        if self.broken:
            raise Unavailable(
                f"cannot write {self.path} after an earlier failure", hint="Close the db and open it again."
            )

    def _reserve(self, size: int) -> None:
        if size < RESERVED_BYTES and block_end(self.end + size) > self._reserved:
            self._write_at(bytes(RESERVED_BYTES), self._reserved)
            os.fsync(self._fd)
            self._reserved += RESERVED_BYTES

    def _write_at(self, data: bytes, offset: int) -> None:
        view = memoryview(data)
        while view:
            written = os.pwrite(self._fd, view, offset)
            view, offset = view[written:], offset + written

    def _undo_append(self) -> None:
        try:
            os.ftruncate(self._fd, self.end)
            os.fsync(self._fd)
            self._reserved = self.end
        except OSError:
            self.broken = True

    def begin_flush(self) -> None:
        """Start to force the appended frames to disk, without waiting."""
        with unavailable_on_error(f"cannot force {self.path} to disk", undo=self._mark_broken):
            start_writing(self._fd, self.forced, self.end - self.forced)
        self._must_force = True

    def wait_flush(self) -> None:
        """Wait until the frames appended before `begin_flush`, or by `begin_append`, are on disk."""
        with unavailable_on_error(f"cannot force {self.path} to disk", undo=self._mark_broken):
            self._wait_and_force()
        self.forced = self.end

    def _wait_and_force(self) -> None:
        if self._blocks is not None:
            began = perf_counter()
            self._blocks.wait()
            by_kernel, self._kernel_forces = self._kernel_forces, False
            if by_kernel:
                self._choice.note_wait(perf_counter() - began)
        must_force, self._must_force = self._must_force, False
        if must_force:
            force(self._fd)
            self._choice.note_forced_frame()

    def _mark_broken(self) -> None:
        """Refuse further frames: the system may have dropped unwritten bytes, and a retry would not show that."""
        self.broken = True

    def close(self) -> None:
        """Close the file."""
        if self._fd >= 0:
            with suppress(OSError):
                self._wait_and_force()
            if self._blocks is not None:
                self._blocks.close()
            os.close(self._fd)
            self._fd = -1
