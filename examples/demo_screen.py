"""The display of the demo: a live table on a terminal, lines elsewhere."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

SPARKS = "▁▂▃▄▅▆▇█"


class Lines:
    """A line for each event, and one for the progress each second or so."""

    def __init__(self) -> None:
        self._last = 0.0

    def __enter__(self) -> Lines:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Do nothing: there is no screen to restore."""

    def say(self, text: str) -> None:
        """Print an event."""
        print(f"  {text}", flush=True)

    def update(self, db: Any, state: Any) -> None:
        """Print the progress, now and then."""
        if time.monotonic() - self._last > 1:
            self._last = time.monotonic()
            print(f"  {state.elapsed:5.1f} s  {headline(state)} · {pace(state)}", flush=True)

    def finish(self, db: Any, state: Any, right: dict[str, bool]) -> None:
        """Print the result."""
        for table in (queries(state, right), arrangements(db.describe()["arrangements"]), phases(state)):
            Console(width=110).print(table)
        print(verdict(right), flush=True)


class Silence(Lines):
    """No display at all."""

    def say(self, text: str) -> None:
        """Print nothing."""

    def update(self, db: Any, state: Any) -> None:
        """Show nothing."""


class Screen:
    """A table that is redrawn a few times a second; `still` draws only the last, in colour even into a file."""

    def __init__(self, still: bool = False) -> None:
        self.console = Console(force_terminal=True, width=108) if still else Console()
        self.live = Live(console=Console(quiet=True) if still else self.console, auto_refresh=False)
        self.said: list[str] = []
        self.still = still
        self._last = 0.0

    def __enter__(self) -> Screen:
        self.live.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.live.__exit__(kind, error, at)

    def say(self, text: str) -> None:
        """Keep an event for the next drawing."""
        self.said.append(text)

    def update(self, db: Any, state: Any) -> None:
        """Redraw, if the last drawing is old enough."""
        if time.monotonic() - self._last > 0.2:
            self._last = time.monotonic()
            self.live.update(self._draw(db, state, None), refresh=True)

    def _draw(self, db: Any, state: Any, right: dict[str, bool] | None) -> Panel:
        said = Text("\n".join(f"  {text}" for text in self.said[-4:]), style="dim")
        spark = Text("  " + sparkline(state.recent()[-70:]), style="green")
        numbers = Text(f"  {headline(state)}\n  {pace(state)}", style="bold")
        shown = Group(numbers, spark, queries(state, right), arrangements(db.describe()["arrangements"]), said)
        title = f"kpg · a network that never stands still · {state.elapsed:.0f} of {state.seconds:.0f} s"
        return Panel(shown, title=title, border_style="blue", padding=(0, 1))

    def finish(self, db: Any, state: Any, right: dict[str, bool]) -> None:
        """Leave the last drawing, and print the result."""
        self.live.update(self._draw(db, state, right), refresh=True)
        self.live.stop()
        if self.still:
            self.console.print(self._draw(db, state, right))
        self.console.print(phases(state))
        self.console.print(Text(verdict(right), style="bold green" if all(right.values()) else "bold red"))


def headline(state: Any) -> str:
    """Show how many rows were processed."""
    return f"epoch {state.epoch:,} · {state.rows:,} follows · {state.changes:,} changes so far"


def pace(state: Any) -> str:
    """Show the latency of a transaction with the present queries."""
    recent = state.recent()
    if not recent:
        return ""
    middle, worst = np.percentile(recent, [50, 99])
    answers = "1 answer" if len(state.queries) == 1 else f"{len(state.queries)} answers"
    return f"{answers} up to date after {middle:.1f} ms (p50), {worst:.1f} ms (p99)"


def sparkline(values: list[float]) -> str:
    """Draw numbers as small bars; the largest few are clipped."""
    if not values:
        return ""
    top = float(np.percentile(values, 98)) or 1.0
    return "".join(SPARKS[min(7, int(7 * value / top))] for value in values)


def queries(state: Any, right: dict[str, bool] | None) -> Table:
    """Show the installed queries and the first rows of their answers."""
    table = Table(expand=True, box=SIMPLE_HEAD)
    for name, justify in (("query", "left"), ("since epoch", "right"), ("first answer", "right"), ("rows", "right")):
        table.add_column(name, justify=justify, no_wrap=True)  # type: ignore[arg-type]
    table.add_column("answer", ratio=1, no_wrap=True, overflow="ellipsis")
    for name, each in state.queries.items():
        found = each.output.snapshot()
        first = "  ".join(str(tuple(row.values())) for row in found.slice(0, 12).to_pylist())
        mark = "" if right is None else " ✓" if right[name] else " ✗"
        table.add_row(name + mark, f"{each.epoch:,}", f"{each.first_answer_ms:,.1f} ms", f"{found.num_rows:,}", first)
    return table


def arrangements(every: list[dict[str, Any]]) -> Table:
    """Show the shared indexes, and the total of all others."""
    table = Table(expand=True, box=SIMPLE_HEAD)
    table.add_column("arrangement", no_wrap=True)
    table.add_column("updates", justify="right")
    table.add_column("MB", justify="right")
    table.add_column("shared by", ratio=1, no_wrap=True, overflow="ellipsis")
    for each in (each for each in every if each["shared_by"]):
        table.add_row(each["name"], f"{each['rows']:,}", f"{each['bytes'] / 1e6:.2f}", ", ".join(each["shared_by"]))
    private = [each for each in every if not each["shared_by"]]
    if private:
        rows, size = sum(each["rows"] for each in private), sum(each["bytes"] for each in private)
        table.add_row(f"{len(private)} private ones", f"{rows:,}", f"{size / 1e6:.2f}", "", style="dim")
    return table


def phases(state: Any) -> Table:
    """Show the latency of a transaction by the number of installed queries."""
    table = Table(title="from insert to all answers up to date", box=SIMPLE_HEAD, title_justify="left")
    for name in ("queries", "transactions", "p50 ms", "p99 ms", "max ms"):
        table.add_column(name, justify="right")
    for installed, took in sorted(state.latencies_ms.items()):
        middle, worst = np.percentile(took, [50, 99])
        table.add_row(str(installed), f"{len(took):,}", f"{middle:.2f}", f"{worst:.2f}", f"{max(took):.2f}")
    return table


def verdict(right: dict[str, bool]) -> str:
    """Show whether the answers were right."""
    wrong = [name for name, is_right in right.items() if not is_right]
    if wrong:
        return f"DIFFERENT from the same question answered from scratch: {', '.join(wrong)}"
    return f"all {len(right)} answers equal the same questions answered from scratch"
