"""A table of the first rows of an answer that a notebook keeps up to date: `answer.live()`.

While all rows are shown, those that the last frame did not have are marked.
"""

from __future__ import annotations

from typing import Any

from kpg.api.answer_preview import AnswerPreview
from kpg.errors import Closed, KpgError
from kpg.html_table import caption, preformatted, table
from kpg.notebook.display_slot import MimeBundle
from kpg.notebook.live_plot import LivePlot
from kpg.notebook.live_source import LiveSource, source_of
from kpg.notebook.live_view import LiveView


class LiveAnswer(LiveView):
    """The first rows of an answer, kept up to date."""

    def __init__(self, source: LiveSource, rows: int, interval_seconds: float) -> None:
        super().__init__(source, interval_seconds)
        self._max_rows = rows
        self._last: AnswerPreview | None = None

    def plot(self, y: str | None = None, *, x: str | None = None, kind: str = "line") -> LivePlot:
        """Return a plot of the answer instead.

        y      the column to plot; the first one with numbers if not given
        x      the column of the other axis; without it, time: a line for each row shows how its value has changed
        kind   line, bar or scatter
        """
        return LivePlot(self.source, y, x, kind, self.interval_seconds)

    def draw(self) -> MimeBundle:
        preview = self.source.preview(self._max_rows)
        marked = new_rows(self._last, preview)
        self._last = preview
        title = preview.title(f"{self.source.name}")
        return {
            "text/html": caption(title) + table(preview.head, preview.lines(), marked),
            "text/plain": "\n".join([title, *text_lines(preview)]),
        }

    def draw_failure(self, error: KpgError) -> MimeBundle:
        title = self.source.name + (" has ended; its last rows:" if isinstance(error, Closed) else "")
        rows = table(self._last.head, self._last.lines()) if self._last is not None else ""
        reason = "" if isinstance(error, Closed) and self._last is not None else str(error)
        html = caption(title) + (preformatted(reason) if reason else "") + rows
        lines = text_lines(self._last) if self._last is not None else []
        return {"text/html": html, "text/plain": "\n".join(filter(None, [title, reason, *lines]))}

    def __repr__(self) -> str:
        return self._bundle()["text/plain"]


def live_table(answer: Any, rows: int, interval: float) -> LiveAnswer:
    """Return a table of the first rows of an answer, which follows it once it is displayed."""
    return LiveAnswer(source_of(answer), rows, interval)


def new_rows(before: AnswerPreview | None, now: AnswerPreview) -> set[int]:
    """Return the numbers of rows that were not there before, if both times all rows are known."""
    if before is None or not (before.is_whole and now.is_whole):
        return set()
    known = set(before.rows)
    return {number for number, row in enumerate(now.rows) if row not in known}


def text_lines(preview: AnswerPreview) -> list[str]:
    """Return a preview as lines of text, in columns."""
    rows = [preview.head, *([("" if value is None else str(value)) for value in row] for row in preview.lines())]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(f"{text:<{width}}" for text, width in zip(row, widths, strict=True)).rstrip() for row in rows]
