"""S12: how much longer do a thousand tenants of a server wait for their changes on two workers than on one?

A server process in memory, on one worker and then on two. A thousand clients, each over a connection of its own, follow
one device each, on one dataflow for all of them:

    reading(device, place, speed) :- speed(device, speed), located(device, place).

A writer changes the speed of one device, and then of 100 devices in one transaction. The clock runs from the insert
until each tenant of a changed device has its change, of which it checks every row; the other tenants are idle. Wall
time. The p99 on two workers must be at most twice that on one, in the same run.
"""

from __future__ import annotations

import time
from contextlib import ExitStack

import numpy as np

import kpg
from kpg.bench.device_clients import RULES
from kpg.bench.experiment import Limit, at_most, engine_experiment
from kpg.bench.measure import percentile_ms
from kpg.bench.run import Run
from kpg.bench.served_process import CHANGE_SECONDS, PAUSE_SECONDS, served

TENANTS = 1_000
CHANGED_DEVICES = (1, 100)  # in one transaction
ROUNDS, WARM_ROUNDS = 300, 50
SEED = 12
MAX_RATIO = 2  # of the p99 on two workers to that on one


class TenantClients:
    """A server's clients: one that writes, and one for each device, which follows its speed."""

    def __init__(self, url: str, tenants: int, clients: ExitStack) -> None:
        self._db = clients.enter_context(kpg.connect(url))
        self._random = np.random.default_rng(SEED)
        self._speed = 0
        self._db.create_relation("speed", {"device": int, "speed": int}, semantics="cardinality-one", key="device")
        self._db.create_relation("located", {"device": int, "place": int})
        self._db.insert("located", [(device, device % 10) for device in range(tenants)])
        self._db.insert("speed", [(device, 0) for device in range(tenants)])
        self._db.register(RULES)
        connections = [clients.enter_context(kpg.connect(url)) for _ in range(tenants)]
        self._followed = [
            connection.interest("reading", arguments={"device": device})
            for device, connection in enumerate(connections)
        ]
        for interest in self._followed:
            interest.next(CHANGE_SECONDS)

    def latencies(self, run: Run, rounds: int, devices: int) -> list[float]:
        """Return the seconds from each of some transactions until the tenants of its devices have their change."""
        return [self._latency(run, devices) for _ in range(rounds)]

    def _latency(self, run: Run, devices: int) -> float:
        time.sleep(PAUSE_SECONDS)
        self._speed += 1
        changed = self._random.choice(len(self._followed), devices, replace=False).tolist()
        began = time.perf_counter()
        self._db.insert("speed", [(device, self._speed) for device in changed])
        received = [self._followed[device].next(CHANGE_SECONDS) for device in changed]
        seconds = time.perf_counter() - began
        for device, changes in zip(changed, received, strict=True):
            inserted = [row for row, _, diff in changes if diff > 0]
            run.check(inserted == [(device, device % 10, self._speed)], f"the change of device {device}")
        return seconds


def run(run: Run) -> None:
    """Measure transactions of one device and of many, on one worker and on two."""
    tenants, rounds = run.size(TENANTS, least=3), run.fixed_rounds(ROUNDS)
    one_worker: dict[int, float] = {}
    for workers in (1, 2):
        with served("--workers", str(workers), "--max-sessions", str(tenants + 1)) as url, ExitStack() as clients:
            run.progress(f"{tenants} tenants on {workers} workers", workers - 1, 2)
            measured = TenantClients(url, tenants, clients)
            for devices in CHANGED_DEVICES:
                changed = min(devices, tenants)
                measured.latencies(run, run.fixed_rounds(WARM_ROUNDS), changed)
                seconds = measured.latencies(run, rounds, changed)
                p99_ms = percentile_ms(seconds, 99)
                bar, limits = bars(one_worker.setdefault(devices, p99_ms), workers)
                case = f"{devices} changed device{'s' * (devices > 1)}, {workers} worker{'s' * (workers > 1)}"
                run.curve(case, seconds)
                run.report(
                    case, bar, limits,
                    p50_ms=percentile_ms(seconds, 50), p99_ms=p99_ms, tenants=tenants, rounds=rounds,
                )  # fmt: skip


def bars(one_worker_p99_ms: float, workers: int) -> tuple[str | None, list[Limit]]:
    """Return the bar of the case on some workers, in words and as limits; one worker has none."""
    if workers == 1:
        return None, []
    text = f"p99 at most {MAX_RATIO} times the {one_worker_p99_ms:.3g} ms of one worker"
    return text, [at_most("p99_ms", MAX_RATIO * one_worker_p99_ms, on_any_machine=True)]


EXPERIMENT = engine_experiment(
    "S12",
    "a thousand tenants of a server on two workers",
    "1,000 tenants with a connection each, transactions of 1 and of 100 rows, 300 each",
    lambda scale: int(5e8 * scale + 6e8),
    run,
)
