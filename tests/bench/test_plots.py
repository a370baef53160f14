"""Pictures have logarithmic axes with plain numbers, and a curve that drops at each round."""

from kpg.bench import plots
from kpg.bench.results import Plot, Result, curve


def result(**more):
    return Result("X7", "latency", 0.1, 0, "now", {}, paper="a paper, figure 5a", **more)


def drawn(monkeypatch, result):
    """Return the figures of a result's pictures before they are saved."""
    figures = []
    monkeypatch.setattr(plots, "_save", lambda figure, path: figures.append(figure) or path)
    names = [path.name for path in plots.draw(result, plots.Path("."))]
    for figure in figures:
        figure.canvas.draw()
    return names, figures


def labels(axis):
    return {text.get_text() for text in axis.get_ticklabels(which="both")} - {""}


def test_a_curve_is_the_share_of_rounds_that_took_at_least_as_long(monkeypatch):
    names, (figure,) = drawn(monkeypatch, result(latencies={"shared": curve([20.0, 30.0, 70.0, 90.0])}))
    (axes,) = figure.axes
    assert names == ["X7.png"] and axes.get_xscale() == axes.get_yscale() == "log"
    (line,) = axes.get_lines()
    assert line.get_xydata().tolist() == [[20.0, 1.0], [30.0, 0.75], [70.0, 0.5], [90.0, 0.25]]
    assert line.get_drawstyle() == "steps-pre"  # between two rounds, the share of the longer one
    assert labels(axes.xaxis) >= {"20", "50"} and labels(axes.yaxis) >= {"0.5", "1"}


def test_no_number_is_written_as_a_power(monkeypatch):
    load = Plot("changes/s", "p99 (ms)", True, True, {"shared": [(25_000, 40.0), (3_200_000, 300.0)]})
    _, (figure,) = drawn(monkeypatch, result(plots={"load": load}))
    (axes,) = figure.axes
    assert labels(axes.xaxis) >= {"100,000", "1,000,000"} and labels(axes.yaxis) >= {"50", "100", "200"}
    assert not any("10^" in text for text in labels(axes.xaxis) | labels(axes.yaxis))


def test_workers_are_whole_numbers(monkeypatch):
    plot = Plot("workers", "updates/s", lines={"count": [(1, 1e6), (2, 1.5e6)]})
    _, (figure,) = drawn(monkeypatch, result(plots={"throughput": plot}))
    assert labels(figure.axes[0].xaxis) == {"1", "2"}


def test_a_picture_says_which_figure_it_is_of_what_and_that_it_is_partial():
    assert plots.caption(result()) == "as in a paper, figure 5a; scale 0.1; partial"
    assert plots.caption(result(status="complete", data="g.txt")) == "as in a paper, figure 5a; g.txt"
