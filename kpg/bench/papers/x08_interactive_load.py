"""X8: how much load can be served, with and without shared arrangements?

The offered load is doubled until serving it takes more than twice the time in which it was offered.
"""

from __future__ import annotations

from kpg.bench.experiment import Experiment, PaperFigure, snap
from kpg.bench.interactive_queries import serve
from kpg.bench.measure import percentile_ms
from kpg.bench.run import Run

LEAST_LOAD, DOUBLINGS, SECONDS = 25_000, 8, 3.0
TARGET_MS = 100.0


def run(run: Run) -> None:
    """Serve each load on a db of its own, shared and not."""
    at_target, peak = {}, {}
    for share in (True, False):
        name = "shared" if share else "not shared"
        points: list[tuple[float, float]] = []
        at_target[name] = peak[name] = float(LEAST_LOAD)
        for doubling in range(DOUBLINGS if run.scale >= 0.01 else 2):
            load = LEAST_LOAD * 2**doubling
            run.progress(f"{name}, {load:,} changes/s", doubling, DOUBLINGS)
            result = serve(run, share, load / 2, load / 2, run.scaled_rounds(1000, least=20) / 1000 * SECONDS)
            tail = percentile_ms(result.served.latencies, 99)
            run.record(f"{name}, {load:,} changes/s", p99_ms=tail, saturated=result.served.saturated)
            points.append((float(load), tail))
            if tail <= TARGET_MS:
                at_target[name] = float(load)
            if result.served.saturated:
                break
            peak[name] = float(load)
        run.line(
            "load", name, points, x="offered changes/s, half of them of questions", y="p99 (ms)", log_x=True, log_y=True
        )
    run.figure(f"load_at_{TARGET_MS:g}_ms_shared_by_not", at_target["shared"] / at_target["not shared"])
    run.figure("peak_load_shared_by_not", peak["shared"] / peak["not shared"])


EXPERIMENT = Experiment(
    id="X8",
    title="interactive graph queries: load",
    paper="Shared Arrangements, figure 5b",
    claim="Shared arrangements serve a third more load at the peak, and five times more at a target of 20 ms.",
    size="1M nodes, 6.4M edges, from 25,000 changes/s, doubled (--scale 10 is the paper's graph)",
    printed=(
        PaperFigure("peak load", "33% more when shared"),
        PaperFigure("load at a p99 of 20 ms", "5 times when shared"),
    ),
    memory=lambda scale: int(3.5e9 * scale + 8e8),
    run=run,
    reads=snap(6_400_000),
)
