"""X8: how much load is borne, with and without shared arrangements?

The offered load is doubled until it is not served in twice the time it was offered in.
"""

from __future__ import annotations

from kpg.bench.clocks import percentile_ms
from kpg.bench.experiment import Experiment, Printed, snap
from kpg.bench.interactive import serve
from kpg.bench.run import Run

LEAST, DOUBLINGS, SECONDS = 25_000, 8, 3.0
TARGET_MS = 100.0


def run(run: Run) -> None:
    """Each load on a db of its own, shared and not."""
    borne, peak = {}, {}
    for share in (True, False):
        name = "shared" if share else "not shared"
        points: list[tuple[float, float]] = []
        borne[name] = peak[name] = float(LEAST)
        for doubling in range(DOUBLINGS if run.scale >= 0.01 else 2):
            load = LEAST * 2**doubling
            run.say(f"{name}, {load:,} changes/s", doubling, DOUBLINGS)
            kept = serve(run, share, load / 2, load / 2, run.rounds(1000, least=20) / 1000 * SECONDS)
            tail = percentile_ms(kept.served.latencies, 99)
            run.record(f"{name}, {load:,} changes/s", p99_ms=tail, saturated=kept.served.saturated)
            points.append((float(load), tail))
            if tail <= TARGET_MS:
                borne[name] = float(load)
            if kept.served.saturated:
                break
            peak[name] = float(load)
        run.line(
            "load", name, points, x="offered changes/s, half of them of questions", y="p99 (ms)", log_x=True, log_y=True
        )
    run.figure(f"load_at_{TARGET_MS:g}_ms_shared_by_not", borne["shared"] / borne["not shared"])
    run.figure("peak_load_shared_by_not", peak["shared"] / peak["not shared"])


EXPERIMENT = Experiment(
    id="X8",
    title="interactive graph queries: load",
    paper="Shared Arrangements, figure 5b",
    claim="Shared arrangements bear a third more load at the peak, and five times more at a target of 20 ms.",
    size="1M nodes, 6.4M edges, from 25,000 changes/s, doubled (--scale 10 is the paper's graph)",
    printed=(Printed("peak load", "33% more when shared"), Printed("load at a p99 of 20 ms", "5 times when shared")),
    memory=lambda scale: int(3.5e9 * scale + 8e8),
    run=run,
    reads=snap(6_400_000),
)
