"""The files of a directory: written whole and never changed, except for the segment of the log that is written to.

    write(name, parts)     after it the file is there whole, also after a power cut; until then it is not there at all
    segment(name, head)    a file that grows by frames, each forced to disk when asked

This is the contract; kpg.storage.local_files keeps it on this machine, kpg.storage.arrow_files as well as a filesystem
of Arrow does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

from kpg.errors import Unavailable

Bytes = bytes | memoryview


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


@contextmanager
def removing(path: str) -> Iterator[None]:
    """For letting go of a file: one that is not there is none the worse."""
    try:
        yield
    except FileNotFoundError:
        pass
    except OSError as error:
        raise unavailable(f"cannot remove {path}", error) from None
