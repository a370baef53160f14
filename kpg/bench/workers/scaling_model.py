"""A model of 1 to 64 workers, fitted to counted work and compared with it.

    CPU(N)      =  base  +  row · sent(N)  +  round · N · rounds  +  message · messages(N)      for N > 1
    sent(N)     =  exchanged(N) · (1 − 1/N)                a row that leaves goes to one of N − 1 peers
    messages(N) =  pairs · N (N − 1)                       rows and progress, to each peer in each round
    busiest(N)  =  CPU(N) · (alone  +  (1 − alone) / N)    `alone`: the share that one worker does for all
    elapsed(N)  =  busiest(N) / core speed  +  rounds · latency  +  bytes(N) / (N · bandwidth)

The base is the CPU time of one worker with the plan of several (`kpg bench --count`). The costs of a round and of a
message are the same for all tasks, that of a row is the task's own; fits of least squares find them. The exchanged
rows grow with a power of N where counts say so: on more workers, fewer rows are reduced before they leave. If they grow
faster than N, a task has changed its method, and they stay as the last count has them. Other figures of a task are its
counts at the largest number of workers. A task that grows with its workers (X13) has N times the base and the rows.

The check leaves the most workers out: it fits the model to fewer, and compares its prediction with the counts. The
model assumes that keys are spread evenly, and that nothing overlaps.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from kpg.bench.results import read
from kpg.bench.workers.count_command import PLAN_OF_SEVERAL

WORKERS = (1, 2, 4, 8, 16, 32, 64)
COUNTS = "*-counts-scale-*.json"
CASE = re.compile(r"^([^:]*), (\d+) workers?$")
BASE = re.compile(rf"^([^:]*), 1 worker: {PLAN_OF_SEVERAL}$")
SMALL_BATCHES = "X12, 1 ms of load"
MIN_EXPONENT = 0.1  # less is noise: the rows do not depend on the number of workers


@dataclass(frozen=True, slots=True)
class Machine:
    """The machine of a prediction, relative to that of the counts."""

    core_speed: float = 1.0
    bytes_per_second: float = 1.25e9  # of a worker's network: 10 Gbit/s
    latency_seconds: float = 50e-6  # of a message


@dataclass(frozen=True, slots=True)
class Costs:
    """CPU seconds for a row that is sent, by task; for a round on one worker; and for a message."""

    rows: dict[str, float]
    round: float
    message: float


@dataclass(slots=True)
class TaskCounts:
    """The counted rows of one task, by number of workers."""

    name: str
    experiment: str = ""
    scale: float = 1.0
    counted: dict[int, dict[str, Any]] = field(default_factory=dict)
    base: dict[str, Any] | None = None  # of one worker with the plan of several, if that was counted

    @property
    def largest(self) -> int:
        """The largest number of workers that was counted."""
        return max(self.counted)

    @property
    def base_seconds(self) -> float:
        """The CPU seconds of the plan of several workers on one."""
        return float((self.base or self.counted[1])["cpu_s"])

    @property
    def grows(self) -> bool:
        """Whether the rows grow with the workers."""
        return int(self.counted[self.largest].get("growth", 1)) > 1

    @property
    def rounds(self) -> float:
        """The rounds of progress."""
        return float(self.counted[self.largest]["rounds"])

    def times(self, workers: int) -> int:
        """Return how many times the rows of one worker there are."""
        return workers if self.grows else 1

    def exchanged(self, workers: int) -> float:
        """Return the rows of a counted number of workers that would leave if no worker owned them."""
        return float(self.counted[workers]["rows_sent"]) / (1 - 1 / workers) / self.times(workers)

    @property
    def exponent(self) -> float:
        """The power of the number of workers with which the exchanged rows grow."""
        counts = sorted(workers for workers in self.counted if workers > 1)[-2:]
        if len(counts) < 2 or not all(map(self.exchanged, counts)):
            return 0.0
        fewer, more = counts
        exponent = math.log(self.exchanged(more) / self.exchanged(fewer)) / math.log(more / fewer)
        return exponent if MIN_EXPONENT <= exponent <= 1 else 0.0

    def sent(self, workers: int) -> float:
        """Return the rows between workers."""
        exchanged: float = self.exchanged(self.largest) * (workers / self.largest) ** self.exponent
        return exchanged * (1 - 1 / workers) * self.times(workers)

    def bytes(self, workers: int) -> float:
        """Return the bytes between workers."""
        return self.sent(workers) * float(self.counted[self.largest]["bytes_per_row"] or 0)

    def messages(self, workers: int) -> float:
        """Return the messages between workers."""
        most = self.largest
        return float(self.counted[most]["messages"]) * (workers * (workers - 1)) / (most * (most - 1))

    def cpu_seconds(self, workers: int, costs: Costs, growth: float = 1.0) -> float:
        """Return the CPU seconds of all workers for `growth` times the rows; rounds stay as many."""
        if workers == 1:
            return growth * float(self.counted[1]["cpu_s"])
        more = costs.round * workers * self.rounds + costs.message * self.messages(workers)
        own = self.base_seconds * self.times(workers)
        return growth * (own + costs.rows[self.name] * self.sent(workers)) + more

    @property
    def alone(self) -> float:
        """The share of the work that one worker does for all, from the worker with the most CPU time."""
        row, most = self.counted[self.largest], self.largest
        share = float(row.get("busiest_cpu_s") or 0) / float(row["cpu_s"])
        return max(0.0, (share - 1 / most) / (1 - 1 / most))

    def busiest_share(self, workers: int) -> float:
        """Return the share of the CPU time that the busiest worker has."""
        return self.alone + (1 - self.alone) / workers

    def seconds(self, workers: int, costs: Costs, machine: Machine, growth: float = 1.0) -> float:
        """Return the elapsed seconds for `growth` times the rows, if each worker has a core."""
        working = self.cpu_seconds(workers, costs, growth) * self.busiest_share(workers) / machine.core_speed
        if workers == 1:
            return working
        waiting = self.rounds * machine.latency_seconds
        return working + waiting + growth * self.bytes(workers) / (workers * machine.bytes_per_second)

    def gains(
        self, costs: Costs, machine: Machine, growth: float = 1.0, workers: Sequence[int] = WORKERS
    ) -> list[float]:
        """Return how many times faster each number of workers is than one, for the same rows."""
        alone = self.seconds(1, costs, machine, growth)
        return [self.times(n) * alone / self.seconds(n, costs, machine, growth) for n in workers]

    def shares(self, workers: int, costs: Costs, machine: Machine, growth: float = 1.0) -> dict[str, float]:
        """Return the shares of elapsed time: its own work, rows that are sent, rounds and messages, and the network."""
        total, speed = self.seconds(workers, costs, machine, growth), machine.core_speed / self.busiest_share(workers)
        several = workers > 1
        own = growth * (self.base_seconds * self.times(workers) if several else float(self.counted[1]["cpu_s"])) / speed
        rows = growth * costs.rows[self.name] * self.sent(workers) / speed if several else 0.0
        rounds = self.cpu_seconds(workers, costs, growth) / speed - own - rows
        parts = {"own work": own, "sent rows": rows, "messages": rounds, "network": total - own - rows - rounds}
        return {part: seconds / total for part, seconds in parts.items()}

    def bound(self, workers: int, costs: Costs, machine: Machine, growth: float = 1.0) -> str:
        """Return what takes most of the time beyond an equal share of the own work; `one worker` if that is uneven."""
        shares = self.shares(workers, costs, machine, growth)
        own = shares.pop("own work")
        even = own / workers / self.busiest_share(workers)
        return max({**shares, "one worker": own - even}.items(), key=lambda part: part[1])[0]

    def bound_from(self, costs: Costs, machine: Machine, growth: float = 1.0) -> int | None:
        """Return the least number of workers at which half of the time is not an equal share of the own work."""
        for workers in WORKERS[1:]:
            even = self.shares(workers, costs, machine, growth)["own work"] / workers / self.busiest_share(workers)
            if even < 0.5:
                return workers
        return None


def read_counts(directory: Path) -> list[TaskCounts]:
    """Return the counted tasks in a directory of results; those that were counted on several workers."""
    tasks: dict[str, TaskCounts] = {}
    for path in sorted(directory.glob(COUNTS)):
        result = read(path)
        experiment, suffix = result.id.partition("-")[0], "" if result.scale == 1 else f" at scale {result.scale:g}"

        def task_of(name: str, experiment: str = experiment, suffix: str = suffix, scale: float = result.scale) -> Any:
            return tasks.setdefault(name + suffix, TaskCounts(name + suffix, experiment, scale))

        for row in result.rows:
            if match := CASE.match(row["case"]):
                task_of(match[1]).counted[int(match[2])] = row
            elif match := BASE.match(row["case"]):
                task_of(match[1]).base = row
    return [task for task in tasks.values() if 1 in task.counted and task.largest > 1]


def fit(tasks: Sequence[TaskCounts]) -> Costs:
    """Return the costs that explain the counted CPU seconds best, relative to these; none is negative.

    The additional work of small batches is that of rounds and messages alone, so their counts tell what these cost. If
    small batches were not counted, one fit of all tasks finds all costs.
    """
    small = [task for task in tasks if task.name == SMALL_BATCHES]
    shared = [0.0, 0.0]
    if any(len(task.counted) > 2 for task in small):
        terms = [equation[1:] for task in small for equation in equations(task)]
        shared = fit_columns([[0.0, *parts] for *parts, _ in terms], [more for *_, more in terms])[1:]
    else:
        every = [(number, equation) for number, task in enumerate(tasks) for equation in equations(task)]
        columns = [[rows * (n == number) for n in range(len(tasks))] + parts for number, (rows, *parts, _) in every]
        shared = fit_columns(columns, [equation[-1] for _, equation in every])[-2:]
    by_task = {}
    for task in tasks:
        terms = equations(task)
        rest = [more - shared[0] * rounds - shared[1] * messages for _, rounds, messages, more in terms]
        by_task[task.name] = fit_columns([[rows] for rows, *_ in terms], rest)[0]
    return Costs(by_task, *shared)


def equations(task: TaskCounts) -> list[list[float]]:
    """Return, for each number of workers, the rows, rounds and messages, and the work beside the base: all by CPU."""
    found = []
    for workers, row in task.counted.items():
        if workers > 1:
            counted = float(row["cpu_s"])
            work = [row["rows_sent"], workers * row["rounds"], row["messages"]]
            more = counted - task.base_seconds * task.times(workers)
            found.append([float(part) / counted for part in (*work, more)])
    return found


def fit_columns(columns: list[list[float]], more: list[float]) -> list[float]:
    """Return the factors of columns whose sum is nearest to `more`. One that would be negative is left out: 0."""
    matrix, factors = np.array(columns), [0.0] * len(columns[0])
    kept = [column for column in range(len(factors)) if matrix[:, column].any()]
    while kept:
        found = np.linalg.lstsq(matrix[:, kept], np.array(more), rcond=None)[0].tolist()
        if min(found) >= 0:
            for column, factor in zip(kept, found, strict=True):
                factors[column] = factor
            break
        del kept[found.index(min(found))]
    return factors


def without_most(tasks: Iterable[TaskCounts]) -> list[TaskCounts]:
    """Return the tasks without their counts at the largest number of workers."""
    return [
        TaskCounts(t.name, t.experiment, t.scale, {n: row for n, row in t.counted.items() if n != t.largest}, t.base)
        for t in tasks
    ]
