"""A dataflow that a rank builds in parts: it performs other commands between two of them.

    build = RankBuild(function)
    build.go_on()            build one part; return whether the dataflow is installed
    build.end()              give it up where it was left

The function runs on a stack of its own (a greenlet), which is left after a number of pauses of the renderer, never
after a time: all ranks get the same commands, so all leave it between the same two nodes, and begin it at the same
command. What other commands install or drop meanwhile, they do at the same point of the build on all ranks.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Final

from greenlet import getcurrent, greenlet

from kpg.columns.building_turns import building_in_turns
from kpg.columns.memory_budget import budget
from kpg.columns.pause_points import taking_turns

PAUSES_PER_PART: Final = 16  # two for each node of a plan: two or three milliseconds


class RankBuild:
    """One dataflow that is being built; it is also the turns that its renderer takes."""

    def __init__(self, function: Callable[[], object]) -> None:
        self._function = function
        self._stack = greenlet(self._build)
        self._pauses = 0  # that are left in the present part

    def go_on(self) -> bool:
        """Build the next part; return whether it was the last. An error of the build is raised here."""
        self._pauses = PAUSES_PER_PART
        self._stack.parent = getcurrent()
        self._stack.switch()
        return bool(self._stack.dead)

    def end(self) -> None:
        """Give the build up, if it is not done; what it holds is released."""
        if self._stack and not self._stack.dead:
            self._stack.parent = getcurrent()
            self._stack.throw()

    def _build(self) -> None:
        with taking_turns(self), building_in_turns():
            self._function()

    # The turns of the renderer (kpg.columns.pause_points.Turns)

    def pause(self) -> None:
        """Return to `go_on` if the part is over."""
        self._pauses -= 1
        if self._pauses <= 0 and getcurrent() is self._stack:
            assert self._stack.parent is not None
            with taking_turns(None), budget(None):
                self._stack.parent.switch()

    def wait(self, future: Future[Any]) -> bool:
        """Return False: a part does not wait for the helper thread, as other ranks might not."""
        return False

    def charge(self, seconds: float) -> None:
        """Count no CPU time: a build has no limit of it."""
