"""X15: how much does amortised merging shorten the worst round?

The same rounds of updates with three settings: an eager merge is completed in one round, a lazy one is spread over
many. On one worker, and on as many as the machine has cores.
"""

from __future__ import annotations

from kpg.bench.experiment import Experiment, PaperFigure, at_most
from kpg.bench.measure import Stopwatch
from kpg.bench.rolling_keys import UPDATES_PER_STEP, Rolling, begin, in_words, worker_counts
from kpg.bench.run import Run
from kpg.bench.warm_workers import warm_database
from kpg.config import Effort

KEYS, UPDATES, ROUNDS = 10_000_000, 10_000, 1_500
EFFORTS: tuple[Effort, ...] = ("eager", "default", "lazy")


def run(run: Run) -> None:
    """Apply the same updates with each setting."""
    for workers in sorted({1, worker_counts(run)[-1]}):
        worst = {}
        for number, effort in enumerate(EFFORTS):
            name = effort if workers == 1 else f"{effort}, {in_words(workers)}"
            run.progress(name, number, len(EFFORTS))
            stopwatch = rounds(run, effort, workers)
            run.latencies(name, stopwatch.seconds, total_seconds=stopwatch.total)
            worst[effort] = max(stopwatch.seconds)
        figure = "worst_round_of_lazy_by_eager" + ("" if workers == 1 else f"_on_{workers}_workers")
        run.figure(figure, worst["lazy"] / worst["eager"])


def rounds(run: Run, effort: Effort, workers: int) -> Stopwatch:
    """Measure rounds of updates of an arrangement."""
    keys, steps, times = (
        run.size(KEYS, least=100),
        run.size(UPDATES // UPDATES_PER_STEP, least=5),
        run.scaled_rounds(ROUNDS),
    )
    rolling, stopwatch = Rolling(keys, run.seed), Stopwatch("a round")
    with warm_database(workers, effort) as db:
        relation, arrangement = begin(db, rolling)
        for _ in range(times):
            with stopwatch:
                rolling.roll(relation, steps)
                db.advance()
        run.check(rolling.is_held_by(arrangement), f"the arrangement after all rounds, {effort}")
    return stopwatch


EXPERIMENT = Experiment(
    id="X15",
    title="arrange: amortised merging",
    paper="Shared Arrangements, figure 7e",
    claim="Lazier merging makes the tail shorter; eager merging does the least work and stalls.",
    size="10M keys, rounds of 10,000 updates (the paper: 1M updates/s on 1 and 32 workers)",
    printed=(PaperFigure("32 workers", "the lazier settings are significantly better in the tail"),),
    memory=lambda scale: int(2.4e9 * scale + 6e8),
    run=run,
    limits=(at_most("worst_round_of_lazy_by_eager", 0.2),),
)
