"""X29: what does one more client cost, when ten arrive every second while 500 measurements a second stream in?

Each client follows one device. An epoch is a second of the stream, but the next begins as soon as one is closed. The
latency is the time to close an epoch, from the measurements until the changes are split by client. Three ways to share
(`device_clients`): shared nothing, shared arrangements and multi-tenant; a time limit stops the first two.
"""

from __future__ import annotations

import time

import numpy as np

from kpg.bench.device_clients import CLIENTS_PER_EPOCH, EPOCHS, DeviceService
from kpg.bench.experiment import THESIS_I5, Experiment, PaperFigure, at_most
from kpg.bench.measure import Stopwatch, percentile_ms
from kpg.bench.run import Run
from kpg.opening import open as open_database

WAYS = {"shared nothing": "nothing", "shared arrangements": "answers", "multi-tenant": "tenants"}
LIMIT_SECONDS = 30.0  # after which a way is stopped
LATE_EPOCHS = 10  # at each end, for the growth of latencies


def run(run: Run) -> None:
    """Measure the three ways to serve clients."""
    for number, (name, sharing) in enumerate(WAYS.items()):
        run.progress(name, number, len(WAYS))
        closing, clients = close_epochs(run, sharing)
        seconds = closing.seconds[1:]
        early, late = (float(np.median(part)) for part in (seconds[:LATE_EPOCHS], seconds[-LATE_EPOCHS:]))
        run.latencies(name, seconds, clients=clients, growth=late / early)
        points = [(CLIENTS_PER_EPOCH * (epoch + 1.0), 1e3 * latency) for epoch, latency in enumerate(closing.seconds)]
        run.line("closing", name, points, x="clients", y="ms to close an epoch", log_y=True)
        if sharing == "tenants":
            run.figure("multi_tenant_growth", late / early)
            run.figure("multi_tenant_p99_ms", percentile_ms(seconds, 99))


def close_epochs(run: Run, sharing: str) -> tuple[Stopwatch, int]:
    """Add clients and measurements, and close epochs; return the latencies and the number of clients."""
    stopwatch, began = Stopwatch("closing an epoch"), time.monotonic()
    with open_database() as db:
        devices = DeviceService(db, sharing, run.seed, place_names=False)
        for epoch in range(run.scaled_rounds(EPOCHS, least=5)):
            if time.monotonic() - began > LIMIT_SECONDS:
                break
            devices.add_clients()
            measurements = devices.measurements(epoch)
            with stopwatch:
                devices.service.put("speed", measurements)
            for client in devices.clients:
                client.take()
        devices.check(run)
        devices.service.close()
    return stopwatch, len(devices.clients)


EXPERIMENT = Experiment(
    id="X29",
    title="3DF: clients by the thousand",
    paper="Optimising Distributed Dataflows in Interactive Environments, figure 9",
    claim="Shared arrangements scale further than shared nothing; tenants in the data do not slow each other down.",
    size="500 measurements and 10 new clients an epoch, to 1,000 clients (the thesis's size)",
    printed=(PaperFigure("multi-tenant", "closing an epoch takes equally long with any number of clients", THESIS_I5),),
    memory=lambda scale: int(1e9 * scale + 3e8),
    run=run,
    limits=(at_most("multi_tenant_growth", 3), at_most("multi_tenant_p99_ms", 50)),
)
