"""`kpg bench --count`: the work of all workers together, for tasks of X22, E1, E8 and X14 on 1, 2, 4 and 8 workers.

    work inflation  =  CPU seconds of all workers / CPU seconds of one worker, for the same task

CPU seconds hold on a machine with fewer cores than workers, where elapsed time does not. Beside them: rows, bytes and
messages between workers, rounds of progress, and the operators with the most CPU time. Each figure is the least of
several repetitions. The client process, which collects the answer of several workers, is a column of its own; a single
worker does this itself.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from kpg.api.contracts import Database
from kpg.bench.experiment import at_most
from kpg.bench.measure import Stopwatch
from kpg.bench.papers import x22_batch_graphs
from kpg.bench.papers.x22_batch_graphs import GraphTasks
from kpg.bench.rolling_keys import Rolling, begin, in_words
from kpg.bench.run import Run
from kpg.bench.warm_workers import warm_database
from kpg.bench.workers import s01_scaling
from kpg.dataflow.work_counts import OperatorWork, WorkCounts, WorkTotals
from kpg.plan.plan_values import name_of_function

MAX_WORKERS = 8  # unless --workers asks for another number
REPEATS = 3
MIN_SHARE = 0.05  # of a task's CPU time, for an operator to have a row
MAX_INFLATION = {"E1": 1.6}  # E1's rows cost only 8 to 16 ns on one worker
USUAL_MAX_INFLATION = 1.35


@dataclass(frozen=True, slots=True)
class TaskWork:
    """The work of all workers for one task, and of the client."""

    totals: list[WorkTotals]
    client_seconds: float

    @property
    def cpu_seconds(self) -> float:
        """The CPU seconds of all workers."""
        return sum(totals.cpu_seconds for totals in self.totals)

    def by_operator(self) -> dict[str, OperatorWork]:
        """Return the work of each operator, over all workers and epochs."""
        sums: dict[str, OperatorWork] = defaultdict(OperatorWork)
        for totals in self.totals:
            for (_, _, operator), work in totals.operators.items():
                for name, value in asdict(work).items():
                    setattr(sums[operator], name, getattr(sums[operator], name) + value)
        return sums

    def figures(self) -> dict[str, Any]:
        """Return the figures of a row."""
        rows = sum(totals.rows for totals in self.totals)
        progress = sum(totals.progress_bytes for totals in self.totals)
        size = sum(totals.bytes for totals in self.totals)
        return {
            "cpu_s": self.cpu_seconds,
            "busiest_cpu_s": max(totals.cpu_seconds for totals in self.totals),
            "client_s": self.client_seconds,
            "rows_sent": rows,
            "bytes_sent": size,
            "bytes_per_row": (size - progress) / rows if rows else None,
            "messages": sum(totals.messages for totals in self.totals),
            "rounds": max(totals.rounds for totals in self.totals),
        }


class WorkCounter:
    """Counts the work of all workers of a db."""

    def __init__(self, db: Database) -> None:
        self.db = db
        self._began = 0.0
        self.call(start_counting)

    def begin(self) -> None:
        """Begin to count a task."""
        self.call(take_counts)
        self._began = time.process_time()

    def end(self) -> TaskWork:
        """Return the work since `begin`."""
        client_seconds = time.process_time() - self._began if hasattr(self.db, "call_workers") else 0.0
        return TaskWork([read_totals(taken) for taken in self.call(take_counts)], client_seconds)

    def call(self, function: Callable[[Any], Any]) -> list[Any]:
        """Call a function on each worker."""
        if hasattr(self.db, "call_workers"):
            return list(self.db.call_workers(name_of_function(function)))
        return [function(self.db)]


def start_counting(db: Any) -> None:
    """Count the work of a worker from now on."""
    db.worker.counts = WorkCounts()


def sort_loads(db: Any) -> None:
    """Sort the loads that no reader has needed in order yet."""
    for spine in db.spines():
        for batch in spine.batches_through(None):
            len(batch.updates)


def take_counts(db: Any) -> list[Any]:
    """Return what a worker has counted since the last call, as JSON values."""
    totals = db.worker.counts.take()
    operators = [[*key, asdict(work)] for key, work in totals.operators.items()]
    return [totals.cpu_seconds, operators, totals.rounds, totals.progress_messages, totals.progress_bytes]


def read_totals(taken: list[Any]) -> WorkTotals:
    """Return the counts of a worker, from JSON values."""
    cpu_seconds, operators, *progress = taken
    by_key = {(epoch, dataflow, name): OperatorWork(**work) for epoch, dataflow, name, work in operators}
    return WorkTotals(cpu_seconds, by_key, *progress)


class CountedGraphTasks(GraphTasks):
    """The tasks of X22, with the work of each."""

    def __init__(self, db: Database, prefix: str = "") -> None:
        super().__init__(db, prefix)
        self.counter = WorkCounter(db)
        self.work: dict[str, TaskWork] = {}

    def measure(self, task: str, work: Callable[[], Any]) -> Any:
        """Return the value of some work, and record what it cost. The order of an index is a part of its cost."""
        self.counter.begin()
        value = work()
        if task.startswith("index"):
            self.counter.call(sort_loads)
        self.work[task] = self.counter.end()
        return value


Works = Iterator[tuple[str, TaskWork]]  # of each task, once for each repetition


def graph_work(run: Run, workers: int) -> Works:
    """Count the tasks of X22."""
    root = x22_batch_graphs.rooted_graph(run).root
    few: dict[str, Any] = {"scale": x22_batch_graphs.REHEARSAL_SCALE, "seed": run.seed, "file": None}
    with warm_database(workers) as db:
        GraphTasks(db, "few ").perform(int(x22_batch_graphs.graph_of(**few)[1][0, 0]), few)
        for _ in range(run.fixed_rounds(REPEATS)):
            tasks = CountedGraphTasks(db)
            tasks.perform(root, x22_batch_graphs.source_of(run))
            yield from tasks.work.items()


def case_work(name: str) -> Callable[[Run, int], Works]:
    """Return a function that counts one case of S1, each worker making its share."""

    def works(run: Run, workers: int) -> Works:
        case = next(case for case in s01_scaling.cases(run.size) if case.name == name)
        with warm_database(workers) as db:
            for _ in range(run.fixed_rounds(REPEATS)):
                stopwatch = CountingStopwatch(db)
                s01_scaling.complete(case, db, True, stopwatch)
                assert stopwatch.work is not None
                yield name, stopwatch.work

    return works


class CountingStopwatch(Stopwatch):
    """A stopwatch that also counts the work of its last `with` block."""

    def __init__(self, db: Database) -> None:
        super().__init__()
        self.counter = WorkCounter(db)
        self.work: TaskWork | None = None

    def __enter__(self) -> CountingStopwatch:
        self.counter.begin()
        super().__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        self.work = self.counter.end()


ROLLED_KEYS, ROLLED_BATCHES, ROLLED_STEPS = 1_000_000, 50, 40_000  # of X14: the same work on any number of workers


def rolling_work(run: Run, workers: int) -> Works:
    """Count the maintenance of X14's arrangement, without and with a count: batches of 80,000 updates in all."""
    for part in ("maintenance", "count"):
        for _ in range(run.fixed_rounds(REPEATS)):
            with warm_database(workers) as db:
                rolling = Rolling(run.size(ROLLED_KEYS, least=100), run.seed)
                relation, arrangement = begin(db, rolling)
                counted = arrangement.count("k").output("counts") if part == "count" else None
                db.advance()
                counter = WorkCounter(db)
                counter.begin()
                for _ in range(run.fixed_rounds(ROLLED_BATCHES)):
                    rolling.roll(relation, run.size(ROLLED_STEPS))
                    db.advance()
                yield f"X14 {part}", counter.end()
                run.check(rolling.is_held_by(arrangement), "the arrangement after all batches")
                if counted is not None:
                    counted.release()


COUNTED: dict[str, Callable[[Run, int], Works]] = {
    "X22": graph_work,
    "E1": case_work("E1 load"),
    "E8": case_work("E8 join"),
    "X14": rolling_work,
}


def count_work(name: str, run: Run) -> None:
    """Count an experiment's tasks on 1, 2, 4, … workers, and report work inflation."""
    alone: dict[str, float] = {}
    most = run.workers or MAX_WORKERS
    for workers in [1 << exponent for exponent in range(most.bit_length())]:
        run.progress(f"counting, {in_words(workers)}", 0, 0)
        for task, work in least(COUNTED[name](run, workers)).items():
            alone.setdefault(task, work.cpu_seconds)
            case = f"{task}, {in_words(workers)}"
            limit = MAX_INFLATION.get(name, USUAL_MAX_INFLATION)
            has_bar = workers > 1 and name != "X14"
            run.report(
                case, f"work inflation at most {limit:g}" if has_bar else None,
                [at_most("inflation", limit)] if has_bar else [],
                **work.figures(), inflation=work.cpu_seconds / alone[task],
            )  # fmt: skip
            for operator, part in work.by_operator().items():
                if part.nanoseconds > MIN_SHARE * 1e9 * work.cpu_seconds:
                    run.record(
                        f"{case}: {operator}", cpu_s=part.nanoseconds / 1e9, rows_sent=part.rows,
                        bytes_sent=part.bytes, messages=part.messages, steps=part.steps,
                    )  # fmt: skip


def least(works: Iterable[tuple[str, TaskWork]]) -> dict[str, TaskWork]:
    """Return the repetition of each task with the least CPU time."""
    best: dict[str, TaskWork] = {}
    for task, work in works:
        if task not in best or work.cpu_seconds < best[task].cpu_seconds:
            best[task] = work
    return best
