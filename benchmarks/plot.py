"""Latencies as the papers draw them: the share of rounds that took longer than x, both axes logarithmic."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.lines import RESULTS

COLOURS = ["#0b6e99", "#d9730d", "#448361", "#9f6b53", "#9065b0", "#c14c8a", "#cb912f", "#787774"]
Series = dict[str, list[float]]  # the seconds of each round, by name


def draw_all() -> Path | None:
    """The latencies of all experiments that were run at full size, a panel for each."""
    found = saved()
    return draw(found, RESULTS / "latency.png") if found else None


def saved() -> dict[str, Series]:
    """What experiments have saved, in their order."""
    paths = {int(path.name[1:].partition(".")[0]): path for path in RESULTS.glob("E*.latencies.json")}
    return {f"E{number}": json.loads(paths[number].read_text()) for number in sorted(paths)}


def draw(experiments: dict[str, Series], path: Path) -> Path:
    """A picture with a panel for each experiment."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    columns = min(3, len(experiments))
    rows = -(-len(experiments) // columns)
    size = (7.2, 4.2) if len(experiments) == 1 else (4.4 * columns, 3.4 * rows)
    figure, grid = pyplot.subplots(rows, columns, figsize=size, layout="constrained", squeeze=False)
    for axes, (experiment, series) in zip(grid.flat, experiments.items(), strict=False):
        panel(axes, experiment, series)
    for axes in grid.flat[len(experiments) :]:
        axes.set_visible(False)
    figure.supxlabel("latency of a round (ms)", fontsize=9)
    figure.supylabel("share of rounds that took at least as long", fontsize=9)
    figure.savefig(path, dpi=150)
    pyplot.close(figure)
    return path


def panel(axes: Any, experiment: str, series: Series) -> None:
    """One complementary CDF, a curve for each series."""
    for colour, (name, seconds) in zip(COLOURS * len(series), series.items(), strict=False):
        axes.step(*curve(seconds), where="post", label=f"{name} ({len(seconds)})", color=colour, linewidth=1.6)
    axes.set(xscale="log", yscale="log")
    axes.set_title(experiment, fontsize=10, loc="left")
    axes.tick_params(labelsize=8)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter("{x:g}")
        axis.set_minor_formatter(lambda x, position: "")
    axes.grid(True, which="major", linewidth=0.4, alpha=0.6)
    axes.legend(fontsize=6.5, frameon=False, loc="lower left", title="rounds", title_fontsize=6.5)


def curve(seconds: list[float]) -> tuple[Any, Any]:
    """Milliseconds in order, and the share of rounds that took at least as long."""
    ordered = np.sort(seconds) * 1e3
    return ordered, 1 - np.arange(len(ordered)) / len(ordered)
