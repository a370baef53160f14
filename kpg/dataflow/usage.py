"""What a dataflow has used, for limits on single queries.

The channels of a dataflow count rows, and a guard of the worker adds CPU time and the state that operators keep
(kpg/api/usage_guard.py). Dataflows without a `DataflowUsage` count nothing.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class DataflowUsage:
    """The use of one dataflow."""

    rows: int = 0  # delivered between its operators since it was complete last
    seconds: float = 0.0  # of CPU time
    answered: bool = False  # whether it was complete once
    kept_rows: int = 0  # at the last measurement
    kept_bytes: int = 0
