"""Following an answer on the terminal: its rows, what the last step changed, and the time, until Ctrl-C.

In a pipe each step is lines of `+` or `-`, the time, and the row, separated by tabs.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from kpg.client.change_feed import Row, Step
from kpg.client.connection import Subscription
from kpg.errors import TimeNotReached
from kpg.shell.result_format import escaped, framed, plain

POLL_SECONDS = 0.2
LINES_AROUND = 8  # that are not rows: frame, header, notes


class Picture:
    """What is on the screen."""

    def __init__(self, names: tuple[str, ...], name: str) -> None:
        self.names = names
        self.name = name
        self.counts: dict[Row, int] = {}
        self.steps = 0
        self.last: Step | None = None

    def add(self, step: Step) -> None:
        """One more step."""
        self.steps += 1
        self.last = step
        for row, _, diff in step:
            self.counts[row] = self.counts.get(row, 0) + diff
            if not self.counts[row]:
                del self.counts[row]

    def draw(self, height: int) -> Group:
        """The rows that fit, those that the last step brought marked, and a line about the rest."""
        fresh = {row for row, _, diff in self.last or () if diff > 0}
        room = max(1, height - LINES_AROUND)
        rows = sorted(self.counts, key=lambda row: (row not in fresh, tuple(map(str, row))))[:room]
        shown = [("+" if row in fresh else "", *row) for row in rows]
        return Group(framed(("", *self.names), shown, self.name), Text(self.status(), style="dim"))

    def status(self) -> str:
        """Rows, changes and time, in words."""
        if self.last is None:
            return "waiting for the first answer; Ctrl-C ends"
        if self.last.failed is not None:
            return f"no answer at time {self.last.upto - 1}: {self.last.failed.what}"
        came = sum(diff for _, _, diff in self.last if diff > 0)
        went = -sum(diff for _, _, diff in self.last if diff < 0)
        total = sum(self.counts.values())
        return f"{total:,} rows · last step +{came:,} −{went:,} · complete to time {self.last.upto - 1} · Ctrl-C ends"


def watch(console: Console, follows: Subscription, title: str, most: int | None) -> None:
    """Show an answer as it changes; end after so many steps, if said."""
    picture = Picture(follows.columns, title)
    if not console.is_terminal:
        for _ in range(most or 1):
            show_lines(console, follows.next())
        return
    with heeding() as interrupted, Live(picture.draw(console.height), console=console, refresh_per_second=8) as live:
        while not interrupted.is_set() and (most is None or picture.steps < most):
            advance(picture, follows)
            live.update(picture.draw(console.height))


@contextmanager
def heeding() -> Iterator[threading.Event]:
    """Note Ctrl-C rather than be stopped by it: an exception may come in the middle of a message, or be lost where
    Python ignores exceptions. Only the main thread is told of it."""
    interrupted = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield interrupted
        return
    before = signal.signal(signal.SIGINT, lambda *_: interrupted.set())
    try:
        yield interrupted
    finally:
        signal.signal(signal.SIGINT, before)


def advance(picture: Picture, follows: Subscription) -> None:
    """Wait a little for the next step, so that Ctrl-C is heeded soon."""
    try:
        picture.add(follows.next(POLL_SECONDS))
    except TimeNotReached:
        return


def show_lines(console: Console, step: Step) -> None:
    """A step as lines."""
    for row, time, diff in step:
        plain(console, "\t".join([f"{diff:+d}", str(time), *map(escaped, row)]))
