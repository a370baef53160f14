"""X7: how soon do answers reflect changes of a graph, and new questions, with and without shared arrangements?"""

from __future__ import annotations

from kpg.bench.experiment import Experiment, PaperFigure, at_least, snap
from kpg.bench.interactive_queries import serve
from kpg.bench.measure import percentile_ms
from kpg.bench.run import Run

EDGES_PER_SECOND = QUESTIONS_PER_SECOND = 100_000
SECONDS = 10.0


def run(run: Run) -> None:
    """Serve the same load, shared and not."""
    tails = {}
    for share in (True, False):
        name = "shared" if share else "not shared"
        run.progress(name, 0, 0)
        seconds = run.scaled_rounds(1000, least=20) / 1000 * SECONDS
        load = serve(run, share, EDGES_PER_SECOND, QUESTIONS_PER_SECOND, seconds)
        run.latencies(name, load.served.latencies, saturated=load.served.saturated, pieces=load.served.calls)
        tails[name] = percentile_ms(load.served.latencies, 99)
    run.figure("p99_not_shared_by_shared", tails["not shared"] / tails["shared"])


EXPERIMENT = Experiment(
    id="X7",
    title="interactive graph queries: latency",
    paper="Shared Arrangements, figure 5a",
    claim="Sharing the graph's index makes tail latencies two to three times lower.",
    size="1M nodes, 6.4M edges, 100,000 updates/s and 100,000 query changes/s (--scale 10: the paper's graph)",
    printed=(PaperFigure("p95 and p99, 32 workers, 100,000 + 100,000/s", "150 ms without, 50 ms with sharing"),),
    memory=lambda scale: int(3.5e9 * scale + 8e8),
    run=run,
    limits=(at_least("p99_not_shared_by_shared", 2),),
    reads=snap(6_400_000),
)
