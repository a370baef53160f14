"""The contract for the files of a directory: written whole and never changed, except the log segment being written.

    write(name, parts)            the whole file is on disk when it returns; a crash before that leaves no such file
    create_segment(name, head)    creates a file that grows by frames, each forced to disk on request

kpg.storage.local_files implements the contract on this machine, kpg.storage.arrow_files as far as a filesystem of Arrow
allows. `unavailable_on_error` turns errors of the operating system into Unavailable.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Final, Protocol

from kpg.errors import Unavailable

Bytes = bytes | memoryview

_DISK_FULL: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class Segment(Protocol):
    """A file that grows by frames."""

    end: int  # bytes written
    forced: int  # bytes known to be on disk

    def append(self, frame: Sequence[bytes]) -> None:
        """Write a frame, given in parts; it is not on disk yet."""
        ...

    def begin_append(self, frame: Sequence[bytes]) -> None:
        """Write a frame and start to force it to disk, without waiting."""
        ...

    def begin_flush(self) -> None:
        """Start to force the appended frames to disk, without waiting."""
        ...

    def wait_flush(self) -> None:
        """Wait until the frames appended before `begin_flush`, or by `begin_append`, are on disk."""
        ...

    def close(self) -> None:
        """Close the file."""
        ...


class Files(Protocol):
    """The files of one directory, by name."""

    location: str  # the directory, as messages show it
    can_append: bool  # whether a segment can take a second frame

    def names(self) -> list[str]:
        """Return the names of all files, sorted."""
        ...

    def read(self, name: str) -> bytes:
        """Return the content of a file."""
        ...

    def write(self, name: str, parts: Sequence[Bytes]) -> None:
        """Create a file, whole and on disk when this returns."""
        ...

    def remove(self, name: str) -> None:
        """Remove a file if it exists."""
        ...

    def truncate(self, name: str, size: int) -> None:
        """Keep the first `size` bytes of a file; remove it if that is 0."""
        ...

    def create_segment(self, name: str, head: bytes) -> Segment:
        """Create a segment of the log that begins with `head`."""
        ...

    def close(self) -> None:
        """Release the directory, so that another process can open it."""
        ...


class unavailable_on_error:  # noqa: N801 - used as a statement, like contextlib.suppress
    """Turn an OSError of the block into Unavailable with the message `what`, after calling `undo`.

    A class and not a generator, because every transaction enters it three times.
    """

    __slots__ = ("_undo", "_what")

    def __init__(self, what: str, undo: Callable[[], object] | None = None) -> None:
        self._what = what
        self._undo = undo

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not isinstance(error, OSError):
            return
        if self._undo is not None:
            self._undo()
        full = error.errno in _DISK_FULL
        hint = "Free some space and try again; acknowledged transactions are safe." if full else None
        raise Unavailable(self._what, detail=f"{error.strerror or error}.", hint=hint) from None
