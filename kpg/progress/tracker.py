"""The progress of one dataflow: counts of what is in flight, and the frontiers that follow from them.

A pointstamp is (location, time). Its count is the number of messages and capabilities there, summed over all workers;
a worker sees its own changes at once and those of its peers as their messages arrive, each an atomic set of changes
in the order they were made. Then, for every location L,

    frontier(L)  =  the minimal elements of { s(t) : (l, t) has a positive count, s in paths(l, L) }
                    together with the frontiers of the sources that reach L

is never beyond a message that L may still receive (safety), and advances when the work before L is done (liveness).
A count may be negative for a while, when a peer's −1 overtakes another peer's +1: it is then simply not positive; the
matching positive counts of the sender's capability still stand, because each peer's changes arrive in order.

Frontiers are pulled, not pushed: a dataflow in which nothing moves costs nothing, however often the clock advances.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kpg.algebra.frontier import CLOSED, Frontier
from kpg.algebra.order import Time
from kpg.progress.reachability import Reachability, Ways

Change = tuple[int, Time, int]  # location, time, difference of count


class Tracker:
    """Counts of pointstamps over one graph of locations."""

    def __init__(
        self, reachability: Reachability, shared: bool = False, owner: int = 0, touched: set[Tracker] | None = None
    ) -> None:
        self.reachability = reachability
        self.shared = shared  # whether there are peers to tell
        self.owner = owner  # the dataflow that this is the progress of
        self._touched = set() if touched is None else touched  # by changes of counts, ours or a peer's, with others
        self.counts: dict[int, dict[Time, int]] = {}
        self.sources: dict[int, Callable[[], Frontier]] = {}
        self.feeders: dict[int, int] = {}  # of each source: how many workers have not closed it
        self._unsent: dict[tuple[int, Time], int] = {}
        self._version = 0  # of the counts
        self._known: dict[int, tuple[int, list[Frontier], Frontier]] = {}  # location: version, sources, frontier
        self._reaching: dict[int, tuple[Ways, list[int]]] = {}  # by location: the sources that reach it, by which ways

    def add_source(
        self, location: int, frontier: Callable[[], Frontier], feeders: int = 1, opening: Iterable[Time] = ()
    ) -> None:
        """Say that messages enter at `location` from outside, never before what `frontier` then returns.

        `feeders` workers may feed it, until each has closed it. Each holds the `opening` times until it has built its
        part of the dataflow, since what it will feed first is counted by nobody yet.
        """
        self.sources[location] = frontier
        self._reaching.clear()
        self.feeders[location] = feeders
        for time in opening:
            self.counts.setdefault(location, {})[time] = feeders

    def close_source(self, location: int) -> None:
        """This worker will feed a source no more."""
        self._close(location)
        if self.shared:
            self._unsent[-1 - location, ()] = -1  # told in order with all counts; no location is negative
            self._touched.add(self)

    def _close(self, location: int) -> None:
        self.feeders[location] -= 1
        self._version += 1

    @property
    def closed(self) -> bool:
        """Whether nothing comes from outside any more."""
        return not any(self.now())

    @property
    def idle(self) -> bool:
        """Whether nothing at all is in flight."""
        return not self.counts

    @property
    def untold(self) -> bool:
        """Whether peers have not been told all."""
        return bool(self._unsent)

    def update(self, location: int, time: Time, difference: int) -> None:
        """Count a change made by this worker, to be told to its peers."""
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
            self._touched.add(self)
            key = (location, time)
            unsent = self._unsent.get(key, 0) + difference
            if unsent:
                self._unsent[key] = unsent
            else:
                del self._unsent[key]

    def take_changes(self) -> list[Change]:
        """What the peers have not been told, as one atomic list."""
        changes = [(location, time, count) for (location, time), count in self._unsent.items()]
        self._unsent.clear()
        return changes

    def receive(self, changes: Iterable[Change]) -> None:
        """Count the changes of a peer."""
        self._touched.add(self)
        shared, self.shared = self.shared, False  # what a peer said needs no telling
        for location, time, difference in changes:
            if location < 0:
                self._close(-1 - location)
            else:
                self.update(location, time, difference)
        self.shared = shared

    def frontier(self, location: int) -> Frontier:
        """What may still arrive at `location`; computed anew only if counts or sources have changed."""
        reaching = self.reachability.ways_to(location)
        feeders, frontiers = self.feeders, self.sources
        sources = [frontiers[place]() if feeders[place] else CLOSED for place in self._sources_of(location, reaching)]
        known = self._known.get(location)
        if known is not None and known[0] == self._version and known[1] == sources:
            return known[2]
        found = self._frontier(location, reaching, sources)
        self._known[location] = (self._version, sources, found)
        return found

    def now(self) -> list[Frontier]:
        """What may still come from each source."""
        feeders = self.feeders
        return [frontier() if feeders[location] else CLOSED for location, frontier in self.sources.items()]

    def _sources_of(self, location: int, reaching: Ways) -> list[int]:
        """The sources that reach a location: others need not be asked."""
        found = self._reaching.get(location)
        if found is None or found[0] is not reaching:
            found = self._reaching[location] = (reaching, [place for place in self.sources if place in reaching])
        return found[1]

    def _frontier(self, location: int, reaching: Ways, sources: list[Frontier]) -> Frontier:
        times: set[Time] = set()
        for place, counts in self.counts.items():
            if place in reaching:
                ways = reaching[place]
                for time, count in counts.items():
                    if count > 0:
                        if ways is None:
                            times.add(time)
                        else:
                            for way in ways:
                                times.add(way(time))
        for place, frontier in zip(self._sources_of(location, reaching), sources, strict=True):
            ways = reaching[place]
            if ways is None:
                times.update(frontier.elements)
            else:
                for time in frontier.elements:
                    for way in ways:
                        times.add(way(time))
        return Frontier.at(times.pop()) if len(times) == 1 else Frontier(times)

    def settled(self, frontier: Frontier) -> bool:
        """Whether nothing is in flight or held before a frontier, which the clock has reached."""
        depth = len(frontier.elements[0]) if frontier else 0
        for counts in self.counts.values():
            for time, count in counts.items():
                if count > 0 and not frontier.beyond(time[:depth]):
                    return False
        return True

    def passed(self, location: int, time: Time) -> bool:
        """Whether nothing at or before `time` can arrive at `location` any more."""
        return not self.frontier(location).beyond(time)
