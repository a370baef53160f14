"""X9: how much memory do the four classes of questions need over time, with and without shared arrangements?

Measured from the arrays of all traces, so memory that the allocator keeps from one run does not count for the other.
The resident memory of the process is drawn beside it.
"""

from __future__ import annotations

import gc

import numpy as np

from kpg.bench.experiment import Experiment, PaperFigure, at_least, snap
from kpg.bench.interactive_queries import serve
from kpg.bench.measure import MemorySampler
from kpg.bench.run import Run

EDGES_PER_SECOND, QUESTIONS_PER_SECOND = 250_000, 25_000
SECONDS = 24.0
GRAPH = 0.25  # of X7's graph: its edges are replaced twice meanwhile, which shows whether memory levels out


def run(run: Run) -> None:
    """Serve the same load, shared and not."""
    held = {}
    for share in (True, False):
        name = "shared" if share else "not shared"
        run.progress(name, 0, 0)
        gc.collect()
        with MemorySampler() as sampler:
            seconds = run.scaled_rounds(1000, least=20) / 1000 * SECONDS
            load = serve(run, share, EDGES_PER_SECOND, QUESTIONS_PER_SECOND, seconds, GRAPH)
        amounts = [size for _, size in load.memory]
        held[name] = float(np.mean(amounts))
        peak = max(size for _, size in sampler.points)
        run.record(name, mean_mb=held[name] / 1e6, most_mb=max(amounts) / 1e6, process_peak_mb=peak / 1e6)
        megabytes = [(second, size / 1e6) for second, size in load.memory]
        run.line("memory", name, megabytes, x="seconds", y="MB of all arrays")
        run.line(
            "process", name, [(second, size / 1e6) for second, size in sampler.points], x="seconds", y="MB resident"
        )
    run.figure("memory_not_shared_by_shared", held["not shared"] / held["shared"])


EXPERIMENT = Experiment(
    id="X9",
    title="interactive graph queries: memory",
    paper="Shared Arrangements, figure 5c",
    claim="Sharing needs a quarter of the memory, and neither way grows with time.",
    size="250,000 nodes, 1.6M edges, all replaced twice in 24 s (the paper: 10M nodes, 64M edges, an hour)",
    printed=(
        PaperFigure("over an hour", "10 GB shared, 40 GB not"),
        PaperFigure("K-Pg, second version", "20 GB shared, about 80 GB not"),
        PaperFigure("K-Pg, first version", "1 to 2 GB shared, about 5 times as much not"),
    ),
    memory=lambda scale: int(1.5e9 * scale + 6e8),
    run=run,
    limits=(at_least("memory_not_shared_by_shared", 3),),
    reads=snap(1_600_000),
)
