"""Generations of workers: how one begins, and how a new one replaces one that lost a worker.

    begin(upto)         all workers connect to each other and start empty, or with the rows that all have on disk
    retrying(attempt)   call a function; if a worker is lost, begin again at the last acknowledged time and retry

When a worker is lost on a directory, all workers go back to the last acknowledged time. They repeat the commands that
are still in effect and get the unacknowledged rows again (`RequestHistory`). The caller sees a pause, not an error. If
workers are lost faster than they can begin again, the call raises `WorkerLost` after `RECOVERY_SECONDS`; nothing
acknowledged is lost, and the next call tries again. A db in memory has no time to go back to: it raises at once.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import reduce
from typing import TypeVar

from kpg.algebra.frontier import Frontier
from kpg.cluster.cluster_directory import ClusterDirectory
from kpg.cluster.coordinator import Coordinator
from kpg.cluster.rank_commands.command_kinds import FrontierSpec
from kpg.cluster.rank_commands.input_commands import DropStoredCommand
from kpg.cluster.rank_commands.lifecycle_commands import ShareSinceCommand
from kpg.cluster.request_history import ALL_RANKS, RequestHistory
from kpg.config import Config
from kpg.errors import ClusterError, Corrupt, WorkerLost

Result = TypeVar("Result")
RECOVERY_SECONDS = (
    60.0  # that one call spends on recoveries; a recovery takes seconds, so more indicate a lasting fault
)


class Generations:
    """The generations of a cluster's workers."""

    def __init__(self, coordinator: Coordinator, config: Config, directory: ClusterDirectory | None) -> None:
        self.history = RequestHistory()
        self.now = Frontier.start(config.coordinates)  # everything before it is acknowledged
        self.checkpoint = self.now  # the frontier of the last checkpoint that all workers have
        self.stored: frozenset[str] = frozenset()  # the relations that all workers had on disk
        self.recoveries = 0
        self.sealed: Callable[[], int | None] = lambda: None  # the last epoch that all answers had, if they may lag
        self.after_recovery: list[Callable[[], None]] = []  # called once the dataflows are installed again
        self._coordinator = coordinator
        self._config = config
        self._directory = directory

    def begin(self, upto: Frontier | None = None) -> None:
        """Begin a generation: empty, or with the rows that all workers have on disk, up to a time if given."""
        if self._directory is None:
            self._coordinator.meet(self._config)
            return
        path = self._directory.path
        recoverable = self._coordinator.prepare(path, self._directory.durability)
        common = set.intersection(*[set(map(Frontier, rank.checkpoints)) for rank in recoverable])
        if upto is None:
            upto = reduce(Frontier.meet, [Frontier(rank.durable) for rank in recoverable])
        usable = [frontier for frontier in common if frontier.precedes(upto)]
        if not usable:
            raise Corrupt(f"the workers' parts of {path} do not fit together")
        self.checkpoint = max(usable, key=lambda frontier: frontier.elements)
        met = self._coordinator.meet(self._config, upto, self.checkpoint, self.sealed())
        self.now = Frontier(met[0].time)
        self._share_since([rank.since for rank in met])
        stored = [set(rank.stored) for rank in met]
        self.stored = frozenset(set.intersection(*stored))
        self._drop_partly_stored(stored)

    def _share_since(self, sinces: list[dict[str, FrontierSpec]]) -> None:
        """Let all workers read the history of a relation from the same time on: the latest that one of them needs."""
        shared: dict[str, Frontier] = {}
        for since in sinces:
            for name, elements in since.items():
                shared[name] = shared[name].join(Frontier(elements)) if name in shared else Frontier(elements)
        self._coordinator.ask(ShareSinceCommand({name: frontier.elements for name, frontier in shared.items()}))

    def _drop_partly_stored(self, stored: list[set[str]]) -> None:
        """Finish drops, and undo declarations, that a lost worker kept the others from completing."""
        partly = {name for names in stored for name in names if any(name not in others for others in stored)}
        if partly:
            self._coordinator.ask(DropStoredCommand(tuple(sorted(partly))))

    def retrying(self, attempt: Callable[[], Result]) -> Result:
        """Call a function again until no worker is lost during the call, or recovering has taken too long."""
        with self._coordinator.lock:
            deadline: float | None = None
            while True:
                try:
                    return attempt()
                except WorkerLost as error:
                    if self._directory is None:
                        raise
                    if deadline is not None and time.monotonic() > deadline:
                        raise self._give_up(error) from None
                deadline = deadline or time.monotonic() + RECOVERY_SECONDS
                self.recover(deadline)

    def recover(self, deadline: float | None = None) -> None:
        """Begin a new generation at the last acknowledged time; try again until a deadline if workers are lost."""
        deadline = deadline or time.monotonic() + RECOVERY_SECONDS
        while True:
            self.recoveries += 1
            try:
                self._begin_again()
                return
            except WorkerLost as error:
                if time.monotonic() > deadline:
                    raise self._give_up(error) from None
            except BaseException as error:  # the next call tries again
                self._coordinator.fail("the workers could not go on", f"{type(error).__name__}: {error}")
                raise

    def _give_up(self, error: WorkerLost) -> ClusterError:
        """End the generation; the next call tries to begin another."""
        return self._coordinator.fail(
            f"workers were lost again and again for {RECOVERY_SECONDS:.0f} s", f"At last: {error.what}."
        )

    def _begin_again(self) -> None:
        """Start the lost workers, begin a generation, and repeat the commands that are still in effect."""
        self._coordinator.restart_lost()
        self.begin(self.now)
        for command in self.history.structure:
            self._coordinator.ask(command)
        for restore in self.after_recovery:
            restore()
        for inserted in self.history.open_rows:
            if inserted.rank == ALL_RANKS:
                self._coordinator.tell_all(inserted.command)
            else:
                self._coordinator.tell(inserted.rank, inserted.command, inserted.blocks)
