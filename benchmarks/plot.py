"""Latencies as the papers draw them: the share of rounds that took longer than x, both axes logarithmic."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from benchmarks.lines import RESULTS

COLOURS = ["#0b6e99", "#d9730d", "#448361", "#9f6b53", "#9065b0", "#c14c8a", "#337ea9", "#cb912f", "#787774", "#000000"]


def curve(seconds: list[float]) -> tuple[np.ndarray, np.ndarray]:
    """Milliseconds in order, and the share of rounds that took at least as long."""
    ordered = np.sort(seconds) * 1e3
    return ordered, 1 - np.arange(len(ordered)) / len(ordered)


def draw(series: dict[str, list[float]], title: str, path: Path) -> None:
    """One complementary CDF with a step curve for each series."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7.2, 4.2), layout="constrained")
    for number, (name, seconds) in enumerate(series.items()):
        style = "-" if number < len(COLOURS) else "--"
        axes.step(*curve(seconds), style, where="post", label=name, color=COLOURS[number % len(COLOURS)], linewidth=1.6)
    axes.set(xscale="log", yscale="log", xlabel="latency of a round (ms)", ylabel="share of rounds at least as long")
    axes.set_title(title, fontsize=10, loc="left")
    axes.grid(True, which="major", linewidth=0.4, alpha=0.6)
    axes.legend(fontsize=7, frameon=False, loc="lower left")
    figure.savefig(path, dpi=150)
    pyplot.close(figure)


def draw_experiment(experiment: str) -> Path | None:
    """The latencies that an experiment saved."""
    saved = RESULTS / f"{experiment}.latencies.json"
    if not saved.exists():
        return None
    series = {f"{name} ({len(seconds)} rounds)": seconds for name, seconds in json.loads(saved.read_text()).items()}
    path = RESULTS / f"{experiment}.png"
    draw(series, f"{experiment}: complementary CDF of latency", path)
    return path


def draw_all() -> Path | None:
    """The latencies of all experiments that were run, in one picture."""
    series: dict[str, list[float]] = {}
    for saved in sorted(RESULTS.glob("*.latencies.json"), key=lambda path: int(path.name[1:].partition(".")[0])):
        experiment = saved.name.partition(".")[0]
        series |= {f"{experiment} {name}": seconds for name, seconds in json.loads(saved.read_text()).items()}
    if not series:
        return None
    path = RESULTS / "latency.png"
    draw(series, "complementary CDF of latency", path)
    return path
