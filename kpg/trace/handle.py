"""A reader's hold on a trace.

A handle promises readers two things, and the trace keeps no more than all handles together need:

    since      times beyond it can be told apart; the trace may compact to the meet of all handles' since
    physical   no batch reaches across this frontier or across any upper beyond it; batches before it may be merged

The logical since is set, or follows a source that is asked only when the trace is about to compact. Both only
advance. A new handle's physical frontier is the upper of the trace, so batches may be asked for through that or any
later upper; one that never cuts the trace should set it to the empty frontier, or the trace cannot merge what comes.

A handle keeps its trace alive; the trace does not keep its handles alive, so that with the last handle the trace is
gone.
"""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING

from kpg.algebra.frontier import CLOSED, Frontier
from kpg.errors import Closed, TimeTooEarly
from kpg.trace.batch import Batch

if TYPE_CHECKING:
    from kpg.trace.spine import Spine


class TraceHandle:
    """Keeps a trace readable beyond a frontier, until released."""

    __slots__ = ("_spine", "name", "physical", "_since", "_source", "__weakref__")

    def __init__(self, spine: Spine, name: str, since: Frontier) -> None:
        if not spine.since.precedes(since):
            raise TimeTooEarly(f"cannot read {name} since {since}", detail=f"The trace is compacted to {spine.since}.")
        self._hold(spine, name, since)

    def _hold(self, spine: Spine, name: str, since: Frontier) -> None:
        self._spine: Spine | None = spine
        self.name = name
        self.physical = spine.upper
        self._since = since
        self._source: Callable[[], Frontier] | None = None
        spine.register(self)

    @property
    def spine(self) -> Spine:
        """The trace this handle keeps alive."""
        if self._spine is None:
            raise Closed(f"the handle {self.name} was released")
        return self._spine

    @property
    def released(self) -> bool:
        """Whether the hold was given up."""
        return self._spine is None

    @property
    def since(self) -> Frontier:
        """Times beyond it can be told apart; pulled from the source, if there is one."""
        if self._source is not None:
            now = self._source()
            if now.elements != self._since.elements:
                assert self._since.precedes(now), f"the since of {self.name} went back from {self._since} to {now}"
                self._since = now
        return self._since

    def set_since(self, since: Frontier) -> None:
        """Fix the since; it must not go back."""
        if not self.since.precedes(since):
            raise TimeTooEarly(f"cannot move the since of {self.name} back to {since}", detail=f"It is {self.since}.")
        self._source = None
        self._since = since

    def follow(self, source: Callable[[], Frontier]) -> None:
        """Let the since be whatever `source` says when the trace asks; what it says only advances."""
        self._source = source

    def set_physical(self, physical: Frontier) -> None:
        """Give up cutting the trace before `physical`; it must not go back."""
        if physical.elements != self.physical.elements:
            if not self.physical.precedes(physical):
                raise TimeTooEarly(
                    f"cannot move the physical frontier of {self.name} back to {physical}",
                    detail=f"It is {self.physical}.",
                )
            self.physical = physical
            self.spine.physical_moved()

    def batches(self, through: Frontier | None) -> tuple[Batch, ...]:
        """All batches up to an upper, or all."""
        return self.spine.batches_through(through)

    def clone(self, name: str) -> TraceHandle:
        """Another handle on the same trace with the same since, fixed; it may cut the trace from now on."""
        made = TraceHandle.__new__(TraceHandle)
        made._hold(self.spine, name, self.since)  # the trace has what this handle may ask for
        return made

    def release(self) -> None:
        """Give up the hold; may be repeated."""
        spine, self._spine = self._spine, None
        self._source = None
        if spine is not None:
            self._since = self.physical = CLOSED
            spine.unregister(self)

    def __enter__(self) -> TraceHandle:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.release()
