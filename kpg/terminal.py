"""Shared parts of the commands: checked numeric arguments, and a progress bar for long work."""

from __future__ import annotations

import argparse
import time
from typing import Any

UNITS = ["K", "M", "G", "T"]  # powers of 1024
MAX_PORT = 65_535
REFRESHES_PER_SECOND = 4  # of a progress bar, each of about a millisecond
BAR_DELAY_SECONDS = 0.5  # shorter work shows no bar, which would only flicker


def positive(text: str) -> int:
    """Parse an integer of at least 1."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return value


def port(text: str) -> int:
    """Parse a port of TCP; 0 is any free one."""
    value = int(text)
    if not 0 <= value <= MAX_PORT:
        raise argparse.ArgumentTypeError(f"must be between 0 and {MAX_PORT}")
    return value


def memory_size(text: str) -> int:
    """Parse a number of bytes, with K, M, G or T for powers of 1024; 0 for the word none."""
    if text.lower() == "none":
        return 0
    try:
        return byte_count(text)
    except argparse.ArgumentTypeError as error:
        raise argparse.ArgumentTypeError(f"{error}, or none") from None


def byte_count(text: str) -> int:
    """Parse a number of bytes, with K, M, G or T for powers of 1024."""
    number, power = (text[:-1], UNITS.index(text[-1].upper()) + 1) if text[-1:].upper() in UNITS else (text, 0)
    try:
        size = int(float(number) * 1024**power) if power else int(number)
    except (ValueError, OverflowError):
        size = 0
    if size < 1:
        raise argparse.ArgumentTypeError("must be a number of bytes, for example 2G")
    return size


def positive_number(text: str) -> float:
    """Parse a number above 0."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError("must be a number above 0")
    return value


class ProgressBar:
    """A progress bar on stderr, shown once the work has taken a while."""

    def __init__(self, enabled: bool) -> None:
        self.enabled = enabled
        self.began = time.monotonic()
        self.progress: Any = None
        self.task: Any = None

    def show(self, what: str, done: int, of: int) -> None:
        """Show the progress of some work."""
        if not self.enabled or (self.progress is None and time.monotonic() - self.began < BAR_DELAY_SECONDS):
            return
        if self.progress is None:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

            columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
            self.progress = Progress(
                *columns, console=Console(stderr=True), transient=True, refresh_per_second=REFRESHES_PER_SECOND
            )
            self.progress.start()
            self.task = self.progress.add_task(what)
        self.progress.update(self.task, description=what, completed=done, total=of or None)

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(self, *error: object) -> None:
        if self.progress is not None:
            self.progress.stop()
