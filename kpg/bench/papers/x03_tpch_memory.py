"""X3: how much memory do ten active queries of TPC-H need, with and without shared arrangements?

The queries arrive and retire in random order while rows stream in (`tpch_sessions`). Memory is that of all arrays in
traces, after each arrival.
"""

from __future__ import annotations

import numpy as np

from kpg.bench.experiment import Experiment, PaperFigure, at_least
from kpg.bench.run import Run
from kpg.bench.tpch_sessions import Served, serve

MIB = 1 << 20


def run(run: Run) -> None:
    """Measure memory over time, shared and not."""
    means = {}
    for share in (True, False):
        name = "shared" if share else "not shared"
        served = serve(run, share)
        points = [(arrival, size / MIB) for arrival, size in served.memory]
        run.line("memory", name, points, x="arrivals so far", y="arrangements (MiB)")
        means[name] = mean_of_later_half(served)
        run.record(name, mean_mib=means[name] / MIB, max_mib=max(size for _, size in served.memory) / MIB)
    run.figure("memory_not_shared_by_shared", means["not shared"] / means["shared"])


def mean_of_later_half(served: Served) -> float:
    """Return the mean bytes after the later half of the arrivals, when ten queries are active."""
    return float(np.mean([size for _, size in served.memory[len(served.memory) // 2 :]]))


EXPERIMENT = Experiment(
    id="X3",
    title="TPC-H: queries arrive and retire, memory",
    paper="Shared Arrangements, figure 1c",
    claim="Sharing saves half to two thirds of the memory.",
    size="scale factor 1, ten active queries (the paper: scale factor 10, 32 workers)",
    printed=(PaperFigure("memory", "below 40 GB when shared, 60 to 120 GB otherwise"),),
    memory=lambda scale: int(1.2e10 * scale + 1e9),
    run=run,
    limits=(at_least("memory_not_shared_by_shared", 2),),
    rehearsal_scale=0.001,
)
