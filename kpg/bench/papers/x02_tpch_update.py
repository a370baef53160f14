"""X2: how long does an update of ten active queries of TPC-H take, with and without shared arrangements?

The queries arrive and retire in random order while rows stream in (`tpch_sessions`): one row at a time, round-robin
among the tables, as in the paper, and in batches of 1,000 rows. The clock runs while a row or batch updates all views.
Rows of lineitem, which no query shares, stand beside those of orders and partsupp.
"""

from __future__ import annotations

from kpg.bench.experiment import Experiment, PaperFigure, at_least
from kpg.bench.measure import percentile_ms
from kpg.bench.run import Run
from kpg.bench.tpch_sessions import serve


def run(run: Run) -> None:
    """Stream rows and batches, shared and not."""
    for one_by_one, what, figure in ((True, "one row", "row"), (False, "batches", "batch")):
        p50 = {}
        for share in (True, False):
            name = "shared" if share else "not shared"
            served = serve(run, share, one_by_one)
            run.latencies(f"{name}, {what}", served.updating)
            p50[name] = percentile_ms(served.updating, 50)
            for table, seconds in sorted(served.by_table.items()):
                run.record(f"{name}, one row of {table}", p50_ms=percentile_ms(seconds, 50), rounds=len(seconds))
        run.figure(f"{figure}_p50_not_shared_by_shared", p50["not shared"] / p50["shared"])


EXPERIMENT = Experiment(
    id="X2",
    title="TPC-H: queries arrive and retire, updates",
    paper="Shared Arrangements, figure 1b",
    claim="Updates take half the time when arrangements are shared.",
    size="scale factor 1, ten active queries, one row and 1,000 rows (the paper: scale factor 10, 32 workers)",
    printed=(PaperFigure("update latency", "about 2 times lower when shared; the tail comes from Q11 and Q22"),),
    memory=lambda scale: int(1.2e10 * scale + 1e9),
    run=run,
    limits=(at_least("row_p50_not_shared_by_shared", 2),),
    rehearsal_scale=0.001,
)
