"""What both demos show: the queries that were installed, and how far the data has come."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass
class Standing:
    """An installed query, and what it cost."""

    output: Any
    epoch: int
    first_answer_ms: float


@dataclass
class Progress:
    """What there is to show."""

    seconds: float
    elapsed: float = 0.0
    epoch: int = 0
    changes: int = 0
    rows: int = 0
    queries: dict[str, Standing] = field(default_factory=dict)
