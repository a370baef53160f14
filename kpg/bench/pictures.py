"""Pictures as the papers draw them: the share of rounds that took longer than x, both axes logarithmic; lines over
time.

Needs matplotlib; without it there are no pictures, and the command says so.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kpg.bench.results import Plot, Result

COLOURS = ["#0b6e99", "#d9730d", "#448361", "#9065b0", "#c14c8a", "#9f6b53", "#cb912f", "#787774"]
FEW = 12  # points, each with a mark of its own


def draw(result: Result, directory: Path) -> list[Path]:
    """All pictures of a result: one of its latencies, one for each plot."""
    made = []
    if result.latencies:
        made.append(_draw_latencies(result, directory / f"{result.id}.png"))
    for name, plot in result.plots.items():
        suffix = "" if not made else f"-{name.replace(' ', '-')}"
        made.append(_draw_plot(result, plot, directory / f"{result.id}{suffix}.png"))
    if not made and bars(result):
        made.append(_draw_bars(result, directory / f"{result.id}.png"))
    return made


def bars(result: Result) -> dict[str, dict[str, float]]:
    """The seconds of each case by what took them: what there is to draw where neither rounds nor time are shown."""
    found: dict[str, dict[str, float]] = {}
    for row in result.rows:
        for name, value in row.items():
            if name.endswith(("_s", "seconds")) and isinstance(value, float):
                found.setdefault(name, {})[str(row["case"])] = value
    return found


def _draw_bars(result: Result, path: Path) -> Path:
    figure, axes = _figure(result)
    found = bars(result)
    drawn = {case for seconds in found.values() for case in seconds}
    cases = [case for case in dict.fromkeys(str(row["case"]) for row in result.rows) if case in drawn]
    height = 0.8 / len(found)
    for number, (name, seconds) in enumerate(found.items()):
        at = [place + number * height for place, case in enumerate(cases) if case in seconds]
        across = [seconds[case] for case in cases if case in seconds]
        label = name.removesuffix("_s").replace("_", " ")
        axes.barh(at, across, height, label=label, color=COLOURS[number % len(COLOURS)])
    axes.set_yticks([place + 0.4 - height / 2 for place in range(len(cases))], cases)
    axes.set(xscale="log", xlabel="seconds")
    axes.invert_yaxis()
    _plain_numbers(axes.xaxis)
    if len(found) > 1:
        axes.legend(fontsize=7, frameon=False)
    return _save(figure, path)


def _figure(result: Result) -> tuple[Any, Any]:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    figure, axes = pyplot.subplots(figsize=(7.2, 4.2), layout=ConstrainedLayoutEngine(rect=(0, 0.03, 1, 0.97)))
    axes.set_title(f"{result.id}: {result.title}", fontsize=10, loc="left")
    figure.text(0.995, 0.005, beneath(result), fontsize=6, color="#666", ha="right")
    axes.grid(True, which="major", linewidth=0.4, alpha=0.6)
    axes.tick_params(labelsize=8)
    return figure, axes


def beneath(result: Result) -> str:
    """Which figure of which paper is drawn, of what, and whether all of it is there."""
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
    for number, (name, curve) in enumerate(result.latencies.items()):
        colour = COLOURS[number % len(COLOURS)]
        dashes = "-" if number < len(COLOURS) else "--"
        milliseconds, shares = [ms for ms, _ in curve], [share for _, share in curve]
        axes.step(milliseconds, shares, dashes, where="pre", label=name, color=colour, linewidth=1.5)
    axes.set(xscale="log", yscale="log", xlabel="latency (ms)", ylabel="share that took at least as long")
    for axis in (axes.xaxis, axes.yaxis):
        _plain_numbers(axis)
    axes.legend(fontsize=7, frameon=False)
    return _save(figure, path)


def _plain_numbers(axis: Any) -> None:
    """A logarithmic axis with numbers as they are written, and enough of them where it is short."""
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
        marker = "o" if len(points) <= FEW else None
        axes.plot(across, up, label=line, color=COLOURS[number % len(COLOURS)], marker=marker, markersize=4)
    axes.set(xlabel=plot.x, ylabel=plot.y)
    _scale(axes, plot)
    axes.legend(fontsize=7, frameon=False)
    return _save(figure, path)


def _scale(axes: Any, plot: Plot) -> None:
    """Logarithmic where asked for; else from zero, and whole numbers where points are at whole numbers."""
    places = sorted({x for points in plot.lines.values() for x, _ in points})
    if plot.log_x:
        axes.set_xscale("log")
        _plain_numbers(axes.xaxis)
    elif len(places) <= FEW and all(x == int(x) for x in places):
        axes.set_xticks(places)
    if plot.log_y:
        axes.set_yscale("log")
        _plain_numbers(axes.yaxis)
    else:
        axes.yaxis.set_major_formatter(lambda number, _: f"{number:,.6g}")
        if all(y >= 0 for points in plot.lines.values() for _, y in points):
            axes.set_ylim(bottom=0)
