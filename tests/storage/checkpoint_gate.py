"""A gate before each change that a checkpoint makes to its directory: a test decides how far the checkpoint gets.

with Gate() as gate:
    db.advance()            # begins a checkpoint, which stops before its first file
    gate.let(2)             # two more changes: files that appear or disappear
    gate.open()             # the checkpoint ends
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from kpg.storage.local_files import LocalFiles

ALL = 1 << 30


class Gate:
    """Holds the threads of checkpoints before each change of a directory."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._allowed = 0
        self._held = 0
        self._real: dict[str, Callable[..., Any]] = {}

    def __enter__(self) -> Gate:
        for name in ("write", "remove"):
            self._real[name] = getattr(LocalFiles, name)
            setattr(LocalFiles, name, self._gated(self._real[name]))
        return self

    def __exit__(self, *error: object) -> None:
        self.open()
        for name, real in self._real.items():
            setattr(LocalFiles, name, real)

    def _gated(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def change(files: LocalFiles, *arguments: Any) -> Any:
            if threading.current_thread().name == "kpg checkpoint":
                self._pass()
            return real(files, *arguments)

        return change

    def _pass(self) -> None:
        with self._condition:
            self._held += 1
            self._condition.notify_all()
            self._condition.wait_for(lambda: self._allowed > 0)
            self._allowed -= 1
            self._held -= 1

    def let(self, changes: int) -> None:
        """Allow some changes, and wait until they are made: until no checkpoint runs on, or one is held again."""
        with self._condition:
            self._allowed = changes
            self._condition.notify_all()
        self.settle()

    def settle(self) -> None:
        """Wait until each checkpoint is held before a change or has ended; a copy is then what a crash would leave."""
        with self._condition:
            while any(thread.name == "kpg checkpoint" for thread in threading.enumerate()):
                if self._held and not self._allowed:
                    return
                self._condition.wait(0.002)

    def open(self) -> None:
        """Allow all changes from now on."""
        with self._condition:
            self._allowed = ALL
            self._condition.notify_all()

    def shut(self) -> None:
        """Allow no change from now on."""
        with self._condition:
            self._allowed = 0

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Allow all changes in this block."""
        self.open()
        try:
            yield
        finally:
            self.settle()
            self.shut()
