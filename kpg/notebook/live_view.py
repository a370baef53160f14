"""A view in the output of a cell that follows an answer: it draws itself, and again when the answer has changed.

A view starts when it is displayed, and ends when its answer is released, its cell runs again, or `stop` is called. What
it shows then stays. It draws at most every `interval` seconds and never for more than a tenth of the time. A view of a
db of this thread draws within `advance()`, or when the cell ends; other views have a thread of their own. A failure of
the data is shown in the view, and ends with the next good answer. Nothing that goes wrong in a view reaches the
program.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress

from kpg.errors import Closed, KpgError
from kpg.notebook.cell_views import views_of
from kpg.notebook.display_slot import DisplaySlot, MimeBundle, current_shell, is_notebook
from kpg.notebook.frame_pacer import FramePacer
from kpg.notebook.live_source import LiveSource

POLL_SECONDS = 0.1  # between two questions for the steps of a subscription
LOGGER = logging.getLogger("kpg.notebook")


class LiveView(ABC):
    """A display that follows an answer."""

    def __init__(self, source: LiveSource, interval_seconds: float) -> None:
        self.source = source
        self.interval_seconds = interval_seconds
        self.on_stop: list[Callable[[], object]] = []  # called once, when the view ends
        self._pacer = FramePacer(interval_seconds)
        self._slot: DisplaySlot | None = None
        self._changed = threading.Event()  # since the last frame
        self._stopped = threading.Event()
        self._drawing = threading.Lock()
        self._frames = 0  # drawn after the first display
        self._unfollow: Callable[[], None] | None = None

    @abstractmethod
    def draw(self) -> MimeBundle:
        """Read the answer, and return what to show."""

    @abstractmethod
    def draw_failure(self, error: KpgError) -> MimeBundle:
        """Return what to show while the answer has no value, or when it has ended."""

    def note_change(self) -> None:
        """Take note of an advance of a db of this thread, also of one for which no frame is drawn."""

    # Display

    def show(self) -> None:
        """Display the view at the end of the present output, and follow the answer from there."""
        self.source.catch_up()
        with self._drawing:
            self._slot = DisplaySlot(self._bundle())
        shell = current_shell()
        if is_notebook(shell) and not self._stopped.is_set():
            views_of(shell).add(self)
            self._start()

    _ipython_display_ = show

    def refresh(self) -> None:
        """Draw the view now."""
        with self._drawing, self._pacer.frame():
            self._changed.clear()
            bundle = self._bundle()
            if self._slot is not None:
                self._slot.update(bundle)
            self._frames += 1

    def _bundle(self) -> MimeBundle:
        """Return what to show; a view whose answer has ended ends too."""
        try:
            return self.draw()
        except Closed as error:
            self._end()
            return self.draw_failure(error)
        except KpgError as error:
            return self.draw_failure(error)

    # Changes

    @property
    def is_live(self) -> bool:
        """Whether the view follows its answer."""
        return self._unfollow is not None and not self._stopped.is_set()

    def _start(self) -> None:
        if self._unfollow is not None:
            return
        in_place = self.source.reads_on_own_thread
        self._unfollow = self.source.follow(self._draw_in_time if in_place else self._changed.set)
        if not in_place:
            threading.Thread(target=self._follow, name=f"kpg live {self.source.name}", daemon=True).start()

    def _draw_in_time(self) -> None:
        """Draw, on the thread of the db, if it is time; otherwise soon, or when the cell ends."""
        self.note_change()
        wait_seconds = self._pacer.wait_seconds()
        if not wait_seconds:
            self._changed.set()
            self.flush()
        elif not self._changed.is_set():
            self._changed.set()
            try:
                asyncio.get_running_loop().call_later(wait_seconds, self.flush)
            except RuntimeError:  # no loop: the next change draws
                pass

    def flush(self, deadline: float | None = None) -> None:
        """Draw a frame that was put off, or wait for the thread of the view to draw one, up to a deadline."""
        if self.source.reads_on_own_thread:
            if self._changed.is_set() and not self._stopped.is_set():
                self._attempt()
            return
        frames, deadline = self._frames, deadline or time.monotonic()
        while self._changed.is_set() and self.is_live and self._frames == frames and time.monotonic() < deadline:
            time.sleep(0.01)
        if self._drawing.acquire(timeout=max(0.0, deadline - time.monotonic())):
            self._drawing.release()

    def _follow(self) -> None:
        """Draw whenever the answer has changed; runs on the thread of the view."""
        while not self._stopped.is_set():
            if self.source.must_be_polled:
                self._poll()
            elif not self._changed.wait():
                continue
            if self._stopped.wait(self._pacer.wait_seconds()):
                return
            if self._changed.is_set():
                self._attempt()

    def _poll(self) -> None:
        try:
            if not self._changed.is_set() and not self.source.poll():
                self._stopped.wait(POLL_SECONDS)
                return
        except KpgError as error:  # the subscription has ended
            with self._drawing:
                if self._slot is not None:
                    self._slot.update(self.draw_failure(error))
            self._end()
        self._changed.set()

    def _attempt(self) -> None:
        try:
            self.refresh()
        except Exception:
            LOGGER.exception("a live view of %s ends", self.source.name)
            self.stop()

    # Life

    def stop(self) -> None:
        """End the view; what it shows stays. May be repeated."""
        self._end()
        shell = current_shell()
        if is_notebook(shell):
            views_of(shell).discard(self)

    def _end(self) -> None:
        first = not self._stopped.is_set()
        self._stopped.set()
        self._changed.set()  # wakes the thread
        if self._unfollow is not None:
            self._unfollow()
        if first:
            for function in self.on_stop:
                with suppress(KpgError):  # the db or the connection may have ended before
                    function()
