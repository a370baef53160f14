"""`kpg bench --count`: the work of all workers together, for the tasks of an experiment on 1, 2, 4 and 8 workers.

    work inflation  =  CPU seconds of all workers / CPU seconds of one worker, for the same task

The answers of all numbers of workers must be equal. Each figure is that of the repetition with the least CPU time.
Beside the totals stand the operators with the most CPU time, and what their largest epoch takes.

One worker may plan a task in another way than several: recursions that keep least values are one operator there, and a
loop on several. So such tasks are counted once more on one worker with the plan of several, as the base of the model
(`kpg bench scaling`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from unittest.mock import PropertyMock, patch

from kpg.api.embedded_database import EmbeddedDatabase
from kpg.bench.experiment import at_most
from kpg.bench.rolling_keys import in_words
from kpg.bench.run import Run
from kpg.bench.workers.counted_tasks import CountedTask, Works, case_work, graph_work, rolling_work
from kpg.bench.workers.counted_tpch import tpch_work
from kpg.bench.workers.work_counting import TaskWork
from kpg.plan.streams import Streams

MAX_WORKERS = 8  # unless --workers asks for another number
MIN_SHARE = 0.05  # of a task's CPU time, for an operator to have a row
MAX_INFLATION = {"E1": 1.6, "E8": 1.35, "X22": 1.35}  # E1's rows cost only 8 to 16 ns on one worker
PLAN_OF_SEVERAL = "plan of several workers"  # the rest of the case of a base

COUNTED: dict[str, Callable[[Run, int], Works]] = {
    "X22": graph_work,
    "E1": case_work("E1 load"),
    "E8": case_work("E8 join"),
    "X12": rolling_work("X12"),
    "X13": rolling_work("X13"),
    "X14": rolling_work("X14"),
    "X5": tpch_work,
}
PLANNED_APART = ("X22", "X5")  # one worker may have another plan than several


def count_work(name: str, run: Run) -> None:
    """Count an experiment's tasks on 1, 2, 4, … workers, and report work inflation."""
    alone: dict[str, CountedTask] = {}
    most = run.workers or MAX_WORKERS
    for workers in [1 << exponent for exponent in range(most.bit_length())]:
        run.progress(f"counting, {in_words(workers)}", 0, 0)
        for task in least(run, COUNTED[name](run, workers), alone):
            report(run, name, workers, task, alone.setdefault(task.name, task).work)
        if workers == 1 and name in PLANNED_APART:
            with planned_for_several():
                for task in least(run, COUNTED[name](run, 1), alone):
                    run.record(f"{task.name}, 1 worker: {PLAN_OF_SEVERAL}", **task.work.figures())


def least(run: Run, tasks: Iterable[CountedTask], alone: dict[str, CountedTask]) -> Iterable[CountedTask]:
    """Return the repetition of each task with the least CPU time; all must have the answer of one worker."""
    best: dict[str, CountedTask] = {}
    for task in tasks:
        first = alone.get(task.name) or best.get(task.name, task)
        run.check(task.growth != first.growth or task.answer == first.answer, f"{task.name} on several workers")
        if task.name not in best or task.work.cpu_seconds < best[task.name].work.cpu_seconds:
            best[task.name] = task
    return best.values()


def report(run: Run, name: str, workers: int, task: CountedTask, alone: TaskWork) -> None:
    """Report the work of a task and of its operators."""
    work, case = task.work, f"{task.name}, {in_words(workers)}"
    limit = MAX_INFLATION.get(name) if workers > 1 else None
    run.report(
        case, None if limit is None else f"work inflation at most {limit:g}",
        [] if limit is None else [at_most("inflation", limit)],
        **work.figures(), growth=task.growth, inflation=work.cpu_seconds / task.growth / alone.cpu_seconds,
    )  # fmt: skip
    epochs: dict[str, int] = {}
    for (_, operator), part in work.by_epoch().items():
        epochs[operator] = max(epochs.get(operator, 0), part.nanoseconds)
    for operator, part in work.by_operator().items():
        if part.nanoseconds > MIN_SHARE * 1e9 * work.cpu_seconds:
            run.record(
                f"{case}: {operator}", cpu_s=part.nanoseconds / 1e9, largest_epoch_s=epochs[operator] / 1e9,
                rows_sent=part.rows, bytes_sent=part.bytes, messages=part.messages, steps=part.steps,
            )  # fmt: skip


@contextmanager
def planned_for_several() -> Iterator[None]:
    """Plan queries as on several workers, although there is one."""
    several = PropertyMock(return_value=False)
    with patch.object(EmbeddedDatabase, "is_single_worker", several), patch.object(Streams, "is_alone", several):
        yield
