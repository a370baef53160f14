"""The tasks of X22, E1, E8, X12, X13 and X14 that `kpg bench --count` counts, the same on any number of workers.

    graph_work(run, workers)      yields a CountedTask for each task and repetition, with its answer

An answer is a value that is equal for equal rows, in whatever order the workers return them. X22's index tasks include
the sort of the rows, which otherwise waits for the first reader. X13 has as many times the rows as workers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from kpg.bench.papers import x12_strong_scaling, x13_weak_scaling, x22_batch_graphs
from kpg.bench.papers.x22_batch_graphs import GraphTasks
from kpg.bench.rolling_keys import UPDATES_PER_STEP, Rolling, begin
from kpg.bench.row_checksums import checksum, checksum_of, combined
from kpg.bench.run import Run
from kpg.bench.warm_workers import warm_database
from kpg.bench.workers import s01_scaling
from kpg.bench.workers.work_counting import CountingStopwatch, TaskWork, WorkCounter

REPEATS = 3


@dataclass(frozen=True, slots=True)
class CountedTask:
    """One repetition of a task."""

    name: str
    work: TaskWork
    answer: Any  # equal on all numbers of workers, unless the task grows with them
    growth: int = 1  # times the rows of one worker


Works = Iterator[CountedTask]


# Graphs


class CountedGraphTasks(GraphTasks):
    """The tasks of X22, with the work of each."""

    def __init__(self, db: Any, prefix: str = "") -> None:
        super().__init__(db, prefix)
        self.counter = WorkCounter(db)
        self.counted: list[CountedTask] = []

    def measure(self, task: str, work: Callable[[], Any]) -> Any:
        """Return the value of some work, and record what it cost. The order of an index is a part of its cost."""
        self.counter.begin()
        value = work()
        is_index = task.startswith("index")
        if is_index:
            self.counter.call(sort_loads)
        counted = self.counter.end()
        answer = combined(self.counter.call(pair_checksum)) if is_index else checksum_of(value.drop_columns("_time"))
        self.counted.append(CountedTask(task, counted, answer))
        return value


def graph_work(run: Run, workers: int) -> Works:
    """Count the tasks of X22."""
    root = x22_batch_graphs.rooted_graph(run).root
    few: dict[str, Any] = {"scale": x22_batch_graphs.REHEARSAL_SCALE, "seed": run.seed, "file": None}
    with warm_database(workers) as db:
        GraphTasks(db, "few ").perform(int(x22_batch_graphs.graph_of(**few)[1][0, 0]), few)
        for _ in range(run.fixed_rounds(REPEATS)):
            tasks = CountedGraphTasks(db)
            tasks.perform(root, x22_batch_graphs.source_of(run))
            yield from tasks.counted


def sort_loads(db: Any) -> None:
    """Sort the loads that no reader has needed in order yet."""
    for spine in db.spines():
        for batch in spine.batches_through(None):
            len(batch.updates)


def pair_checksum(db: Any) -> list[int]:
    """Return the checksum of all rows of two columns in the traces of a worker."""
    updates = [b.updates for spine in db.spines() if spine.lanes == 2 for b in spine.batches_through(None)]
    return combined(checksum(part.data, part.diffs[0]) for part in updates)


# E1 and E8


def case_work(name: str) -> Callable[[Run, int], Works]:
    """Return a function that counts one case of S1, each worker making its share."""

    def works(run: Run, workers: int) -> Works:
        case = next(case for case in s01_scaling.cases(run.size) if case.name == name)
        with warm_database(workers) as db:
            for _ in range(run.fixed_rounds(REPEATS)):
                stopwatch = CountingStopwatch(db)
                answer = s01_scaling.complete(case, db, True, stopwatch)
                assert stopwatch.work is not None
                yield CountedTask(name, stopwatch.work, answer)

    return works


# Arrangements under load


@dataclass(frozen=True, slots=True)
class RollingLoad:
    """Batches of updates of an arrangement."""

    name: str
    keys: int
    updates: int  # of a batch
    batches: int
    counted: bool = False  # whether the keys are counted as well
    grows: bool = False  # whether keys and updates are those of each worker


ROLLED_BATCHES = 50
TICK_UPDATES = x12_strong_scaling.UPDATES_PER_SECOND // 1000  # of X12 in a millisecond
LOADS = {
    "X14": [
        RollingLoad("X14 maintenance", 1_000_000, 80_000, ROLLED_BATCHES),
        RollingLoad("X14 count", 1_000_000, 80_000, ROLLED_BATCHES, counted=True),
    ],
    "X12": [
        RollingLoad("X12, 1 ms of load", x12_strong_scaling.KEYS, TICK_UPDATES, 4 * ROLLED_BATCHES),
        RollingLoad("X12, 100 ms of load", x12_strong_scaling.KEYS, 100 * TICK_UPDATES, ROLLED_BATCHES // 2),
    ],
    "X13": [
        RollingLoad(
            "X13, 100 ms of load", x13_weak_scaling.KEYS, x13_weak_scaling.UPDATES_PER_SECOND // 10,
            ROLLED_BATCHES // 2, grows=True,
        ),
    ],
}  # fmt: skip


def rolling_work(id: str) -> Callable[[Run, int], Works]:
    """Return a function that counts the loads of an experiment."""

    def works(run: Run, workers: int) -> Works:
        with warm_database(workers) as db:
            for load in LOADS[id]:
                for _ in range(run.fixed_rounds(REPEATS)):
                    yield roll(run, db, workers, load)

    return works


def roll(run: Run, db: Any, workers: int, load: RollingLoad) -> CountedTask:
    """Count the batches of a load, after the first load of all keys; check what the arrangement holds then."""
    growth = workers if load.grows else 1
    rolling = Rolling(growth * run.size(load.keys, least=100), run.seed)
    relation, arrangement = begin(db, rolling)
    counts = arrangement.count("k").output("counts") if load.counted else None
    db.advance()
    counter = WorkCounter(db)
    counter.begin()
    for _ in range(run.fixed_rounds(load.batches)):
        rolling.roll(relation, growth * run.size(load.updates // UPDATES_PER_STEP))
        db.advance()
    work = counter.end()
    run.check(rolling.is_held_by(arrangement), f"{load.name}: the arrangement after all batches")
    answer = None
    if counts is not None:
        answer = checksum_of(counts.snapshot())
        counts.release()
    arrangement.release()
    relation.drop()
    return CountedTask(load.name, work, answer, growth)
