"""The connections of a Spark task or planner to a db: to its driver and its ranks, kept between tasks.

Spark uses its Python workers again, so a connection made by one task serves the next. If a kept connection to the
driver has ended, the request is sent once more on a new one. The texts that ranks know are kept in a symbol table; when
it has grown large, it is replaced, together with the connections.
"""

from __future__ import annotations

import os
from typing import TypeVar

from kpg.cluster.data_connections import DataClient
from kpg.cluster.hello_messages import DriverHello
from kpg.columns.symbols import Symbols
from kpg.errors import Unreachable
from kpg.spark.driver_requests import DescribeRelationRequest, DriverRequest
from kpg.spark.site import RelationPlacement, Site
from kpg.version import __version__

Result = TypeVar("Result")
MAX_SYMBOLS = 1 << 20  # a larger table is replaced between tasks, so that a long-lived worker does not fill its memory


class TaskClient:
    """The connections of this process to one db."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.process = os.getpid()
        self._secret = bytes.fromhex(site.secret)
        self._driver: DataClient | None = None
        self._ranks: dict[tuple[str, int], DataClient] = {}
        self.symbols = Symbols()

    def ask(self, request: DriverRequest[Result]) -> Result:
        """Ask the driver."""
        kept = self._driver is not None
        try:
            return self._connect_driver().ask(request)[0]
        except Unreachable:
            self._driver = None
            if not kept:
                raise
            return self._connect_driver().ask(request)[0]

    def _connect_driver(self) -> DataClient:
        if self._driver is None:
            self._driver = DataClient(self.site.address, self._secret, Symbols(), DriverHello(__version__))
        return self._driver

    def placement(self, name: str) -> RelationPlacement:
        """Return where the rows of a relation or answer are."""
        return RelationPlacement.of(name, self.ask(DescribeRelationRequest(name)))

    def rank(self, address: tuple[str, int]) -> DataClient:
        """Return the data connection to a rank."""
        connection = self._ranks.get(address)
        if connection is None or connection.connection.closed:
            connection = self._ranks[address] = DataClient(address, self._secret, self.symbols)
        return connection

    def close_unused(self, addresses: tuple[tuple[str, int], ...]) -> None:
        """Close connections to other ranks than these; all of them, with the symbol table, if that is large."""
        if len(self.symbols) > MAX_SYMBOLS:
            addresses, self.symbols = (), Symbols()
        for address in [address for address in self._ranks if address not in addresses]:
            self._ranks.pop(address).close()


_clients: dict[Site, TaskClient] = {}


def client_of(site: Site) -> TaskClient:
    """Return the client of this process for a db."""
    client = _clients.get(site)
    if client is None or client.process != os.getpid():  # a fork must not share its parent's connections
        client = _clients[site] = TaskClient(site)
    return client
