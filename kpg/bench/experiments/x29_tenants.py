"""X29: what does one client more cost, when ten come every second while 500 measurements a second stream in?

Each client follows one device. An epoch is a second of the stream, but the next begins as soon as one is closed:
what is measured is how long closing takes, from the measurements until every client's changes are its own. Shared
nothing: a dataflow each, from base relations. Shared arrangements: a filter each, on one answer. Multi-tenant: one
dataflow, whose clients are rows. Each of the first two is stopped when it has taken long enough.
"""

from __future__ import annotations

import time

import numpy as np

from kpg.bench.clocks import Clock, percentile_ms
from kpg.bench.experiment import THESIS_I5, Experiment, Printed, at_most
from kpg.bench.run import Run
from kpg.opening import open as open_database
from kpg.service import Interest, Service

RULES = "reading(device, place, speed) :- speed(device, speed), located(device, place)."
WAYS = {"shared nothing": "nothing", "shared arrangements": "trunk", "multi-tenant": "tenants"}
DEVICES, UPDATES, CLIENTS, EPOCHS = 1_000, 500, 10, 100
PATIENCE_SECONDS = 30.0
LATE = 10  # epochs at each end, to see growth


def run(run: Run) -> None:
    """The three ways to serve clients."""
    for number, (name, sharing) in enumerate(WAYS.items()):
        run.say(name, number, len(WAYS))
        closing, clients = epochs(run, sharing)
        seconds = closing.seconds[1:]
        early, late = (float(np.median(part)) for part in (seconds[:LATE], seconds[-LATE:]))
        run.latencies(name, seconds, clients=clients, growth=late / early)
        run.line(
            "closing", name, [(CLIENTS * (each + 1.0), 1e3 * took) for each, took in enumerate(closing.seconds)],
            x="clients", y="ms to close an epoch", log_y=True,
        )  # fmt: skip
        if sharing == "tenants":
            run.figure("multi_tenant_growth", late / early)
            run.figure("multi_tenant_p99_ms", percentile_ms(seconds, 99))


def epochs(run: Run, sharing: str) -> tuple[Clock, int]:
    """Clients come, measurements come, epochs are closed; each client must know the last of its device."""
    random, clock, began = np.random.default_rng(run.seed), Clock(), time.monotonic()
    clients: list[tuple[int, Interest]] = []
    latest = np.zeros(DEVICES, np.int64)
    with open_database() as db:
        service = Service(db)
        service.create_relation("speed", {"device": int, "speed": int}, semantics="cardinality-one", key="device")
        service.create_relation("located", {"device": int, "place": int})
        service.put("located", [(device, device % 100) for device in range(DEVICES)])
        service.put("speed", [(device, 0) for device in range(DEVICES)])
        service.register(RULES)
        known: list[dict[tuple[int, ...], int]] = []
        for epoch in range(run.rounds(EPOCHS, least=5)):
            if time.monotonic() - began > PATIENCE_SECONDS:
                break
            for _ in range(CLIENTS):
                device = int(random.integers(DEVICES))
                interest = service.interest(
                    "reading", arguments={"device": device}, owner=len(clients), sharing=sharing
                )
                clients.append((device, interest))
                known.append({})
            which = random.choice(DEVICES, UPDATES, replace=False)
            latest[which] = epoch * 1_000_000 + random.integers(1, 1_000_000, UPDATES)
            with clock:
                service.put("speed", {"device": which, "speed": latest[which]})
            for (_, interest), rows in zip(clients, known, strict=True):
                for row, _, diff in interest.take():
                    rows[row] = rows.get(row, 0) + diff
        for (device, _), rows in zip(clients, known, strict=True):
            right = {(device, device % 100, int(latest[device])): 1}
            run.check({row: count for row, count in rows.items() if count} == right, f"a client of device {device}")
        service.close()
    return clock, len(clients)


EXPERIMENT = Experiment(
    id="X29",
    title="3DF: clients by the thousand",
    paper="Optimising Distributed Dataflows in Interactive Environments, figure 9",
    claim="Shared arrangements scale further than shared nothing; tenants in the data do not slow each other at all.",
    size="500 measurements and 10 new clients an epoch, to 1,000 clients (the thesis's size)",
    printed=(Printed("multi-tenant", "closing an epoch takes as long with any number of clients", THESIS_I5),),
    memory=lambda scale: int(1e9 * scale + 3e8),
    run=run,
    bars=(at_most("multi_tenant_growth", 3), at_most("multi_tenant_p99_ms", 50)),
)
