"""Q5: what does one more client cost, when a thousand arrive, ten a second, while 500 measurements a second stream in?

Each client follows the readings of one device, joined with its place. An epoch is a second: ten clients arrive, 500
measurements replace older ones, the epoch is closed, and all clients take their changes. One clock runs from the
measurements until the last client has its changes. Another runs until the epoch is closed, with all changes split into
those of each client; it must not grow with the number of clients. Three ways to share (`device_clients`): shared
nothing, shared trunk and multi-tenant; a time limit stops the first two. Multi-tenant is measured again on two workers,
whose p99 must be at most twice that of one. At the end each client must know the last reading of its device, and no
other row.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import Any

from kpg.api.contracts import Database
from kpg.bench.device_clients import CLIENTS_PER_EPOCH, EPOCHS, UPDATES, DeviceService
from kpg.bench.experiment import Limit, at_most, engine_experiment
from kpg.bench.measure import percentile_ms, wall_stopwatch
from kpg.bench.run import Run
from kpg.bench.warm_workers import warm_database

STRATEGIES = {"multi-tenant": "tenants", "shared trunk": "answers", "shared nothing": "nothing"}
SEED = 5
LIMIT_SECONDS = 60.0  # after which no more clients arrive
LATE_EPOCHS = 10  # at the end, for the growth of latencies
TENANTS_BAR = "multi-tenant: p99 under 50 ms at 1,000 clients, and flat"
MAX_RATIO = 2  # of the p99 on two workers to that on one


def run(run: Run) -> None:
    """Measure the three strategies, and the last one on two workers."""
    for name, sharing in STRATEGIES.items():
        if sharing == "tenants":
            on_one = measure(run, name, sharing, [at_most("p99_ms", 50), at_most("growth", 3)], TENANTS_BAR)
            limit = at_most("p99_ms", MAX_RATIO * on_one, on_any_machine=True)
            bar = f"p99 at most {MAX_RATIO} times the {on_one:.3g} ms of one worker"
            measure(run, f"{name}, two workers", sharing, [limit], bar, workers=2)
        else:
            measure(run, name, sharing)


def measure(
    run: Run, name: str, sharing: str, limits: Sequence[Limit] = (), bar: str | None = None, workers: int = 1
) -> float:
    """Measure one strategy, epoch by epoch; return the p99 of an epoch in milliseconds."""
    epochs = max(3, run.size(EPOCHS))
    delivered, closed, began = wall_stopwatch(name), wall_stopwatch(), perf_counter()
    interest_seconds: list[float] = []
    with warm_database(workers) as db:
        devices = DeviceService(db, sharing, SEED, place_names=True)
        clients = devices.clients
        for epoch in range(epochs):
            if perf_counter() - began > LIMIT_SECONDS:
                break
            before = perf_counter()
            devices.add_clients()
            interest_seconds.append((perf_counter() - before) / CLIENTS_PER_EPOCH)
            measurements = devices.measurements(epoch)
            with delivered:
                with closed:
                    devices.service.put("speed", measurements)
                for client in clients:
                    if client.interest.waiting:
                        client.take()
        devices.check(run)
        devices.service.close()
        run.check(
            all(len(worker["dataflows"]) == 2 for worker in descriptions(db)),
            "only the dataflows of the two relations are left",
        )
    cpu = closed.cpu_seconds  # does not depend on other processes of the machine
    early, late = (percentile_ms(part, 50) for part in (cpu[1 : LATE_EPOCHS + 2], cpu[-LATE_EPOCHS:]))
    run.report(
        name, bar, list(limits),
        latency=delivered, clients=len(clients), finished=len(clients) == CLIENTS_PER_EPOCH * epochs, rows=UPDATES,
        close_p50_ms=closed.p50_ms, close_p99_ms=closed.p99_ms, close_late_cpu_ms=late, growth=late / early,
        interest_p50_ms=percentile_ms(interest_seconds, 50), interest_p99_ms=percentile_ms(interest_seconds, 99),
    )  # fmt: skip
    return delivered.p99_ms


def descriptions(db: Database) -> list[dict[str, Any]]:
    """Return the description of each worker."""
    described = db.describe()
    return list(described.get("workers", [described]))


EXPERIMENT = engine_experiment(
    "Q5",
    "a thousand clients, by three ways of sharing",
    "500 measurements and ten new clients an epoch, to 1,000 clients",
    lambda scale: int(1e9 * scale + 4e8),
    run,
)
