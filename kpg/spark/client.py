"""A db, seen from a task or planner of Spark: connections to its coordinator and ranks, kept between tasks.

Python workers of Spark are used again, so a connection made by one task serves the next. A coordinator that does not
answer on a kept connection is asked once more on a new one. Texts that were told to ranks are remembered in a table
that is begun anew, with new connections, when it has grown large.
"""

from __future__ import annotations

import os
from typing import Any

from kpg.cluster.data_connections import DataClient
from kpg.columns.symbols import Symbols
from kpg.errors import Unreachable
from kpg.spark.site import RelationPlacement, Site

TEXTS = 1 << 20  # more than these are forgotten


class Client:
    """The connections of this process to one db."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.process = os.getpid()
        self._secret = bytes.fromhex(site.secret)
        self._coordinator: DataClient | None = None
        self._ranks: dict[tuple[str, int], DataClient] = {}
        self.symbols = Symbols()

    def ask(self, action: str, **request: Any) -> Any:
        """Ask the coordinator."""
        kept = self._coordinator is not None
        try:
            return self._visit().ask({"do": action, **request})[0]
        except Unreachable:
            self._coordinator = None
            if not kept:
                raise
            return self._visit().ask({"do": action, **request})[0]

    def _visit(self) -> DataClient:
        if self._coordinator is None:
            self._coordinator = DataClient(self.site.address, self._secret, Symbols(), role="client")
        return self._coordinator

    def place(self, name: str) -> RelationPlacement:
        """Where a relation or answer is."""
        return RelationPlacement.read(name, self.ask("describe", name=name))

    def rank(self, address: tuple[str, int]) -> DataClient:
        """A rank, as its guest."""
        found = self._ranks.get(address)
        if found is None or found.connection.closed:
            found = self._ranks[address] = DataClient(address, self._secret, self.symbols)
        return found

    def tidy(self, places: tuple[tuple[str, int], ...]) -> None:
        """Let go of ranks that are no more, and of texts if there are many."""
        if len(self.symbols) > TEXTS:
            places, self.symbols = (), Symbols()
        for address in [address for address in self._ranks if address not in places]:
            self._ranks.pop(address).close()


_kept: dict[Site, Client] = {}


def client_of(site: Site) -> Client:
    """The client of this process for a db."""
    found = _kept.get(site)
    if found is None or found.process != os.getpid():  # a fork must not share its parent's connections
        found = _kept[site] = Client(site)
    return found
