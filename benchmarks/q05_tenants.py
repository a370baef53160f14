"""Q5: what does a client more cost, when a thousand come, ten a second, while 500 measurements a second stream in?

Each client follows the readings of one device, joined with where it stands. An epoch is a second: ten clients come,
500 measurements replace older ones, the epoch is closed, and all clients take what changed for them; the clock runs
from the measurements until the last client has its changes, another until the epoch is closed, with all changes cut
into those of each client: that one must not grow with the clients. Shared nothing: a dataflow each, from base
relations. Shared trunk: a filter each, on one answer. Multi-tenant: one dataflow, routed by token. The first two are
stopped at a time limit. At the end each client must know the last reading of its device, and of no other.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from time import perf_counter

import numpy as np

import kpg
from benchmarks.lines import Run, at_most
from benchmarks.measure import percentile_ms, wall_clock
from kpg.service import Interest, Service

RULES = "reading(device, place, speed) :- speed(device, speed), located(device, place)."
STRATEGIES = {"multi-tenant": "tenants", "shared trunk": "trunk", "shared nothing": "nothing"}
SECONDS = 60.0  # after which no more clients come
LATE = 10  # epochs at the end, of which the last latencies are taken


@dataclass
class Client:
    """Who follows a device, and what it knows."""

    device: int
    interest: Interest
    known: dict[tuple[object, ...], int] = field(default_factory=dict)

    def take(self) -> None:
        """Apply what changed."""
        for row, _, diff in self.interest.take():
            self.known[row] = self.known.get(row, 0) + diff


def run(run: Run) -> None:
    """The three strategies."""
    for name, sharing in STRATEGIES.items():
        measure(run, name, sharing)


def measure(run: Run, name: str, sharing: str) -> None:
    """One strategy, epoch by epoch."""
    devices, updates, each, epochs = 1_000, 500, 10, max(3, run.size(100))
    random = np.random.default_rng(5)
    clock, closing, began = wall_clock(name), wall_clock(), perf_counter()
    clients: list[Client] = []
    opened: list[float] = []
    with kpg.open() as db:
        service = Service(db)
        service.create_relation("speed", {"device": int, "speed": int}, semantics="cardinality-one", key="device")
        service.create_relation("located", {"device": int, "place": str})
        service.put("located", [(device, f"place {device % 100}") for device in range(devices)])
        service.put("speed", [(device, 0) for device in range(devices)])
        service.register(RULES)
        latest = np.zeros(devices, np.int64)
        for epoch in range(epochs):
            if perf_counter() - began > SECONDS:
                break
            before = perf_counter()
            for _ in range(each):
                device = int(random.integers(devices))
                interest = service.interest(
                    "reading", arguments={"device": device}, owner=len(clients), sharing=sharing
                )
                clients.append(Client(device, interest))
            opened.append((perf_counter() - before) / each)
            which = random.choice(devices, updates, replace=False)
            speeds = epoch * 1_000_000 + random.integers(1, 1_000_000, updates)
            latest[which] = speeds
            with clock:
                with closing:
                    service.put("speed", {"device": which, "speed": speeds})
                for client in clients:
                    if client.interest.waiting:
                        client.take()
        for client in clients:
            client.take()
            place = f"place {client.device % 100}"
            known = {row for row, count in client.known.items() if count}
            assert known == {(client.device, place, int(latest[client.device]))}
            assert all(count in (0, 1) for count in client.known.values())
        service.close()
        assert len(service.db.worker.dataflows) == 2  # of the two relations
    cpu = closing.cpu_seconds  # what it costs, whatever else the machine does
    early, late = (percentile_ms(part, 50) for part in (cpu[1 : LATE + 2], cpu[-LATE:]))
    full = len(clients) == each * epochs
    bars = [at_most("p99_ms", 50), at_most("growth", 3)] if sharing == "tenants" else []
    run.report(
        name, "multi-tenant: p99 under 50 ms at 1,000 clients, and flat" if bars else None, bars, latency=clock,
        clients=len(clients), finished=full, rows=updates, close_p50_ms=closing.p50_ms, close_p99_ms=closing.p99_ms,
        close_late_cpu_ms=late,
        growth=late / early,
        interest_p50_ms=percentile_ms(opened, 50), interest_p99_ms=percentile_ms(opened, 99),
    )  # fmt: skip
