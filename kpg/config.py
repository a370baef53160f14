"""Settings of a db, and what they are unless said otherwise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Effort = Literal["eager", "default", "lazy"]


@dataclass(frozen=True, slots=True)
class Config:
    """How a db is run."""

    history: int | None = 0  # how many epochs before the last sealed one can still be read; None keeps all
    memory_limit: int | None = None  # bytes
    effort: Effort = "default"  # how eagerly traces merge: see kpg.trace.merge_policy
    max_rounds: int = 10_000_000  # of one recursion
    coordinates: int = 1  # of a time outside loops


CHANGES_LIMIT = 1_000_000  # rows of changes kept for a reader that does not come; more are summed up
CHECKPOINT_BYTES = 64 << 20  # of log, after which a checkpoint is made
