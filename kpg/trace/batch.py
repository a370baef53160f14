"""The updates of one interval of time, sorted, consolidated and immutable.

Sorted by data lanes (the key is the first `key_lanes` of them), then by time; each (data, time) once, no diff zero.
What the batch promises about which times is its `Description`. A batch may be shared by any number of readers.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kpg.algebra.frontier import Frontier
from kpg.algebra.order import Time
from kpg.columns.updates import Updates
from kpg.trace.description import Description
from kpg.trace.directory import LEAST, NONE, WORTH, Directory, directory_of
from kpg.trace.table import Row, Signs, describe, signs_of


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Sorted updates and what they stand for."""

    updates: Updates
    key_lanes: int
    description: Description
    _row: Row | None = field(default=None, init=False, repr=False)
    _signs: Signs | None = field(default=None, init=False, repr=False)
    _directory: Directory = field(default=NONE, init=False, repr=False)
    _asked: int = field(default=0, init=False, repr=False)
    _earliest: tuple[Time, ...] | None = field(default=None, init=False, repr=False)

    def __len__(self) -> int:
        return int(self.updates.data.shape[1])

    @property
    def row(self) -> Row:
        """Where its arrays lie, worked out when first asked: see kpg.trace.table."""
        if self._row is None:
            signs = signs_of(self.updates)
            object.__setattr__(self, "_signs", signs)
            object.__setattr__(self, "_row", describe(self.updates, signs))
        assert self._row is not None
        return self._row

    def directory(self, keys: int) -> Directory:
        """Where its keys are, for one who looks for so many of them: made once that pays, until then `NONE`."""
        if self._directory is NONE and len(self) >= LEAST and self.updates.data.shape[0]:
            object.__setattr__(self, "_asked", self._asked + keys)
            if self._asked * WORTH >= len(self):
                object.__setattr__(self, "_directory", directory_of(self.updates, self.row))
        return self._directory

    @property
    def nbytes(self) -> int:
        """What the arrays hold."""
        signs = 0 if self._signs is None else self._signs.at.nbytes
        return self.updates.nbytes + signs + self._directory.offsets.nbytes

    @property
    def earliest(self) -> tuple[Time, ...]:
        """Times that are together at or before all of it."""
        if self._earliest is None:
            times = self.updates.times
            found = (tuple(times[:, 0].tolist()),) if times.shape[1] == 1 else self.lower.elements
            object.__setattr__(self, "_earliest", found)
        assert self._earliest is not None
        return self._earliest

    @property
    def lower(self) -> Frontier:
        """Every update is at a time beyond it."""
        return self.description.lower

    @property
    def upper(self) -> Frontier:
        """No true update is at a time beyond it."""
        return self.description.upper

    @property
    def since(self) -> Frontier:
        """Only times beyond it can be told apart."""
        return self.description.since
