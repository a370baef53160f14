"""A plot of an answer that a notebook keeps up to date: `answer.live().plot("total")`.

Without `x`, the plot shows how values change: each row is a line, known by its other columns. It has a point for each
advance of a small answer of a db of this thread, and otherwise for each frame. It keeps the last MAX_POINTS points, and
draws at most MAX_LINES lines. With `x`, it shows the present rows. Matplotlib draws off-screen, without pyplot, so that
any thread may draw, and the program's own figures are left alone.
"""

from __future__ import annotations

import base64
import io
from collections import deque
from contextlib import suppress
from typing import Any

from kpg.errors import InputError, KpgError, UndefinedName
from kpg.extras import require
from kpg.html_table import caption, preformatted
from kpg.notebook.display_slot import MimeBundle
from kpg.notebook.live_source import LiveSource
from kpg.notebook.live_view import LiveView

KINDS = ("line", "bar", "scatter")
MAX_POINTS, MAX_LINES = 1_000, 12
MAX_NOTED_ROWS = 100  # of an answer whose values are taken at each advance, and not only for each frame
SIZE_INCHES, DOTS_PER_INCH = (7.0, 3.2), 96
PLOT_SECONDS = 0.25  # at least between two frames: a drawing takes some ten milliseconds


class LivePlot(LiveView):
    """A plot of an answer, kept up to date."""

    def __init__(self, source: LiveSource, y: str | None, x: str | None, kind: str, interval_seconds: float) -> None:
        require("matplotlib", "plot()")
        super().__init__(source, max(interval_seconds, PLOT_SECONDS))
        if kind not in KINDS:
            raise InputError(f"there is no plot of kind {kind!r}", hint=f"The kinds are {', '.join(KINDS)}.")
        for name in (x, y):
            if name is not None and name not in source.columns:
                hint = f"They are {', '.join(source.columns)}."
                raise UndefinedName(f"{source.name} has no column {name!r}", hint=hint)
        if kind == "bar" and x is None:
            raise InputError("a plot of bars needs x", hint=f"The columns are {', '.join(source.columns)}.")
        self._y, self._x, self._kind = y, x, kind
        self._rows = 0  # of the answer when it was last read
        self.history: dict[str, deque[tuple[int, float]]] = {}  # of a plot over time: label → points

    def note_change(self) -> None:
        """Add a point to the lines, if the answer is so small that this costs little."""
        if self._x is None and self._rows <= MAX_NOTED_ROWS:
            with suppress(KpgError):  # drawing shows the error
                self._read()

    def _read(self) -> tuple[int, dict[str, list[Any]], str]:
        """Return the time, the columns and the name of y; add the present values to the lines."""
        time, table = self.source.table()
        self._rows = table.num_rows
        rows = dict(zip(table.column_names, (column.to_pylist() for column in table.columns), strict=True))
        y = self._y or next((name for name in rows if name != self._x and is_numeric(table.column(name))), None)
        if y is None:
            raise InputError(f"{self.source.name} has no column of numbers to plot", hint="Name one: plot(y=...).")
        if self._x is None:
            self._extend(time, rows, y)
        return time, rows, y

    def draw(self) -> MimeBundle:
        time, rows, y = self._read()
        image = self._image(rows, y, time)
        by = self._x or "time"
        return {"image/png": base64.b64encode(image).decode(), "text/plain": f"{self.source.name}: {y} by {by}"}

    def draw_failure(self, error: KpgError) -> MimeBundle:
        return {"text/html": caption(self.source.name) + preformatted(str(error)), "text/plain": str(error)}

    def _extend(self, time: int, rows: dict[str, list[Any]], y: str) -> None:
        """Add the values of this time to the lines."""
        labels = [name for name in rows if name != y]
        for number, value in enumerate(rows[y]):
            label = ", ".join(str(rows[name][number]) for name in labels)
            points = self.history.get(label)
            if points is None and len(self.history) < MAX_LINES:
                points = self.history[label] = deque(maxlen=MAX_POINTS)
            if points is not None and not (points and points[-1][0] == time):
                points.append((time, as_number(value)))

    def _image(self, rows: dict[str, list[Any]], y: str, time: int) -> bytes:
        """Return the drawing as PNG."""
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        figure = Figure(figsize=SIZE_INCHES, dpi=DOTS_PER_INCH, layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.subplots()
        if self._x is None:
            self._draw_history(axes)
            axes.set_xlabel("time")
        else:
            self._draw_rows(axes, rows[self._x], [as_number(value) for value in rows[y]])
            axes.set_xlabel(self._x)
        axes.set_ylabel(y)
        axes.set_title(f"{self.source.name} as of {time}", fontsize="medium")
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png")
        return buffer.getvalue()

    def _draw_history(self, axes: Any) -> None:
        for label, points in self.history.items():
            times, values = zip(*points, strict=True)
            style = "" if self._kind == "scatter" else "-"
            axes.plot(times, values, style or "o", marker="o", markersize=3, label=label or None)
        if any(self.history) and len(self.history) > 1:
            axes.legend(fontsize="small", ncols=2)

    def _draw_rows(self, axes: Any, x: list[Any], y: list[float]) -> None:
        if self._kind == "bar":
            axes.bar([str(value) for value in x], y)
        elif self._kind == "scatter":
            axes.scatter(x, y, s=12)
        else:
            points = sorted(zip(x, y, strict=True), key=lambda point: (point[0] is not None, point[0]))
            axes.plot([point[0] for point in points], [point[1] for point in points], marker="o", markersize=3)


def is_numeric(column: Any) -> bool:
    """Whether a column of Arrow holds numbers."""
    import pyarrow.types as types

    kind = column.type
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind))


def as_number(value: Any) -> float:
    """Return a value as a point of a plot; null is a gap."""
    try:
        return float("nan") if value is None else float(value)
    except (TypeError, ValueError):
        raise InputError(f"{value!r} is not a number", hint="Plot a column of numbers.") from None
