"""The live views of a notebook by the cell that shows them.

A view ends when its cell runs again, just before that: the cell then installs and shows what it wants. A cell is known
by the id that the notebook gives it, or by its text if it gives none. When a cell has run, views draw the frames that
they still owe.
"""

from __future__ import annotations

import time
from typing import Any, Final, Protocol

FLUSH_SECONDS: Final = 0.5  # that a cell waits at its end for the last frames of all views


class CellView(Protocol):
    """A view in the output of a cell."""

    def stop(self) -> None:
        """End the view; what it shows stays."""

    def flush(self, deadline: float | None = None) -> None:
        """Draw a frame that was put off, or wait for it up to a deadline, by time.monotonic()."""


class CellViews:
    """The views of one shell of IPython."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._views: dict[str, list[CellView]] = {}
        shell.events.register("pre_run_cell", self._before_cell)
        shell.events.register("post_run_cell", self._after_cell)

    def add(self, view: CellView) -> None:
        """Record a view that the present cell shows."""
        views = self._views.setdefault(self._cell(), [])
        if view not in views:
            views.append(view)

    def discard(self, view: CellView) -> None:
        """Forget a view that has ended."""
        for views in self._views.values():
            if view in views:
                views.remove(view)

    def _cell(self) -> str:
        """Return what the present cell is known by."""
        request = self._shell.get_parent() or {}
        cell = (request.get("metadata") or {}).get("cellId") or (request.get("content") or {}).get("code")
        return str(cell)

    def _before_cell(self, info: Any = None) -> None:
        for view in tuple(self._views.pop(self._cell(), ())):
            view.stop()

    def _after_cell(self, result: Any = None) -> None:
        deadline = time.monotonic() + FLUSH_SECONDS
        for view in [view for views in self._views.values() for view in views]:
            view.flush(deadline)


def views_of(shell: Any) -> CellViews:
    """Return the views of a shell."""
    views = getattr(shell, "_kpg_views", None)
    if views is None:
        views = CellViews(shell)
        shell._kpg_views = views
    return views
