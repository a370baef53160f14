"""What the commands have in common: numbers that are checked as they are read, and a bar for what takes long."""

from __future__ import annotations

import argparse
import time
from typing import Any

SLOW_SECONDS = 0.5  # what takes less needs no bar


def positive(text: str) -> int:
    """A whole number from 1."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return value


def positive_number(text: str) -> float:
    """A number above 0."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError("must be a number, and must be above 0")
    return value


class ProgressBar:
    """A progress bar on stderr, for what takes long."""

    def __init__(self, enabled: bool) -> None:
        self.enabled = enabled
        self.began = time.monotonic()
        self.progress: Any = None
        self.task: Any = None

    def show(self, what: str, done: int, of: int) -> None:
        """Say how far something is."""
        if not self.enabled or (self.progress is None and time.monotonic() - self.began < SLOW_SECONDS):
            return
        if self.progress is None:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

            columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
            self.progress = Progress(*columns, console=Console(stderr=True), transient=True)
            self.progress.start()
            self.task = self.progress.add_task(what)
        self.progress.update(self.task, description=what, completed=done, total=of or None)

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(self, *error: object) -> None:
        if self.progress is not None:
            self.progress.stop()
