"""Generations of workers: how they begin, and how a lost one is made good.

    begin(upto)         all workers meet, from nothing or from what all of them have on disk
    lasting(attempt)    do something; if a worker is lost meanwhile, begin again where the last one was, and retry

When a worker is lost on a directory, all go back to the last acknowledged time, are told again what was installed and
what is not acknowledged yet (the script), and whoever was waiting goes on: a pause, not an error. In memory there is
nothing to go back to, and `WorkerLost` is raised.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from functools import reduce
from typing import TypeVar

from kpg.algebra.frontier import Frontier
from kpg.cluster.cluster_directory import ClusterDirectory
from kpg.cluster.coordinator import Coordinator
from kpg.cluster.request_history import RequestHistory
from kpg.config import Config
from kpg.errors import Corrupt, WorkerLost
from kpg.storage.manifest import frontier_from_json, frontier_to_json

Result = TypeVar("Result")
ATTEMPTS = 5  # at one thing, if workers are lost each time
RECOVERIES = 1000  # in the life of a db; more are a fault that recovery does not mend


class Generations:
    """The life of a cluster's workers, as one client sees it."""

    def __init__(self, coordinator: Coordinator, config: Config, home: ClusterDirectory | None) -> None:
        self.script = RequestHistory()
        self.now = Frontier.start(config.coordinates)  # everything before it is acknowledged
        self.recoveries = 0
        self.after_meeting: list[Callable[[], None]] = []  # what else must be put back once all is installed again
        self._coordinator = coordinator
        self._config = config
        self._home = home

    def begin(self, upto: Frontier | None = None) -> None:
        """Let the workers meet: from nothing, or from what all of them have on disk, up to a time if there is one."""
        if self._home is None:
            self._coordinator.meet(asdict(self._config))
            return
        found = self._coordinator.prepare(self._home.place, self._home.durability)
        durable = [frontier_from_json(each["durable"]) for each in found]
        common = set.intersection(*[{frontier_from_json(each) for each in one["checkpoints"]} for one in found])
        upto = reduce(Frontier.meet, durable) if upto is None else upto
        usable = [frontier for frontier in common if frontier.precedes(upto)]
        if not usable:
            raise Corrupt(f"the workers' parts of {self._home.place} do not fit together")
        checkpoint = max(usable, key=lambda frontier: frontier.elements)
        opened = self._coordinator.meet(
            asdict(self._config), upto=frontier_to_json(upto), checkpoint=frontier_to_json(checkpoint)
        )
        self.now = Frontier(tuple(time) for time in opened)

    def lasting(self, attempt: Callable[[], Result]) -> Result:
        """Try something until no worker is lost while it is done."""
        with self._coordinator.lock:
            for _ in range(ATTEMPTS):
                try:
                    return attempt()
                except WorkerLost:
                    if self._home is None:
                        raise
                self.recover()
            return attempt()

    def recover(self) -> None:
        """A worker is gone: have all begin from what was acknowledged, however many more are lost meanwhile."""
        while True:
            self.recoveries += 1
            try:
                self._begin_again()
                return
            except WorkerLost:
                if self.recoveries > RECOVERIES:
                    raise
            except BaseException as error:  # tried again with the next call
                self._coordinator.give_up("the workers could not go on", f"{type(error).__name__}: {error}")
                raise

    def _begin_again(self) -> None:
        """Bring up who is lost, meet, and tell all what there was."""
        self._coordinator.revive()
        self.begin(self.now)
        for request in self.script.structure:
            self._coordinator.ask(request)
        for restore in self.after_meeting:
            restore()
        for told in self.script.open:
            if told.rank < 0:
                self._coordinator.ask(told.request)
            else:
                self._coordinator.tell(told.rank, told.request, told.blocks)
