"""What a run found, as a table for the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from kpg.bench.experiment import Experiment
from kpg.bench.results import Result


def listing(experiments: tuple[Experiment, ...]) -> RenderableType:
    """All experiments there are."""
    table = Table(box=None, pad_edge=False, title_justify="left")
    for heading in ("id", "experiment", "paper", "size at scale 1"):
        table.add_column(heading, style="bold" if heading == "id" else "")
    for each in experiments:
        table.add_row(each.id, each.title, each.paper, each.size)
    return table


def shown(result: Result, experiment: Experiment, directory: Path) -> RenderableType:
    """The lines of a result, what bars come to, what the paper prints, what else is to be said, and where it is."""
    size = result.data or f"scale {result.scale:g}"
    parts: list[RenderableType] = [Text(f"{result.id}  {result.title}   {size}", style="bold")]
    if result.status != "complete":
        parts.append(Text(f"{result.status}: {result.reason}", style="bold red"))
    parts.append(_lines(result.rows))
    for bar in result.bars:
        colour = "green" if bar["met"] else "red" if is_full(result) else "yellow"
        parts.append(Text(f"bar: {words(bar['bar'])}: {bar['value']:g}, {judged(bar, result)}", style=colour))
    for name, value in result.figures.items():
        if not any(bar["bar"].startswith(name) for bar in result.bars):
            parts.append(Text(f"{words(name)}: {value:g}"))
    parts += [Text(f"paper: {each.what}: {each.value} ({each.hardware})", style="dim") for each in experiment.printed]
    parts += [Text(f"note: {note}", style="yellow") for note in result.notes]
    pictures = [path.name for path in pictures_of(result.id, directory)]
    parts.append(Text(f"kept: {', '.join([str(directory / f'{result.id}.json'), *pictures])}", style="dim"))
    return Group(*parts)


def judged(bar: dict[str, Any], result: Result) -> str:
    """Whether a bar is met, and whether it was to be."""
    said = "met" if bar["met"] else "missed"
    return said if is_full(result) else f"{said} (the bar is for scale 1)"


def is_full(result: Result) -> bool:
    """Whether this is a run that bars are written for."""
    return result.scale >= 1 and not result.data


def pictures_of(name: str, directory: Path) -> list[Path]:
    """The pictures of an experiment that are there, the first of them first."""
    return [*directory.glob(f"{name}.png"), *sorted(directory.glob(f"{name}-*.png"))]


def _lines(rows: list[dict[str, Any]]) -> Table:
    table = Table(box=None, pad_edge=False)
    headings = columns(rows)
    for heading in headings:
        table.add_column(words(heading), justify="left" if heading == "case" else "right")
    for row in rows:
        table.add_row(*[value(row.get(heading)) for heading in headings])
    return table


def columns(rows: list[dict[str, Any]]) -> list[str]:
    """The figures that any line has, in the order they first came."""
    return list(dict.fromkeys(name for row in rows for name in row))


def words(name: str) -> str:
    """The name of a figure, to be read."""
    return " ".join({"mb": "MB"}.get(word, word) for word in name.replace("_", " ").split(" "))


def value(found: object) -> str:
    """A figure, to be read."""
    if found is None:
        return ""
    if isinstance(found, bool):
        return "yes" if found else "no"
    if isinstance(found, int):
        return f"{found:,}"
    return (
        f"{found:,.4g}"
        if isinstance(found, float) and abs(found) < 10_000
        else (f"{found:,.0f}" if isinstance(found, float) else str(found))
    )
