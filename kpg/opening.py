"""Opening a db: in this process, on a thread of its own, or on several workers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, overload

from kpg.api.database import Database
from kpg.config import Config, Effort
from kpg.errors import ProgramError
from kpg.kernels.warm import warm

if TYPE_CHECKING:
    from kpg.api.background import Background


@overload
def open(
    *,
    workers: int = 1,
    history: int | None = 0,
    memory_limit: int | None = None,
    effort: Effort = "default",
    max_rounds: int = 10_000_000,
    coordinates: int = 1,
    background: Literal[False] = False,
) -> Database: ...


@overload
def open(
    *,
    workers: int = 1,
    history: int | None = 0,
    memory_limit: int | None = None,
    effort: Effort = "default",
    max_rounds: int = 10_000_000,
    coordinates: int = 1,
    background: Literal[True],
) -> Background: ...


def open(
    *,
    workers: int = 1,
    history: int | None = 0,
    memory_limit: int | None = None,
    effort: Effort = "default",
    max_rounds: int = 10_000_000,
    coordinates: int = 1,
    background: bool = False,
) -> Database | Background:
    """Open a db.

    workers       processes on this machine that share the work; 1 is this process itself
    history       how many epochs before the last complete one can still be read; None keeps all
    memory_limit  bytes; when the process (each worker) holds more, calls raise OverBudget
    effort        how eagerly indexes merge: eager, default or lazy
    max_rounds    how many rounds a recursion may take before it is stopped
    coordinates   of a time: 1, or more for inputs with several clocks
    background    on a thread of its own, to be used from any thread and from asyncio
    """
    warm()
    config = Config(history, memory_limit, effort, max_rounds, coordinates)
    if workers < 1:
        raise ProgramError(f"a db has at least one worker, not {workers}")
    if workers > 1:
        if background:
            raise ProgramError("workers=N runs in the background already", hint="Leave background=True out.")
        from kpg.cluster.database import ClusterDatabase
        from kpg.cluster.local import LocalProcesses

        return ClusterDatabase(config, workers, LocalProcesses())
    if background:
        from kpg.api.background import Background

        return Background(config)
    return Database(config)
