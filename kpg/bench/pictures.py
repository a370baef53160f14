"""Pictures as the papers draw them: the share of rounds that took longer than x, both axes logarithmic; lines over
time.

Needs matplotlib; without it there are no pictures, and the command says so.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kpg.bench.results import Plot, Result

COLOURS = ["#0b6e99", "#d9730d", "#448361", "#9065b0", "#c14c8a", "#9f6b53", "#cb912f", "#787774"]


def draw(result: Result, directory: Path) -> list[Path]:
    """All pictures of a result: one of its latencies, one for each plot."""
    made = []
    if result.latencies:
        made.append(_draw_latencies(result, directory / f"{result.id}.png"))
    for name, plot in result.plots.items():
        suffix = "" if not made else f"-{name.replace(' ', '-')}"
        made.append(_draw_plot(result, name, plot, directory / f"{result.id}{suffix}.png"))
    return made


def _figure(result: Result, title: str) -> tuple[Any, Any]:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7.2, 4.2), layout="constrained")
    partial = "" if result.status == "complete" else f" ({result.status})"
    axes.set_title(f"{result.id}: {title}{partial}", fontsize=10, loc="left")
    axes.grid(True, which="major", linewidth=0.4, alpha=0.6)
    axes.tick_params(labelsize=8)
    return figure, axes


def _save(figure: Any, path: Path) -> Path:
    from matplotlib import pyplot

    figure.savefig(path, dpi=130)
    pyplot.close(figure)
    return path


def _draw_latencies(result: Result, path: Path) -> Path:
    figure, axes = _figure(result, result.title)
    for number, (name, milliseconds) in enumerate(result.latencies.items()):
        colour = COLOURS[number % len(COLOURS)]
        dashes = "-" if number < len(COLOURS) else "--"
        axes.step(milliseconds, shares(milliseconds), dashes, where="post", label=name, color=colour, linewidth=1.5)
    axes.set(xscale="log", yscale="log", xlabel="latency (ms)", ylabel="share that took at least as long")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter("{x:g}")
    axes.legend(fontsize=7, frameon=False)
    return _save(figure, path)


def shares(ordered: list[float]) -> list[float]:
    """For each of some ordered values, the share of values that are at least as large."""
    return [1 - place / len(ordered) for place in range(len(ordered))]


def _draw_plot(result: Result, name: str, plot: Plot, path: Path) -> Path:
    figure, axes = _figure(result, name)
    for number, (line, points) in enumerate(plot.lines.items()):
        across, up = [x for x, _ in points], [y for _, y in points]
        marker = "o" if len(points) <= 12 else None
        axes.plot(across, up, label=line, color=COLOURS[number % len(COLOURS)], marker=marker, markersize=4)
    axes.set(xlabel=plot.x, ylabel=plot.y)
    if plot.log_x:
        axes.set_xscale("log")
    if plot.log_y:
        axes.set_yscale("log")
    elif all(y >= 0 for points in plot.lines.values() for _, y in points):
        axes.set_ylim(bottom=0)
    axes.legend(fontsize=7, frameon=False)
    return _save(figure, path)
