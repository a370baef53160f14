"""X9: how much memory do the four classes of questions take, with and without shared arrangements, as time goes by?

Counted from the arrays of all traces, so that what the allocator keeps of one run does not count for the other; what
the system says of the process is drawn beside it.
"""

from __future__ import annotations

import gc

import numpy as np

from kpg.bench.clocks import Watch
from kpg.bench.experiment import Experiment, Printed, at_least, snap
from kpg.bench.interactive import serve
from kpg.bench.run import Run

EDGES_PER_SECOND, QUESTIONS_PER_SECOND = 250_000, 25_000
SECONDS = 24.0
GRAPH = 0.25  # of that of X7, so that its edges are replaced twice meanwhile: else nobody sees memory level out


def run(run: Run) -> None:
    """The same load, shared and not."""
    held = {}
    for share in (True, False):
        name = "shared" if share else "not shared"
        run.say(name, 0, 0)
        gc.collect()
        with Watch() as watch:
            seconds = run.rounds(1000, least=20) / 1000 * SECONDS
            kept = serve(run, share, EDGES_PER_SECOND, QUESTIONS_PER_SECOND, seconds, GRAPH)
        amounts = [size for _, size in kept.memory]
        held[name] = float(np.mean(amounts))
        peak = max(size for _, size in watch.points)
        run.record(name, mean_mb=held[name] / 1e6, most_mb=max(amounts) / 1e6, process_peak_mb=peak / 1e6)
        megabytes = [(at, size / 1e6) for at, size in kept.memory]
        run.line("memory", name, megabytes, x="seconds", y="MB of all arrays")
        run.line("process", name, [(at, size / 1e6) for at, size in watch.points], x="seconds", y="MB resident")
    run.figure("memory_not_shared_by_shared", held["not shared"] / held["shared"])


EXPERIMENT = Experiment(
    id="X9",
    title="interactive graph queries: memory",
    paper="Shared Arrangements, figure 5c",
    claim="Sharing takes a quarter of the memory, and neither grows with time.",
    size="250,000 nodes, 1.6M edges, all replaced twice in 24 s (the paper: 10M nodes, 64M edges, an hour)",
    printed=(
        Printed("over an hour", "10 GB shared, 40 GB not"),
        Printed("K-Pg, second version", "20 GB shared, about 80 GB not"),
        Printed("K-Pg, first version", "1 to 2 GB shared, about 5 times as much not"),
    ),
    memory=lambda scale: int(1.5e9 * scale + 6e8),
    run=run,
    bars=(at_least("memory_not_shared_by_shared", 3),),
    reads=snap(1_600_000),
)
