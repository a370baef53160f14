"""The progress tracker of one dataflow: counts of pointstamps, and the frontiers that follow from them.

A pointstamp is (worker, location, time). Its count is the number of messages for, and capabilities of, that worker at
that location and time. A worker applies its own changes immediately, and those of its peers when their progress
messages arrive. Each progress message is an atomic set of changes, and the messages of one peer arrive in order. A
worker w counts its own pointstamps apart from those of all others, which it adds up. The frontiers of a location L are

    local_frontier(L)  =  the minimal elements of { s(t) : s in paths(l, L), and (w, l, t) has a positive count, or
                                                           s in crossing_paths(l, L), and (others, l, t) has, or
                                                           s in paths(l, L), and t is in the frontier of a source at l }
    frontier(L)        =  the same with paths in place of crossing_paths: a lower bound for L on every worker

The local frontier never passes the time of a message that L on this worker may still receive (safety), and it advances
when the work before it is done (liveness). It passes messages for L on other workers: they must come back to this one
on a path that crosses, and are later then.

**Safety.** Consider the graph with two copies of each location: one for this worker, one for all others. Every step of
any worker is one of this graph: it consumes messages and capabilities, and produces others along edges of the graph.
Counts over such a graph, with changes that arrive atomically and in order for each peer, never let a frontier pass a
message (the protocol of Naiad). A count is negative for a while if the −1 of one peer arrives before the +1 of another.
The tracker then treats it like zero. That is safe because the capability of the sender still has a positive count.

**Which changes are sent.** Delaying changes is always safe, if they stay one atomic set. They `must_send` if

    a message for a peer is among them, or a source was closed, or
    a −1 at (l, t) is not *covered*: no pointstamp of this worker at some (l', t'), t' ≤ t, holds back others as much

A covered −1 advances no frontier that a peer waits for. In particular a worker that has received a part of the rows of
a round sends nothing; after the round it sends one message.

**Liveness.** Suppose that no worker has work and no frame is in transit. Take a minimal pointstamp that exists: it is a
capability of some worker w. It is not due, so w counts something before it that does not exist: a peer has not sent a
−1. That −1 is covered by a pointstamp that exists and holds back w as much, so the first one was not minimal. Hence no
pointstamp exists, and all work is done.

Cost: a frontier is computed when it is asked for, not when counts change. A dataflow without messages costs nothing,
even if the clock advances often.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from kpg.algebra.frontier import CLOSED, Frontier
from kpg.algebra.order import Time, less_equal
from kpg.progress.reachability import PathFunctions, Reachability

Change = tuple[int, int, Time, int]  # worker, location, time, difference of the count
Counts = dict[int, dict[Time, int]]  # by location and time


class Tracker:
    """Counts of pointstamps over the locations of one dataflow."""

    def __init__(
        self,
        reachability: Reachability,
        shared: bool = False,
        owner: int = 0,
        changed: set[Tracker] | None = None,
        worker: int = 0,
    ) -> None:
        self.reachability = reachability
        self.shared = shared  # whether peers must receive the changes
        self.owner = owner  # the id of the dataflow
        self.worker = worker
        self._changed = set() if changed is None else changed  # the trackers of this worker with changed counts
        self.own: Counts = {}  # of this worker
        self.others: Counts = {}  # of all other workers together
        self.sources: dict[int, Callable[[], Frontier]] = {}
        self.feeders: dict[int, int] = {}  # for each source, the number of workers that have not closed it
        self.version = 0  # increases when a count changes
        self._unsent: dict[tuple[int, int, Time], int] = {}
        self._least_epoch = 0  # as it was last computed; it never decreases
        self._cache: dict[int, tuple[int, list[Frontier], Frontier]] = {}  # location: version, sources, frontier
        self._local_cache: dict[int, tuple[int, list[Frontier], Frontier]] = {}  # the same for local frontiers
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
            self.own.setdefault(location, {})[time] = 1
            if feeders > 1:
                self.others.setdefault(location, {})[time] = feeders - 1

    def close_source(self, location: int) -> None:
        """Declare that this worker has stopped feeding a source."""
        self._close(location)
        if self.shared:
            self._unsent[self.worker, -1 - location, ()] = -1  # in order with all counts; no location is negative
            self._changed.add(self)

    def _close(self, location: int) -> None:
        self.feeders[location] -= 1
        self.version += 1

    @property
    def is_closed(self) -> bool:
        """Whether no source can deliver anything more."""
        return not any(self.source_frontiers())

    @property
    def is_idle(self) -> bool:
        """Whether no message is in flight and no capability is held, on any worker."""
        return not self.own and not self.others

    @property
    def has_unsent(self) -> bool:
        """Whether some changes were not sent to the peers yet."""
        return bool(self._unsent)

    def update(self, location: int, time: Time, difference: int, worker: int | None = None) -> None:
        """Apply a change by this worker to the count of its own pointstamp, or that of another worker."""
        if worker is None:
            worker = self.worker
        self._apply(self.own if worker == self.worker else self.others, location, time, difference)
        if self.shared:
            self._changed.add(self)
            key = (worker, location, time)
            unsent = self._unsent.get(key, 0) + difference
            if unsent:
                self._unsent[key] = unsent
            else:
                del self._unsent[key]

    def _apply(self, all_counts: Counts, location: int, time: Time, difference: int) -> None:
        self.version += 1
        counts = all_counts.get(location)
        if counts is None:
            all_counts[location] = {time: difference}
        else:
            total = counts.get(time, 0) + difference
            if total:
                counts[time] = total
            else:
                del counts[time]
                if not counts:
                    del all_counts[location]

    # Between workers

    def must_send(self) -> bool:
        """Return whether a peer may wait for an unsent change."""
        me = self.worker
        for (worker, location, time), difference in self._unsent.items():
            if worker != me or location < 0:
                return True
            if difference < 0 and not self._is_covered(location, time):
                return True
        return False

    def _is_covered(self, location: int, time: Time) -> bool:
        """Return whether a pointstamp of this worker holds back its peers as much as one at this location and time."""
        for other, counts in self.own.items():
            if self.reachability.covers(other, location):
                for held, count in counts.items():
                    if count > 0 and less_equal(held, time):
                        return True
        return False

    def take_changes(self) -> list[Change]:
        """Return the unsent changes as one atomic list, and count them as sent."""
        changes = [(*key, count) for key, count in self._unsent.items()]
        self._unsent.clear()
        return changes

    def receive(self, changes: Iterable[Change]) -> None:
        """Apply the changes of a peer."""
        self._changed.add(self)
        for worker, location, time, difference in changes:
            if location < 0:
                self._close(-1 - location)
            else:
                self._apply(self.own if worker == self.worker else self.others, location, time, difference)

    # Frontiers

    def frontier(self, location: int) -> Frontier:
        """Return a frontier of a location that holds on all workers."""
        paths = self.reachability.path_functions_to(location)
        return self._cached(self._cache, location, paths, paths)

    def local_frontier(self, location: int) -> Frontier:
        """Return the frontier of a location on this worker."""
        if not self.shared:
            return self.frontier(location)
        paths = self.reachability.path_functions_to(location)
        return self._cached(self._local_cache, location, paths, self.reachability.crossing_paths_to(location))

    def _cached(
        self,
        cache: dict[int, tuple[int, list[Frontier], Frontier]],
        location: int,
        paths: PathFunctions,
        others_paths: PathFunctions,
    ) -> Frontier:
        """Return a frontier. It is computed again only if counts or sources have changed."""
        feeders, frontiers = self.feeders, self.sources
        sources = [frontiers[source]() if feeders[source] else CLOSED for source in self._sources_of(location, paths)]
        cached = cache.get(location)
        if cached is not None and cached[0] == self.version and cached[1] == sources:
            return cached[2]
        times: set[Time] = set()
        add_times(times, self.own, paths)
        if self.others:
            add_times(times, self.others, others_paths)
        for origin, source in zip(self._sources_of(location, paths), sources, strict=True):
            functions = paths[origin]
            if functions is None:
                times.update(source.elements)
            else:
                for time in source.elements:
                    for function in functions:
                        times.add(function(time))
        frontier = Frontier.at(times.pop()) if len(times) == 1 else Frontier(times)
        cache[location] = (self.version, sources, frontier)
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

    def all_counts(self) -> Iterator[dict[Time, int]]:
        """Yield the counts of each location, those of this worker and those of all others."""
        yield from self.own.values()
        yield from self.others.values()

    def is_settled(self, frontier: Frontier) -> bool:
        """Return whether nothing is in flight or held before a frontier that the clock has reached."""
        depth = len(frontier.elements[0]) if frontier else 0
        for counts in self.all_counts():
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
        for counts in self.all_counts():
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


def add_times(times: set[Time], all_counts: Counts, paths: PathFunctions) -> None:
    """Add the times to which the positive counts of some pointstamps lead on paths."""
    for origin, counts in all_counts.items():
        if origin in paths:
            functions = paths[origin]
            for time, count in counts.items():
                if count > 0:
                    if functions is None:
                        times.add(time)
                    else:
                        for function in functions:
                            times.add(function(time))
