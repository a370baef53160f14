"""The progress tracker of one dataflow: counts of pointstamps, and the frontiers that follow from them.

A pointstamp is (location, time). Its count is the number of messages and capabilities at that location and time, summed
over all workers. A worker applies its own changes immediately, and those of its peers when their progress messages
arrive. Each progress message is an atomic set of changes, and the messages of one peer arrive in order. The frontier of
a location L is

    frontier(L)  =  the minimal elements of { s(t) : s in paths(l, L), and (l, t) has a positive count
                                                     or t is in the frontier of a source at l }

It never passes the time of a message that L may still receive (safety), and it advances when the work before L is done
(liveness).

A count is negative for a while if the −1 of one peer arrives before the +1 of another. The tracker then treats it like
zero. That is safe because the capability of the sender still has a positive count: each peer's changes arrive in order.

Cost: a frontier is computed when it is asked for, not when counts change. A dataflow without messages costs nothing,
even if the clock advances often.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kpg.algebra.frontier import CLOSED, Frontier
from kpg.algebra.order import Time
from kpg.progress.reachability import PathFunctions, Reachability

Change = tuple[int, Time, int]  # location, time, difference of the count


class Tracker:
    """Counts of pointstamps over the locations of one dataflow."""

    def __init__(
        self, reachability: Reachability, shared: bool = False, owner: int = 0, changed: set[Tracker] | None = None
    ) -> None:
        self.reachability = reachability
        self.shared = shared  # whether peers must receive the changes
        self.owner = owner  # the id of the dataflow
        self._changed = set() if changed is None else changed  # the trackers of this worker with changed counts
        self.counts: dict[int, dict[Time, int]] = {}
        self.sources: dict[int, Callable[[], Frontier]] = {}
        self.feeders: dict[int, int] = {}  # for each source, the number of workers that have not closed it
        self._unsent: dict[tuple[int, Time], int] = {}
        self._least_epoch = 0  # as it was last computed; it never decreases
        self._version = 0  # increases when a count changes
        self._cache: dict[int, tuple[int, list[Frontier], Frontier]] = {}  # location: version, sources, frontier
        self._reaching: dict[int, tuple[PathFunctions, list[int]]] = {}  # location: paths to it, sources that reach it

    def add_source(
        self, location: int, frontier: Callable[[], Frontier], feeders: int = 1, opening: Iterable[Time] = ()
    ) -> None:
        """Add a source: messages enter at `location` from outside, at times beyond the current `frontier()`.

        `feeders` is the number of workers that may feed it; each of them closes it when done. Each also holds the
        `opening` times until it has built its part of the dataflow, because no count covers its first messages before.
        """
        self.sources[location] = frontier
        self._reaching.clear()
        self.feeders[location] = feeders
        for time in opening:
            self.counts.setdefault(location, {})[time] = feeders

    def close_source(self, location: int) -> None:
        """Declare that this worker has stopped feeding a source."""
        self._close(location)
        if self.shared:
            self._unsent[-1 - location, ()] = -1  # sent in order with all counts; no location is negative
            self._changed.add(self)

    def _close(self, location: int) -> None:
        self.feeders[location] -= 1
        self._version += 1

    @property
    def is_closed(self) -> bool:
        """Whether no source can deliver anything more."""
        return not any(self.source_frontiers())

    @property
    def is_idle(self) -> bool:
        """Whether no message is in flight and no capability is held."""
        return not self.counts

    @property
    def has_unsent(self) -> bool:
        """Whether some changes were not sent to the peers yet."""
        return bool(self._unsent)

    def update(self, location: int, time: Time, difference: int) -> None:
        """Apply a change of this worker, and queue it for the peers."""
        self._version += 1
        counts = self.counts.get(location)
        if counts is None:
            self.counts[location] = {time: difference}
        else:
            total = counts.get(time, 0) + difference
            if total:
                counts[time] = total
            else:
                del counts[time]
                if not counts:
                    del self.counts[location]
        if self.shared:
            self._changed.add(self)
            key = (location, time)
            unsent = self._unsent.get(key, 0) + difference
            if unsent:
                self._unsent[key] = unsent
            else:
                del self._unsent[key]

    def take_changes(self) -> list[Change]:
        """Return the unsent changes as one atomic list, and count them as sent."""
        changes = [(location, time, count) for (location, time), count in self._unsent.items()]
        self._unsent.clear()
        return changes

    def receive(self, changes: Iterable[Change]) -> None:
        """Apply the changes of a peer."""
        self._changed.add(self)
        shared, self.shared = self.shared, False  # not queued again: their sender sends them to every peer
        for location, time, difference in changes:
            if location < 0:
                self._close(-1 - location)
            else:
                self.update(location, time, difference)
        self.shared = shared

    def frontier(self, location: int) -> Frontier:
        """Return the frontier of a location. It is computed again only if counts or sources have changed."""
        paths = self.reachability.path_functions_to(location)
        feeders, frontiers = self.feeders, self.sources
        sources = [frontiers[source]() if feeders[source] else CLOSED for source in self._sources_of(location, paths)]
        cached = self._cache.get(location)
        if cached is not None and cached[0] == self._version and cached[1] == sources:
            return cached[2]
        frontier = self._frontier(location, paths, sources)
        self._cache[location] = (self._version, sources, frontier)
        return frontier

    def source_frontiers(self) -> list[Frontier]:
        """Return the current frontier of each source."""
        feeders = self.feeders
        return [frontier() if feeders[location] else CLOSED for location, frontier in self.sources.items()]

    def _sources_of(self, location: int, paths: PathFunctions) -> list[int]:
        """Return the sources that reach a location: no other affects its frontier."""
        cached = self._reaching.get(location)
        if cached is None or cached[0] is not paths:
            cached = self._reaching[location] = (paths, [source for source in self.sources if source in paths])
        return cached[1]

    def _frontier(self, location: int, paths: PathFunctions, sources: list[Frontier]) -> Frontier:
        times: set[Time] = set()
        for origin, counts in self.counts.items():
            if origin in paths:
                functions = paths[origin]
                for time, count in counts.items():
                    if count > 0:
                        if functions is None:
                            times.add(time)
                        else:
                            for function in functions:
                                times.add(function(time))
        for origin, frontier in zip(self._sources_of(location, paths), sources, strict=True):
            functions = paths[origin]
            if functions is None:
                times.update(frontier.elements)
            else:
                for time in frontier.elements:
                    for function in functions:
                        times.add(function(time))
        return Frontier.at(times.pop()) if len(times) == 1 else Frontier(times)

    def is_settled(self, frontier: Frontier) -> bool:
        """Return whether nothing is in flight or held before a frontier that the clock has reached."""
        depth = len(frontier.elements[0]) if frontier else 0
        for counts in self.counts.values():
            for time, count in counts.items():
                if count > 0 and not frontier.beyond(time[:depth]):
                    return False
        return True

    def least_epoch(self) -> int | None:
        """Return the first epoch that is not complete; None if nothing is in flight and all sources have ended."""
        epochs = [time[0] for frontier in self.source_frontiers() for time in frontier.elements]
        in_flight = self.least_in_flight()
        least = min(epochs if in_flight is None else [*epochs, in_flight], default=None)
        if least is not None:
            self._least_epoch = least
        return least

    def least_in_flight(self) -> int | None:
        """Return the first epoch of a message or capability; None if there is none.

        A recursion may have a message for each of very many rounds of one epoch. No message is before the last known
        `least_epoch`, so the search usually ends with the first message.
        """
        least: int | None = None
        for counts in self.counts.values():
            for time, count in counts.items():
                if count > 0:
                    if time[0] <= self._least_epoch:
                        return time[0]
                    if least is None or time[0] < least:
                        least = time[0]
        return least

    def has_passed(self, location: int, time: Time) -> bool:
        """Return whether nothing at or before `time` can arrive at `location` any more."""
        return not self.frontier(location).beyond(time)
