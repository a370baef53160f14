"""X2: how long does a batch of rows take to update ten active queries of TPC-H, with and without shared arrangements?

The queries arrive and retire in random order while batches of 1,000 rows stream in (`tpch_sessions`). The clock runs
while a batch updates all active views.
"""

from __future__ import annotations

from kpg.bench.experiment import Experiment, PaperFigure, at_least
from kpg.bench.measure import percentile_ms
from kpg.bench.run import Run
from kpg.bench.tpch_sessions import serve


def run(run: Run) -> None:
    """Stream batches, shared and not."""
    p50 = {}
    for share in (True, False):
        name = "shared" if share else "not shared"
        served = serve(run, share)
        run.latencies(name, served.updating)
        p50[name] = percentile_ms(served.updating, 50)
    run.figure("update_p50_not_shared_by_shared", p50["not shared"] / p50["shared"])


EXPERIMENT = Experiment(
    id="X2",
    title="TPC-H: queries arrive and retire, updates",
    paper="Shared Arrangements, figure 1b",
    claim="Updates take half the time when arrangements are shared.",
    size="scale factor 1, ten active queries, batches of 1,000 rows (the paper: scale factor 10, 32 workers)",
    printed=(PaperFigure("update latency", "about 2 times lower when shared; the tail comes from Q11 and Q22"),),
    memory=lambda scale: int(1.2e10 * scale + 1e9),
    run=run,
    limits=(at_least("update_p50_not_shared_by_shared", 2),),
    rehearsal_scale=0.001,
)
