"""The updates of one interval of time, sorted, consolidated and immutable.

Sorted by data lanes (the key is the first `key_lanes` of them), then by time; each (data, time) once, no diff zero. What
the batch promises about which times is its `Description`. A batch may be shared by any number of readers.
"""

from __future__ import annotations

from dataclasses import dataclass

from kpg.algebra.frontier import Frontier
from kpg.columns.updates import Updates
from kpg.trace.description import Description


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Sorted updates and what they stand for."""

    updates: Updates
    key_lanes: int
    description: Description

    def __len__(self) -> int:
        return int(self.updates.data.shape[1])

    @property
    def nbytes(self) -> int:
        """What the arrays hold."""
        return self.updates.nbytes

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
