"""Pictures of results: complementary CDFs of latencies with both axes logarithmic, as the papers draw them, and lines.

    draw(result, directory)       the pictures of one result
    draw_overview(directory)      one picture of the latencies of all saved results, a panel for each experiment

Needs matplotlib. Without it a run has no pictures, and its result says so.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kpg.bench.registry import engine_ids
from kpg.bench.results import Curve, Plot, Result, read_all

COLOURS = ["#0b6e99", "#d9730d", "#448361", "#9065b0", "#c14c8a", "#9f6b53", "#cb912f", "#787774"]
MAX_MARKED_POINTS = 12  # a line with more points has no markers
OVERVIEW_COLUMNS = 3
OVERVIEW_CURVES = 12  # a panel with more curves is unreadable


def draw(result: Result, directory: Path) -> list[Path]:
    """Draw all pictures of a result: one of its latencies, one for each plot. Return their paths."""
    pictures = []
    if result.latencies:
        pictures.append(_draw_latencies(result, directory / f"{result.id}.png"))
    for name, plot in result.plots.items():
        suffix = "" if not pictures else f"-{name.replace(' ', '-')}"
        pictures.append(_draw_plot(result, plot, directory / f"{result.id}{suffix}.png"))
    if not pictures and seconds_by_case(result):
        pictures.append(_draw_seconds(result, directory / f"{result.id}.png"))
    return pictures


def draw_overview(directory: Path) -> Path | None:
    """Draw the latencies of all saved results of the engine's experiments into latency.png; None if there are none."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    results = read_all(directory, engine_ids())
    curves = {result.id: result.latencies for result in results if result.latencies}
    if not curves:
        return None
    columns = min(OVERVIEW_COLUMNS, len(curves))
    rows = -(-len(curves) // columns)
    figure, grid = pyplot.subplots(
        rows, columns, figsize=(4.4 * columns, 3.4 * rows), layout="constrained", squeeze=False
    )
    for axes, (id, latencies) in zip(grid.flat, curves.items(), strict=False):
        axes.set_title(id, fontsize=10, loc="left")
        _draw_curves(axes, dict(list(latencies.items())[:OVERVIEW_CURVES]))
        axes.legend(fontsize=6.5, frameon=False, loc="lower left")
        axes.tick_params(labelsize=8)
        axes.grid(True, which="major", linewidth=0.4, alpha=0.6)
    for axes in grid.flat[len(curves) :]:
        axes.set_visible(False)
    figure.supxlabel("latency of a round (ms)", fontsize=9)
    figure.supylabel("share of rounds that took at least as long", fontsize=9)
    return _save(figure, directory / "latency.png")


def seconds_by_case(result: Result) -> dict[str, dict[str, float]]:
    """Return the seconds of each case by figure: what to draw for a result without latencies and plots."""
    seconds: dict[str, dict[str, float]] = {}
    for row in result.rows:
        for name, value in row.items():
            if name.endswith(("_s", "seconds")) and isinstance(value, float):
                seconds.setdefault(name, {})[str(row["case"])] = value
    return seconds


def _draw_seconds(result: Result, path: Path) -> Path:
    figure, axes = _figure(result)
    bars = seconds_by_case(result)
    drawn = {case for seconds in bars.values() for case in seconds}
    cases = [case for case in dict.fromkeys(str(row["case"]) for row in result.rows) if case in drawn]
    height = 0.8 / len(bars)
    for number, (name, seconds) in enumerate(bars.items()):
        down = [index + number * height for index, case in enumerate(cases) if case in seconds]
        across = [seconds[case] for case in cases if case in seconds]
        label = name.removesuffix("_s").replace("_", " ")
        axes.barh(down, across, height, label=label, color=COLOURS[number % len(COLOURS)])
    axes.set_yticks([index + 0.4 - height / 2 for index in range(len(cases))], cases)
    axes.set(xscale="log", xlabel="seconds")
    axes.invert_yaxis()
    _plain_numbers(axes.xaxis)
    if len(bars) > 1:
        axes.legend(fontsize=7, frameon=False)
    return _save(figure, path)


def _figure(result: Result) -> tuple[Any, Any]:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    figure, axes = pyplot.subplots(figsize=(7.2, 4.2), layout=ConstrainedLayoutEngine(rect=(0, 0.03, 1, 0.97)))
    axes.set_title(f"{result.id}: {result.title}", fontsize=10, loc="left")
    figure.text(0.995, 0.005, caption(result), fontsize=6, color="#666", ha="right")
    axes.grid(True, which="major", linewidth=0.4, alpha=0.6)
    axes.tick_params(labelsize=8)
    return figure, axes


def caption(result: Result) -> str:
    """Return the figure of the paper, the size of the run, and its status if it is not complete."""
    size = result.data or f"scale {result.scale:g}"
    return "; ".join(part for part in (f"as in {result.paper}" if result.paper else "", size,
                                       "" if result.status == "complete" else result.status) if part)  # fmt: skip


def _save(figure: Any, path: Path) -> Path:
    from matplotlib import pyplot

    figure.savefig(path, dpi=130)
    pyplot.close(figure)
    return path


def _draw_latencies(result: Result, path: Path) -> Path:
    figure, axes = _figure(result)
    _draw_curves(axes, result.latencies)
    axes.set(xlabel="latency (ms)", ylabel="share that took at least as long")
    axes.legend(fontsize=7, frameon=False)
    return _save(figure, path)


def _draw_curves(axes: Any, curves: dict[str, Curve]) -> None:
    for number, (name, curve) in enumerate(curves.items()):
        colour = COLOURS[number % len(COLOURS)]
        dashes = "-" if number < len(COLOURS) else "--"
        milliseconds, shares = [ms for ms, _ in curve], [share for _, share in curve]
        axes.step(milliseconds, shares, dashes, where="pre", label=name, color=colour, linewidth=1.5)
    axes.set(xscale="log", yscale="log")
    for axis in (axes.xaxis, axes.yaxis):
        _plain_numbers(axis)


def _plain_numbers(axis: Any) -> None:
    """Label a logarithmic axis with plain numbers, and with enough of them if it is short."""
    from matplotlib.ticker import LogLocator, NullFormatter

    low, high = axis.get_view_interval()
    if high < 100 * low:
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(lambda number, _: f"{number:,.6g}" if number < 1e6 else f"{number:,.0f}")
    axis.set_minor_formatter(NullFormatter())


def _draw_plot(result: Result, plot: Plot, path: Path) -> Path:
    figure, axes = _figure(result)
    for number, (line, points) in enumerate(plot.lines.items()):
        across, up = [x for x, _ in points], [y for _, y in points]
        marker = "o" if len(points) <= MAX_MARKED_POINTS else None
        axes.plot(across, up, label=line, color=COLOURS[number % len(COLOURS)], marker=marker, markersize=4)
    axes.set(xlabel=plot.x, ylabel=plot.y)
    _scale(axes, plot)
    axes.legend(fontsize=7, frameon=False)
    return _save(figure, path)


def _scale(axes: Any, plot: Plot) -> None:
    """Scale the axes logarithmically where the plot says so; else start at zero, with whole numbers for few points."""
    positions = sorted({x for points in plot.lines.values() for x, _ in points})
    if plot.log_x:
        axes.set_xscale("log")
        _plain_numbers(axes.xaxis)
    elif len(positions) <= MAX_MARKED_POINTS and all(x == int(x) for x in positions):
        axes.set_xticks(positions)
    if plot.log_y:
        axes.set_yscale("log")
        _plain_numbers(axes.yaxis)
    else:
        axes.yaxis.set_major_formatter(lambda number, _: f"{number:,.6g}")
        if all(y >= 0 for points in plot.lines.values() for _, y in points):
            axes.set_ylim(bottom=0)
