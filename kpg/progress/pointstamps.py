"""Counts of pointstamps by location and time, and the first epoch of those at some locations.

    stamps.add(location, time, 1)          count one more
    stamps[location][time]                 the count; never zero, for a while perhaps negative
    stamps.first_epoch(locations)          min { t[0] : l in locations, (l, t) has a positive count }; None without one

`locations` is a set of bits. A long chain of operators has many locations that wait, each with many epochs if it lags,
and asks for a frontier after each step. So the locations of each epoch are kept as a set of bits, too, from the first
question on. Cost: a question visits the epochs in order until one has a pointstamp there, mostly the first.
"""

from __future__ import annotations

from kpg.algebra.order import Time


class Pointstamps(dict[int, dict[Time, int]]):
    """Counts by location and time."""

    __slots__ = ("_at_epoch", "_epochs", "_times")

    def __init__(self) -> None:
        super().__init__()
        self._at_epoch: dict[int, int] | None = (
            None  # the locations with a positive count, as bits; None: not asked yet
        )
        self._times: dict[tuple[int, int], int] = {}  # of a location and an epoch: those with a positive count
        self._epochs: list[int] | None = None  # sorted; None if they have changed

    def add(self, location: int, time: Time, difference: int) -> None:
        """Change the count at a location and a time."""
        counts = self.get(location)
        if counts is None:
            before, total = 0, difference
            self[location] = {time: difference}
        else:
            before = counts.get(time, 0)
            total = before + difference
            if total:
                counts[time] = total
            else:
                del counts[time]
                if not counts:
                    del self[location]
        if self._at_epoch is not None and (before > 0) != (total > 0):
            self._note(location, time[0], 1 if total > 0 else -1)

    def first_epoch(self, locations: int, through: int | None = None) -> int | None:
        """Return the first epoch, at most `through`, with a positive count at one of these locations."""
        if not self:
            return None
        at_epoch = self._locations()
        if self._epochs is None:
            self._epochs = sorted(at_epoch)
        for epoch in self._epochs:
            if through is not None and epoch > through:
                return None
            if at_epoch[epoch] & locations:
                return epoch
        return None

    def epochs(self) -> int:
        """Return the number of epochs with a positive count."""
        return len(self._locations())

    def _locations(self) -> dict[int, int]:
        """Return the locations with a positive count, as bits, by epoch."""
        if self._at_epoch is None:
            self._at_epoch = {}
            for location, counts in self.items():
                for time, count in counts.items():
                    if count > 0:
                        self._note(location, time[0], 1)
        return self._at_epoch

    def clear(self) -> None:
        """Remove all counts."""
        super().clear()
        self._at_epoch = self._epochs = None
        self._times.clear()

    def _note(self, location: int, epoch: int, difference: int) -> None:
        """Note that a time of an epoch has a positive count at a location, or has no longer."""
        at_epoch = self._at_epoch
        assert at_epoch is not None
        times = self._times.get((location, epoch), 0) + difference
        if times:
            self._times[location, epoch] = times
        else:
            del self._times[location, epoch]
        if times != (difference > 0):
            return
        there = at_epoch.get(epoch, 0)
        left = there ^ (1 << location)
        if not there:
            self._epochs = None
        if left:
            at_epoch[epoch] = left
        else:
            del at_epoch[epoch]
            self._epochs = None
