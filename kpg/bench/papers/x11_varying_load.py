"""X11: how do latencies of an arrangement follow the offered load?

One worker. From 10M keys and 1M updates a second both are halved repeatedly. Latency counts from when an update was
due.
"""

from __future__ import annotations

from kpg.bench.experiment import Experiment, PaperFigure
from kpg.bench.rolling_keys import serve
from kpg.bench.run import Run
from kpg.opening import open as open_database

KEYS, UPDATES_PER_SECOND, SECONDS = 10_000_000, 1_000_000, 4.0
HALVINGS = 6


def run(run: Run) -> None:
    """Serve each load on a db of its own."""
    for halving in range(HALVINGS):
        run.progress("load", halving, HALVINGS)
        keys = run.size(KEYS >> halving, least=100)
        rate = max(2_000, UPDATES_PER_SECOND / 2**halving * min(1.0, run.scale * 10))
        with open_database() as db:
            served = serve(run, db, keys, rate, run.scaled_rounds(1000, least=30) / 1000 * SECONDS)
        run.latencies(f"{keys:,} keys, {rate:,.0f} updates/s", served.latencies, saturated=served.saturated)
    medians = [row["p50_ms"] for row in run.result.rows]
    run.figure("median_at_full_load_by_median_at_least", medians[0] / medians[-1])


EXPERIMENT = Experiment(
    id="X11",
    title="arrange: varying load",
    paper="Shared Arrangements, figure 7a",
    claim="Latencies fall as load falls, down to the harness's limit of a millisecond.",
    size="10M keys and 1M updates/s, halved five times (the paper's size)",
    printed=(PaperFigure("latency when the load falls", "down to 1 ms, the harness's limit"),),
    memory=lambda scale: int(1.6e9 * scale + 3e8),
    run=run,
)
