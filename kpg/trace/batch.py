"""The updates of one interval of time, sorted, consolidated and immutable.

Sorted by data lanes (the key is the first `key_lanes` of them), then by time; each (data, time) once, no diff zero.
What the batch promises about which times is its `Description`. A batch may be shared by any number of readers.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kpg.algebra.frontier import Frontier
from kpg.algebra.order import Time
from kpg.columns.updates import Updates
from kpg.trace.batch_table import Row, describe
from kpg.trace.description import Description
from kpg.trace.lookup_table import LEAST, NONE, WORTH, LookupTable, signposts_of


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Sorted updates and what they stand for."""

    updates: Updates
    key_lanes: int
    description: Description
    _row: Row | None = field(default=None, init=False, repr=False)
    _asked: int = field(default=0, init=False, repr=False)  # keys that were looked for, until it has signposts
    _signposts: LookupTable | None = field(default=None, init=False, repr=False)
    _earliest: tuple[Time, ...] | None = field(default=None, init=False, repr=False)

    def __len__(self) -> int:
        return int(self.updates.data.shape[1])

    @property
    def row(self) -> Row:
        """Where its arrays lie, worked out when first asked: see kpg.trace.batch_table."""
        if self._row is None:
            object.__setattr__(self, "_row", describe(self.updates, self._signposts or NONE))
        assert self._row is not None
        return self._row

    def row_for(self, keys: int) -> Row:
        """The same for one who will look for so many keys: with signposts once that was asked often enough."""
        if self._signposts is None:
            self._ask(keys)
        return self._row or self.row

    def _ask(self, keys: int) -> None:
        """Note that so many keys are looked for; make signposts if that pays now, or never will."""
        rows, asked = self.updates.data.shape[1], self._asked + keys
        object.__setattr__(self, "_asked", asked)
        if rows < LEAST or asked * WORTH >= rows:
            data = self.updates.data
            made = NONE if rows < LEAST else signposts_of(data[0], alone=data.shape[0] == 1)
            object.__setattr__(self, "_signposts", made)
            object.__setattr__(self, "_row", None)

    @property
    def nbytes(self) -> int:
        """What the arrays hold."""
        return self.updates.nbytes + (0 if self._signposts is None else self._signposts.at.nbytes)

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
