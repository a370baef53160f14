"""Results as tables for the terminal, and the parts of a table that the report page uses too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from kpg.bench.experiment import Experiment
from kpg.bench.results import Result

HIDDEN = {"bar", "limits", "met", "missed_by"}  # members of a row that the lines of bars show


def listed(experiments: tuple[Experiment, ...]) -> RenderableType:
    """Return the list of all experiments."""
    table = Table(box=None, pad_edge=False, title_justify="left")
    for heading in ("id", "experiment", "paper", "size at scale 1"):
        table.add_column(heading, style="bold" if heading == "id" else "")
    for experiment in experiments:
        table.add_row(experiment.id, experiment.title, experiment.paper, experiment.size)
    return table


def shown(result: Result, experiment: Experiment, directory: Path) -> RenderableType:
    """Return a result as text: its rows, its bars, the paper's figures, its notes, and the paths of its files."""
    size = result.data or f"scale {result.scale:g}"
    parts: list[RenderableType] = [Text(f"{result.id}  {result.title}   {size}", style="bold")]
    if result.status != "complete":
        parts.append(Text(f"{result.status}: {result.reason}", style="bold red"))
    parts.append(_rows(result.rows))
    for bar in result.bars:
        colour = "green" if bar["met"] else "red" if result.is_full_size else "yellow"
        parts.append(Text(f"bar: {words(bar['bar'])}: {bar['value']:g}, {verdict(bar, result)}", style=colour))
    for name, number in result.figures.items():
        if not any(bar["bar"].startswith(name) for bar in result.bars):
            parts.append(Text(f"{words(name)}: {number:g}"))
    parts += [
        Text(f"paper: {figure.what}: {figure.value} ({figure.hardware})", style="dim") for figure in experiment.printed
    ]
    parts += [Text(f"note: {note}", style="yellow") for note in result.notes]
    pictures = [path.name for path in pictures_of(result.id, directory)]
    parts.append(Text(f"saved: {', '.join([str(directory / f'{result.id}.json'), *pictures])}", style="dim"))
    return Group(*parts)


def verdict(bar: dict[str, Any], result: Result) -> str:
    """Return whether a bar is met, and whether it applies to a run of this size."""
    outcome = "met" if bar["met"] else "missed"
    return outcome if result.is_full_size else f"{outcome} (the bar is for scale 1)"


def pictures_of(name: str, directory: Path) -> list[Path]:
    """Return the pictures of an experiment in a directory, its main picture first."""
    return [*directory.glob(f"{name}.png"), *sorted(directory.glob(f"{name}-*.png"))]


def _rows(rows: list[dict[str, Any]]) -> Table:
    table = Table(box=None, pad_edge=False)
    headings = columns(rows)
    for heading in headings:
        table.add_column(words(heading), justify="left" if heading == "case" else "right")
    for row in rows:
        table.add_row(*[text_of(row.get(heading)) for heading in headings])
    return table


def columns(rows: list[dict[str, Any]]) -> list[str]:
    """Return the figures that any row has, in the order of their first occurrence."""
    present = dict.fromkeys(name for row in rows for name, value in row.items() if value is not None)
    return [name for name in present if name not in HIDDEN]


def words(name: str) -> str:
    """Return the name of a figure with spaces for underscores."""
    return " ".join({"mb": "MB"}.get(word, word) for word in name.replace("_", " ").split(" "))


def text_of(value: object) -> str:
    """Return a figure as text."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.4g}" if abs(value) < 10_000 else f"{value:,.0f}"
    return str(value)
