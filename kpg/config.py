"""The settings of a db and their defaults."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Effort = Literal["eager", "default", "lazy"]


@dataclass(frozen=True, slots=True)
class Config:
    """The settings that every worker of a db shares."""

    history: int | None = 0  # epochs before the last sealed one that can still be read; None keeps all
    memory_limit: int | None = None  # bytes
    effort: Effort = "default"  # how eagerly traces merge: see kpg.trace.merge_policy
    max_rounds: int = 10_000_000  # the maximum number of rounds of one recursion
    coordinates: int = 1  # the number of coordinates of a time outside loops
    max_lag: int | None = None  # epochs that an answer may lag behind; None: see kpg.api.answer_lag


CHANGES_LIMIT = 1_000_000  # rows of unread changes before they are summed: tens of megabytes for each output
CHECKPOINT_BYTES = 64 << 20  # log growth that triggers a checkpoint; opening the db reads about this much log
