"""A handle: a reader's claim on a trace.

A handle guarantees a reader two things, and the trace keeps no more than all its handles need:

    since      the trace distinguishes times beyond it; it may compact to the meet of all handles' since
    physical   no batch reaches across this frontier, or across an upper beyond it; batches before it may be merged

A reader sets the since, or ties it to a function that the trace calls before it compacts. Both frontiers only
advance. The physical frontier of a new handle is the upper of the trace, so the reader may ask for the batches through
that upper or any later one. A reader that always reads all batches should set it to the empty frontier; otherwise the
trace cannot merge new batches.

A handle keeps its trace alive, but the trace does not keep its handles alive: it is freed with its last handle.
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
    """Keep a trace readable beyond a frontier, until released."""

    __slots__ = ("_spine", "name", "_physical", "_physical_source", "_since", "_source", "_floor", "__weakref__")

    def __init__(self, spine: Spine, name: str, since: Frontier) -> None:
        if not spine.since.precedes(since):
            raise TimeTooEarly(f"cannot read {name} since {since}", detail=f"The trace is compacted to {spine.since}.")
        self._claim(spine, name, since)

    def _claim(self, spine: Spine, name: str, since: Frontier) -> None:
        self._spine: Spine | None = spine
        self.name = name
        self._physical = spine.upper
        self._physical_source: Callable[[], Frontier] | None = None
        self._since = since
        self._source: Callable[[], Frontier] | None = None
        self._floor = since
        spine.register(self)

    @property
    def spine(self) -> Spine:
        """The trace that this handle keeps alive."""
        if self._spine is None:
            raise Closed(f"the handle {self.name} was released")
        return self._spine

    @property
    def released(self) -> bool:
        """Whether the handle was released."""
        return self._spine is None

    @property
    def since(self) -> Frontier:
        """The frontier beyond which the reader distinguishes times, fixed or computed by the function of `follow`."""
        if self._source is not None:
            now = self._source()
            if now.elements != self._since.elements:
                if not self._since.precedes(now):
                    now = now.join(self._floor)  # a new reader may still have constants from before the trace's since
                assert self._since.precedes(now), f"the since of {self.name} went back from {self._since} to {now}"
                self._since = now
        return self._since

    def set_since(self, since: Frontier) -> None:
        """Set the since to a fixed frontier. It must not move back."""
        if not self.since.precedes(since):
            raise TimeTooEarly(f"cannot move the since of {self.name} back to {since}", detail=f"It is {self.since}.")
        self._source = None
        self._since = since

    def follow(self, source: Callable[[], Frontier]) -> None:
        """Tie the since to the result of `source()`, which must never move back. Before the present since it waits."""
        self._source = source
        self._floor = self._since

    @property
    def physical(self) -> Frontier:
        """The frontier across which no batch reaches, fixed or computed by the function of `follow_physical`."""
        return self._physical if self._physical_source is None else self._physical_source()

    @property
    def follows_physical(self) -> bool:
        """Whether a function computes the physical frontier."""
        return self._physical_source is not None

    def follow_physical(self, source: Callable[[], Frontier]) -> None:
        """Tie the physical frontier to the result of `source()`, which must never move back."""
        self._physical_source = source
        self.spine.invalidate_physical()

    def set_physical(self, physical: Frontier) -> None:
        """Allow merges across frontiers before `physical`, a fixed one from now on. It must not move back."""
        if self._physical_source is not None:
            self._physical, self._physical_source = self._physical_source(), None
            self.spine.invalidate_physical()
        if physical.elements != self._physical.elements:
            if not self._physical.precedes(physical):
                raise TimeTooEarly(
                    f"cannot move the physical frontier of {self.name} back to {physical}",
                    detail=f"It is {self._physical}.",
                )
            self._physical = physical
            (self._spine or self.spine).invalidate_physical()

    def acknowledge(self, upper: Frontier) -> None:
        """Set the physical frontier to an upper that the reader has processed, unless a function computes it."""
        if self._physical_source is None and upper is not self._physical:
            self.set_physical(upper)

    def batches(self, through: Frontier | None) -> tuple[Batch, ...]:
        """Return the batches through an upper, oldest first; all batches for None."""
        return (self._spine or self.spine).batches_through(through)

    def clone(self, name: str, since: Frontier | None = None) -> TraceHandle:
        """Return another handle on the trace, with the present since of this one and the present upper as physical.

        The caller may give the since, if it has just read it.
        """
        handle = TraceHandle.__new__(TraceHandle)
        spine = self._spine or self.spine
        handle._claim(spine, name, self.since if since is None else since)  # no check: this handle guarantees it
        return handle

    def release(self) -> None:
        """Release the trace. A second call has no effect."""
        spine, self._spine = self._spine, None
        self._source = None
        if spine is not None:
            self._since = self._physical = CLOSED
            self._physical_source = None
            spine.unregister(self)

    def __enter__(self) -> TraceHandle:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.release()
