"""The state that both demos display: the installed queries, and the progress of the data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass
class Standing:
    """An installed query, and the time until its first answer."""

    output: Any
    epoch: int
    first_answer_ms: float


@dataclass
class Progress:
    """The figures on the screen."""

    seconds: float
    elapsed: float = 0.0
    epoch: int = 0
    changes: int = 0
    rows: int = 0
    queries: dict[str, Standing] = field(default_factory=dict)
