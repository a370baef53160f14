"""Clients that each follow one device while measurements of all devices stream in: what Q5 and X29 measure.

    reading(device, place, speed) :- speed(device, speed), located(device, place).

In each epoch some clients arrive, and 500 devices get a new speed in place of the old one. Three ways to serve the
clients: a dataflow for each client from base relations ("nothing" shared), a filter for each client on one shared
answer ("answers"), and one dataflow for all clients that routes rows by token ("tenants").
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from kpg.api.contracts import Database
from kpg.bench.data.graphs import Ints
from kpg.bench.run import Run
from kpg.service import Interest, Service

RULES = "reading(device, place, speed) :- speed(device, speed), located(device, place)."
DEVICES, UPDATES, CLIENTS_PER_EPOCH, EPOCHS = 1_000, 500, 10, 100
PLACES = 100


@dataclass
class DeviceClient:
    """A client of one device, with the rows that it knows and their counts."""

    device: int
    interest: Interest
    rows: dict[tuple[object, ...], int] = field(default_factory=dict)

    def take(self) -> None:
        """Apply the changes that the service has for this client."""
        for row, _, diff in self.interest.take():
            self.rows[row] = self.rows.get(row, 0) + diff


class DeviceService:
    """A service of speeds and places, with its clients."""

    def __init__(self, db: Database, sharing: str, seed: int, place_names: bool) -> None:
        self.sharing = sharing
        self.place_names = place_names  # places as strings; else as integers
        self.random = np.random.default_rng(seed)
        self.latest = np.zeros(DEVICES, np.int64)
        self.clients: list[DeviceClient] = []
        self.service = Service(db)
        speed = {"device": int, "speed": int}
        self.service.create_relation("speed", speed, semantics="cardinality-one", key="device")
        self.service.create_relation("located", {"device": int, "place": str if place_names else int})
        self.service.put("located", [(device, self.place_of(device)) for device in range(DEVICES)])
        self.service.put("speed", [(device, 0) for device in range(DEVICES)])
        self.service.register(RULES)

    def place_of(self, device: int) -> str | int:
        """Return the place of a device."""
        return f"place {device % PLACES}" if self.place_names else device % PLACES

    def add_clients(self) -> None:
        """Add the clients of one epoch, each for a random device."""
        for _ in range(CLIENTS_PER_EPOCH):
            device = int(self.random.integers(DEVICES))
            owner = len(self.clients)
            interest = self.service.interest("reading", arguments={"device": device}, owner=owner, sharing=self.sharing)
            self.clients.append(DeviceClient(device, interest))

    def measurements(self, epoch: int) -> dict[str, Ints]:
        """Return the new speeds of an epoch, and remember them as the latest."""
        devices = self.random.choice(DEVICES, UPDATES, replace=False)
        self.latest[devices] = epoch * 1_000_000 + self.random.integers(1, 1_000_000, UPDATES)
        return {"device": devices, "speed": self.latest[devices]}

    def check(self, run: Run) -> None:
        """Check that each client knows the last reading of its device once, and no other row."""
        for client in self.clients:
            client.take()
            expected = {(client.device, self.place_of(client.device), int(self.latest[client.device])): 1}
            rows = {row: count for row, count in client.rows.items() if count}
            run.check(rows == expected, f"the rows of a client of device {client.device}")
