"""X15: what does merging bit by bit do to the worst round?

The same rounds of updates with three settings: eager merges are done at once, lazy ones a little with each round. On
one worker, and on as many as there are cores.
"""

from __future__ import annotations

from kpg.bench.clocks import Clock
from kpg.bench.experiment import Experiment, Printed, at_most
from kpg.bench.experiments.x12_strong_scaling import named, numbers_of_workers
from kpg.bench.rolling import UPDATES_A_STEP, Rolling, begin
from kpg.bench.run import Run
from kpg.bench.warming import opened
from kpg.config import Effort

KEYS, UPDATES, ROUNDS = 10_000_000, 10_000, 1_500
EFFORTS: tuple[Effort, ...] = ("eager", "default", "lazy")


def run(run: Run) -> None:
    """The same updates, three times."""
    for workers in sorted({1, numbers_of_workers(run)[-1]}):
        worst = {}
        for number, effort in enumerate(EFFORTS):
            name = effort if workers == 1 else f"{effort}, {named(workers)}"
            run.say(name, number, len(EFFORTS))
            clock = rounds(run, effort, workers)
            run.latencies(name, clock.seconds, total_seconds=clock.total)
            worst[effort] = max(clock.seconds)
        figure = "worst_round_of_lazy_by_eager" + ("" if workers == 1 else f"_on_{workers}_workers")
        run.figure(figure, worst["lazy"] / worst["eager"])


def rounds(run: Run, effort: Effort, workers: int) -> Clock:
    """Rounds of updates of an arrangement."""
    keys, steps, times = run.size(KEYS, least=100), run.size(UPDATES // UPDATES_A_STEP, least=5), run.rounds(ROUNDS)
    rolling, clock = Rolling(keys, run.seed), Clock()
    with opened(workers, effort) as db:
        relation, arrangement = begin(db, rolling)
        for _ in range(times):
            with clock:
                rolling.roll(relation, steps)
                db.advance()
        run.check(rolling.is_held_by(arrangement), f"the arrangement after all rounds, {effort}")
    return clock


EXPERIMENT = Experiment(
    id="X15",
    title="arrange: amortised merging",
    paper="Shared Arrangements, figure 7e",
    claim="Lazier merging makes the tail shorter; eager merging does the least work and stalls.",
    size="10M keys, rounds of 10,000 updates (the paper: 1M updates/s on 1 and 32 workers)",
    printed=(Printed("32 workers", "the lazier settings are significantly better in the tail"),),
    memory=lambda scale: int(2.4e9 * scale + 6e8),
    run=run,
    bars=(at_most("worst_round_of_lazy_by_eager", 0.2),),
)
