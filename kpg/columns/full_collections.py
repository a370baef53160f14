"""Full garbage collections of a process that serves: they are short, and walk all objects only in idle moments.

    collect_when_grown()     from now on, in this process
    collect_all_when_due()   called when the process is idle

A full collection walks all objects of a process and stops it meanwhile: 50 ms for the tree of a statement with 20,000
rows, 200 ms with a dataflow of 1,000 rules, and several times as long on a busy machine. CPython begins one when many
objects have become old, also if most of them are gone again.

Here a full collection begins when the process holds GROWTH_BLOCKS more than it did at some moment since the last one,
and what it leaves is frozen: later collections do not walk it again. So each walks the objects of some milliseconds.
Reference counts free most objects, frozen ones too. Garbage among frozen objects waits until the process holds twice
as much as after the last collection of all; then one begins in an idle moment. A process without idle moments begins it
when it holds three times as much.
Young objects are collected as before. Cost: 25 µs for each seven thousand objects that have become old.
"""

from __future__ import annotations

import gc
import sys
from typing import Any, Final

GROWTH_BLOCKS: Final = 30_000  # until a full collection: two or three milliseconds
WHOLE_GROWTH: Final = 1.0  # of the blocks after the last collection of all objects, until the next one
MIN_WHOLE_GROWTH_BLOCKS: Final = 1_000_000  # about 100 MB
BUSY_GROWTH: Final = 2  # times the growth of an idle process, until a busy one collects all
NEVER: Final = 1 << 30  # collections of the middle generation before a full one


class FullCollections:
    """Decides, after each collection of the middle generation, whether a full one is due."""

    def __init__(self) -> None:
        self._young, self._middle, _ = gc.get_threshold()
        self._least = self._after_whole = sys.getallocatedblocks()
        self._collects_all = False  # whether the next full collection walks all objects
        self._defer()

    def __call__(self, phase: str, info: dict[str, Any]) -> None:
        """Follow a collection; the interpreter calls it before and after each."""
        if phase != "stop":
            return
        if info["generation"] == 2:
            gc.freeze()
            self._least = sys.getallocatedblocks()
            self._defer()
            if self._collects_all:
                self._collects_all, self._after_whole = False, self._least
        elif info["generation"] == 1 and self.is_due:
            if self._whole_growth > BUSY_GROWTH:
                gc.unfreeze()
                self._collects_all = True
            gc.set_threshold(self._young, self._middle, 0)  # the interpreter begins one now

    @property
    def is_due(self) -> bool:
        """Whether so many objects may be old and not frozen that a full collection should begin."""
        blocks = sys.getallocatedblocks()
        self._least = min(self._least, blocks)  # frozen objects go: as many new ones may have come
        return blocks - self._least > GROWTH_BLOCKS

    @property
    def all_are_due(self) -> bool:
        """Whether the process has grown so much since the last collection of all objects that some may be garbage."""
        return self._whole_growth > 1

    @property
    def _whole_growth(self) -> float:
        """The growth since the last collection of all objects, by that until the next one in an idle moment."""
        grown = sys.getallocatedblocks() - self._after_whole
        return grown / max(MIN_WHOLE_GROWTH_BLOCKS, WHOLE_GROWTH * self._after_whole)

    def collect_all(self) -> None:
        """Collect the garbage among all objects."""
        gc.unfreeze()
        self._collects_all = True
        gc.collect()  # freezes what is left

    def _defer(self) -> None:
        """Let the interpreter begin no full collection by itself."""
        gc.set_threshold(self._young, self._middle, NEVER)


def collect_when_grown() -> None:
    """Begin full collections of this process only when it has grown; may be repeated."""
    if _policy() is None:
        gc.callbacks.append(FullCollections())
        gc.freeze()
        gc.collect()  # of nothing: the interpreter begins no full one before a quarter of the last one's objects is new


def collect_all_when_due() -> None:
    """Collect the garbage among all objects if the process has grown much; it stops for some tenths of a second."""
    policy = _policy()
    if policy is not None and policy.all_are_due:
        policy.collect_all()


def _policy() -> FullCollections | None:
    return next((callback for callback in gc.callbacks if isinstance(callback, FullCollections)), None)
