"""The lock of a directory: at most one process, and at most one db in it, holds a directory.

The operating system keeps the lock (`lockf`), so it ends when the process that holds it ends, even by a crash. A forked
child does not inherit it. The lock file contains the id of the process that holds it.
"""

from __future__ import annotations

import errno
import os
import socket
from typing import ClassVar

from kpg.errors import InUse, Unavailable

try:
    import fcntl
except ImportError:  # pragma: no cover - not on this system
    fcntl = None  # type: ignore[assignment]


class Lock:
    """Holds a directory until released."""

    NAME: ClassVar[str] = "LOCK"
    _held: ClassVar[set[tuple[int, int]]] = set()  # by this process: the system would grant it the same lock twice

    def __init__(self, directory: str) -> None:
        path = os.path.join(directory, Lock.NAME)
        if os.path.exists(path) and _identity(os.stat(path)) in Lock._held:
            # Do not even open the file: closing any descriptor of it would free the lock.
            raise InUse(f"{directory} is open in this process already", hint="Close that db first.")
        self._fd = _open(path)
        self._file = _identity(os.fstat(self._fd))
        try:
            if fcntl is not None:
                fcntl.lockf(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            owner = os.pread(self._fd, 200, 0).decode(errors="replace").strip()
            os.close(self._fd)
            if error.errno not in (errno.EAGAIN, errno.EACCES):
                hint = "The filesystem may not support locks: use one that does."
                raise Unavailable(f"cannot lock {directory}", detail=f"{error.strerror}.", hint=hint) from None
            raise InUse(
                f"{directory} is open in another process",
                detail=f"Its owner is {owner or 'not known yet'}.",
                hint="Close the db there, or end that process; then its lock is free.",
            ) from None
        Lock._held.add(self._file)
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, f"process {os.getpid()} on {socket.gethostname()}\n".encode(), 0)

    def release(self) -> None:
        """Release the directory."""
        Lock._held.discard(self._file)
        os.close(self._fd)


def _open(path: str) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
    except PermissionError as error:
        raise Unavailable(
            f"this user may not open {os.path.dirname(path)}",
            detail=f"{path}: {error.strerror}.",
            hint="Open it as the user that created it, or let this user read and write the directory and its files.",
        ) from None


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino
