"""Follow an answer on the terminal until Ctrl-C: its rows, the changes of the last step, and the time.

In a pipe, each change is a line of its diff, its time and its row, separated by tabs.
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
from kpg.shell.result_format import escape_cell, framed_table, print_line

POLL_SECONDS = 0.2  # between checks for Ctrl-C
FRAME_LINES = 8  # lines of the screen that are not rows: frame, header, status


class LiveTable:
    """The current rows of an answer, as shown on the screen."""

    def __init__(self, names: tuple[str, ...], name: str) -> None:
        self.names = names
        self.name = name
        self.counts: dict[Row, int] = {}
        self.steps = 0
        self.last: Step | None = None

    def add(self, step: Step) -> None:
        """Apply a step."""
        self.steps += 1
        self.last = step
        for row, _, diff in step:
            self.counts[row] = self.counts.get(row, 0) + diff
            if not self.counts[row]:
                del self.counts[row]

    def draw(self, height: int) -> Group:
        """Render the rows that fit, those inserted by the last step first and marked, and a status line."""
        inserted = {row for row, _, diff in self.last or () if diff > 0}
        max_rows = max(1, height - FRAME_LINES)
        rows = sorted(self.counts, key=lambda row: (row not in inserted, tuple(map(str, row))))[:max_rows]
        marked = [("+" if row in inserted else "", *row) for row in rows]
        return Group(framed_table(("", *self.names), marked, self.name), Text(self.status(), style="dim"))

    def status(self) -> str:
        """Return the status line: row count, changes of the last step, and time."""
        if self.last is None:
            return "waiting for the first answer; Ctrl-C ends"
        if self.last.failed is not None:
            return f"no answer at time {self.last.upto - 1}: {self.last.failed.what}"
        insertions = sum(diff for _, _, diff in self.last if diff > 0)
        removals = -sum(diff for _, _, diff in self.last if diff < 0)
        total = sum(self.counts.values())
        changes = f"last step +{insertions:,} −{removals:,}"
        return f"{total:,} rows · {changes} · complete to time {self.last.upto - 1} · Ctrl-C ends"


def watch(console: Console, subscription: Subscription, title: str, max_steps: int | None) -> None:
    """Show an answer as it changes, until Ctrl-C or for `max_steps` steps; in a pipe one step by default."""
    table = LiveTable(subscription.columns, title)
    if not console.is_terminal:
        for _ in range(max_steps or 1):
            print_step(console, subscription.next())
        return
    with (
        catch_interrupt() as interrupted,
        Live(table.draw(console.height), console=console, refresh_per_second=8) as live,
    ):
        while not interrupted.is_set() and (max_steps is None or table.steps < max_steps):
            wait_for_step(table, subscription)
            live.update(table.draw(console.height))


@contextmanager
def catch_interrupt() -> Iterator[threading.Event]:
    """Set an event on Ctrl-C instead of raising KeyboardInterrupt.

    An exception could interrupt the reading of a message, or be lost where Python ignores exceptions. Only the main
    thread can handle signals; on another thread the event is never set.
    """
    interrupted = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield interrupted
        return
    before = signal.signal(signal.SIGINT, lambda *_: interrupted.set())
    try:
        yield interrupted
    finally:
        signal.signal(signal.SIGINT, before)


def wait_for_step(table: LiveTable, subscription: Subscription) -> None:
    """Apply the next step, or return after POLL_SECONDS, so that Ctrl-C takes effect soon."""
    try:
        table.add(subscription.next(POLL_SECONDS))
    except TimeNotReached:
        return


def print_step(console: Console, step: Step) -> None:
    """Print a step, one line per change."""
    for row, time, diff in step:
        print_line(console, "\t".join([f"{diff:+d}", str(time), *map(escape_cell, row)]))
