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

    a message for a peer is among them, or a source was closed, or they are of many epochs, or
    a −1 at (l, t) is not *covered*: no pointstamp of this worker at some (l', t'), t' ≤ t, holds back others as much,
    nor do several together if there are no loops

A covered −1 advances no frontier that a peer waits for. In particular a worker that has received a part of the rows of
a round sends nothing; after the round it sends one message.

**Liveness.** Suppose that no worker has work and no frame is in transit. Take a minimal pointstamp that exists: it is a
capability of some worker w. It is not due, so w counts something before it that does not exist: a peer has not sent a
−1. That −1 is covered by a pointstamp that exists and holds back w there as much, so the first one was not minimal.
Hence no pointstamp exists, and all work is done.

Cost: a frontier is computed when it is asked for, not when counts change. A dataflow without messages costs nothing,
even if the clock advances often.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from kpg.algebra.frontier import CLOSED, Frontier
from kpg.algebra.order import Time, less_equal
from kpg.progress.pointstamps import Pointstamps
from kpg.progress.reachability import PathFunctions, Reachability, Reaching

COVERED_EPOCHS = 8  # that are not sent, so that a worker with many waiting epochs does not compare all of them
Change = tuple[int, int, Time, int]  # worker, location, time, difference of the count


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
        self.own = Pointstamps()  # of this worker
        self.others = Pointstamps()  # of all other workers together
        self.sources: dict[int, Callable[[], Frontier]] = {}
        self.feeders: dict[int, int] = {}  # for each source, the number of workers that have not closed it
        self.version = 0  # increases when a count changes
        self._given_up = Pointstamps()  # unsent changes of own pointstamps, negated
        self._for_peers: dict[tuple[int, int, Time], int] = {}  # unsent changes of other pointstamps, and of sources
        self._least_epoch = 0  # as it was last computed; it never decreases
        self._cache: dict[int, tuple[int, list[Frontier], Frontier]] = {}  # location: version, sources, frontier
        self._local_cache: dict[int, tuple[int, list[Frontier], Frontier]] = {}  # the same for local frontiers
        self._reaching: dict[int, tuple[int, list[int]]] = {}  # location: edges of the graph, sources that reach it

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
            self.own.add(location, time, 1)
            if feeders > 1:
                self.others.add(location, time, feeders - 1)

    def close_source(self, location: int) -> None:
        """Declare that this worker has stopped feeding a source."""
        self._close(location)
        if self.shared:
            self._for_peers[self.worker, -1 - location, ()] = -1  # in order with all counts; no location is negative
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
        return bool(self._given_up) or bool(self._for_peers)

    def update(self, location: int, time: Time, difference: int, worker: int | None = None) -> None:
        """Apply a change by this worker to the count of its own pointstamp, or that of another worker."""
        own = worker is None or worker == self.worker
        (self.own if own else self.others).add(location, time, difference)
        self.version += 1
        if self.shared:
            self._changed.add(self)
            if own:
                self._given_up.add(location, time, -difference)
            else:
                assert worker is not None
                key = (worker, location, time)
                unsent = self._for_peers.get(key, 0) + difference
                if unsent:
                    self._for_peers[key] = unsent
                else:
                    del self._for_peers[key]

    # Between workers

    def must_send(self) -> bool:
        """Return whether a peer may wait for an unsent change."""
        if self._for_peers:
            return True
        if not self._given_up:
            return False
        sets = self.reachability.covering_sets()
        if sets is None:
            return self._any_uncovered()
        if self._given_up.epochs() > COVERED_EPOCHS:
            return True
        for locations in sets:
            given_up = self._given_up.first_epoch(locations)
            if given_up is not None and self.own.first_epoch(locations, through=given_up) is None:
                return True
        return False

    def _any_uncovered(self) -> bool:
        for location, counts in self._given_up.items():
            for time, count in counts.items():
                if count > 0 and not self._is_covered(location, time):
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
        me = self.worker
        changes = [
            (me, location, time, -count)
            for location, counts in self._given_up.items()
            for time, count in counts.items()
        ]
        changes += [(*key, count) for key, count in self._for_peers.items()]
        self._given_up.clear()
        self._for_peers.clear()
        return changes

    def receive(self, changes: Iterable[Change]) -> None:
        """Apply the changes of a peer."""
        self._changed.add(self)
        for worker, location, time, difference in changes:
            if location < 0:
                self._close(-1 - location)
            else:
                (self.own if worker == self.worker else self.others).add(location, time, difference)
                self.version += 1

    # Frontiers

    def frontier(self, location: int) -> Frontier:
        """Return a frontier of a location that holds on all workers."""
        return self._cached(self._cache, location, local=False)

    def local_frontier(self, location: int) -> Frontier:
        """Return the frontier of a location on this worker."""
        if not self.shared:
            return self.frontier(location)
        return self._cached(self._local_cache, location, local=True)

    def _cached(self, cache: dict[int, tuple[int, list[Frontier], Frontier]], location: int, local: bool) -> Frontier:
        """Return a frontier. It is computed again only if counts or sources have changed."""
        feeders, frontiers = self.feeders, self.sources
        origins = self._sources_of(location)
        sources = [frontiers[source]() if feeders[source] else CLOSED for source in origins]
        cached = cache.get(location)
        if cached is not None and cached[0] == self.version and cached[1] == sources:
            return cached[2]
        reaching = self.reachability.reaching(location)
        if reaching is None:
            frontier = self._frontier_of_times(location, local, origins, sources)
        else:
            frontier = self._frontier_of_epochs(reaching, local, sources)
        cache[location] = (self.version, sources, frontier)
        return frontier

    def _frontier_of_epochs(self, reaching: Reaching, local: bool, sources: list[Frontier]) -> Frontier:
        """Return the frontier of a location outside of loops."""
        first = self.own.first_epoch(reaching.all)
        if self.others:
            theirs = self.others.first_epoch(reaching.crossing if local else reaching.all)
            if first is None or (theirs is not None and theirs < first):
                first = theirs
        for frontier in sources:
            for time in frontier.elements:
                if first is None or time[0] < first:
                    first = time[0]
        return CLOSED if first is None else Frontier.at((first,))

    def _frontier_of_times(self, location: int, local: bool, origins: list[int], sources: list[Frontier]) -> Frontier:
        """Return the frontier of a location in a loop, or at times of several coordinates."""
        paths = self.reachability.path_functions_to(location)
        times: set[Time] = set()
        add_times(times, self.own, paths)
        if self.others:
            add_times(times, self.others, self.reachability.crossing_paths_to(location) if local else paths)
        for origin, source in zip(origins, sources, strict=True):
            functions = paths[origin]
            if functions is None:
                times.update(source.elements)
            else:
                for time in source.elements:
                    for function in functions:
                        times.add(function(time))
        return Frontier.at(times.pop()) if len(times) == 1 else Frontier(times)

    def source_frontiers(self) -> list[Frontier]:
        """Return the current frontier of each source."""
        feeders = self.feeders
        return [frontier() if feeders[location] else CLOSED for location, frontier in self.sources.items()]

    def _sources_of(self, location: int) -> list[int]:
        """Return the sources that reach a location: no other affects its frontier."""
        cached, reachability = self._reaching.get(location), self.reachability
        if cached is None or cached[0] != reachability.edges:
            found = [source for source in self.sources if reachability.reaches(source, location)]
            cached = self._reaching[location] = (reachability.edges, found)
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


def add_times(times: set[Time], all_counts: Pointstamps, paths: PathFunctions) -> None:
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
