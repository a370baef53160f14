"""The display of the pipeline: the present wait, a live table on a terminal or lines elsewhere, and a summary."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

import numpy as np
from demo_screen import arrangements, queries, sparkline, verdict
from rich.box import SIMPLE_HEAD
from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text
from standing import Progress


@dataclass
class State(Progress):
    """The figures on the screen."""

    commit_ms: list[float] = field(default_factory=list)  # from Spark's commit to all answers up to date
    whole_ms: list[float] = field(default_factory=list)  # from the file to all answers up to date
    batches: int = 0
    _files: int = 0
    _seen: int = 0

    def follow(self, db: Any, written: list[tuple[int, float]]) -> None:
        """Add the batches that were published since the last call."""
        self.epoch = db.epoch
        for each in list(db.service.published)[self._seen :]:
            self._seen += 1
            if each.rows and each.query is not None:
                self.changes += each.rows
                self.batches += 1
                self.commit_ms.append(1000 * each.seconds)
                while self._files < len(written) and written[self._files][0] <= self.changes:
                    if self.batches > 1:  # files waited for the first one while Spark loaded its classes
                        self.whole_ms.append(1000 * (each.at - written[self._files][1]))
                    self._files += 1


class Screen:
    """A table that is redrawn a few times a second, or lines."""

    def __init__(self, plain: bool) -> None:
        self.plain = plain
        self.console = Console(width=110) if plain else Console()
        self.live = Live(console=self.console, auto_refresh=False)
        self.said: list[str] = []
        self._last = 0.0

    def __enter__(self) -> Screen:
        if not self.plain:
            self.live.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if not self.plain:
            self.live.__exit__(kind, error, at)

    @contextmanager
    def waiting(self, what: str) -> Iterator[None]:
        """Show what the demo waits for, and then the time it took."""
        began = time.monotonic()
        if self.plain:
            print(f"  {what} ...", flush=True)
            yield
        elif self.live.is_started:
            self.live.update(Text(f"  {what} ..."), refresh=True)
            yield
        else:
            with self.console.status(f"{what} ..."):
                yield
        self.say(f"{what}: {time.monotonic() - began:.1f} s")

    def say(self, text: str) -> None:
        """Show an event."""
        self.said.append(text)
        if self.plain:
            print(f"  {text}", flush=True)

    def update(self, db: Any, state: State) -> None:
        """Show the progress, now and then."""
        if time.monotonic() - self._last < (2.0 if self.plain else 0.5):
            return
        self._last = time.monotonic()
        if self.plain:
            print(f"  {state.elapsed:5.1f} s  {headline(state)} · {pace(state)}", flush=True)
        else:
            self.live.update(self._draw(db, state, None), refresh=True)

    def _draw(self, db: Any, state: State, right: dict[str, bool] | None) -> Panel:
        said = Text("\n".join(f"  {text}" for text in self.said[-5:]), style="dim")
        spark = Text("  " + sparkline(state.commit_ms[-70:]), style="green")
        numbers = Text(f"  {headline(state)}\n  {pace(state)}", style="bold")
        shown = Group(numbers, spark, queries(state, right), arrangements(of_all_workers(db)), said)
        took = f"{state.elapsed:.0f} of {state.seconds:.0f} s"
        title = f"kpg on Spark · files → Structured Streaming → standing queries · {took}"
        return Panel(shown, title=title, border_style="blue", padding=(0, 1))

    def finish(self, db: Any, state: State, right: dict[str, bool]) -> None:
        """Leave the last drawing, and print the result."""
        if not self.plain:
            self.live.update(self._draw(db, state, right), refresh=True)
            self.live.stop()
        else:
            self.console.print(queries(state, right))
            self.console.print(arrangements(of_all_workers(db)))
        self.console.print(summary(state))
        self.console.print(Text(verdict(right), style="bold green" if all(right.values()) else "bold red"))


def headline(state: State) -> str:
    """Show how many rows were processed."""
    changes = f"{state.changes:,} changes in {state.batches:,} micro-batches"
    return f"epoch {state.epoch:,} · {state.rows:,} follows · {changes}"


def pace(state: State) -> str:
    """Show the latency of an update."""
    if not state.commit_ms:
        return ""
    middle, worst = np.percentile(state.commit_ms[-200:], [50, 99])
    return f"{len(state.queries)} answers up to date {middle:.1f} ms (p50), {worst:.1f} ms (p99) after Spark commits"


def of_all_workers(db: Any) -> list[dict[str, Any]]:
    """Show the indexes of all workers, the shards of each added up."""
    every: dict[str, dict[str, Any]] = {}
    for worker in db.describe()["workers"]:
        for each in worker["arrangements"]:
            found = every.setdefault(each["name"], {**each, "rows": 0, "bytes": 0})
            found["rows"] += each["rows"]
            found["bytes"] += each["bytes"]
    return list(every.values())


def summary(state: State) -> Table:
    """Show the latency of an update, and its parts."""
    table = Table(title="update latency", box=SIMPLE_HEAD, title_justify="left")
    for name in ("from", "to", "count", "p50 ms", "p99 ms"):
        table.add_column(name, justify="left" if name in ("from", "to") else "right")
    for start, took in (("Spark's commit", state.commit_ms), ("file written", state.whole_ms)):
        if took:
            middle, worst = np.percentile(took, [50, 99])
            table.add_row(start, "all answers up to date", f"{len(took):,}", f"{middle:,.1f}", f"{worst:,.1f}")
    return table
