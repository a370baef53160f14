"""`kpg bench scaling`: a model of 1 to 64 workers, fitted to counted work and compared with it.

    CPU(N)      =  CPU(1)  +  row · sent(N)  +  round · N · rounds  +  worker · (N − 1)
    sent(N)     =  exchanged · (1 − 1/N)                   a row that leaves goes to one of N − 1 peers
    messages(N) =  pairs · N (N − 1)                       rows and progress, to each peer in each round
    busiest(N)  =  CPU(N) · (alone  +  (1 − alone) / N)    `alone`: the share that one worker does for all
    elapsed(N)  =  busiest(N) / core speed  +  rounds · latency  +  bytes(N) / (N · bandwidth)

The costs of a row, of a round and of a worker are the same for all tasks; a fit of least squares finds them from the
counts of `kpg bench ID --count`. The other figures of a task are its own counts at the largest number of workers. The
check leaves these out: it fits the model to fewer workers, and compares its prediction with the counts of the most.
The model assumes that keys are spread evenly, and that nothing overlaps. Beside its gains stand those that the papers
print (kpg.bench.workers.paper_scaling); `draw` draws both.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from kpg.bench.results import read
from kpg.bench.workers.paper_scaling import GRAPHS, PAPER_TASKS, PAPER_WORKERS, paper_gains

WORKERS = (1, 2, 4, 8, 16, 32, 64)
BOUND_WORKERS = 32  # the most that the papers print
GROWTHS = (1, 10)  # of the data: X22 at scale 1 has a tenth of the edges of the papers' graph
CASE = re.compile(r"^([^:]*), (\d+) workers?$")


@dataclass(frozen=True, slots=True)
class Machine:
    """The machine of a prediction, relative to that of the counts."""

    core_speed: float = 1.0
    bytes_per_second: float = 1.25e9  # of a worker's network: 10 Gbit/s
    latency_seconds: float = 50e-6  # of a message


@dataclass(frozen=True, slots=True)
class Costs:
    """CPU seconds for a row that is sent, for a round on one worker, and for each worker after the first."""

    row: float
    round: float
    worker: float


@dataclass(slots=True)
class TaskCounts:
    """The counted rows of one task, by number of workers."""

    name: str
    counted: dict[int, dict[str, Any]] = field(default_factory=dict)

    @property
    def largest(self) -> int:
        """The largest number of workers that was counted."""
        return max(self.counted)

    def sent(self, workers: int) -> float:
        """Return the rows between workers."""
        most = self.largest
        return float(self.counted[most]["rows_sent"]) * (1 - 1 / workers) / (1 - 1 / most)

    def bytes(self, workers: int) -> float:
        """Return the bytes between workers."""
        return self.sent(workers) * float(self.counted[self.largest]["bytes_per_row"] or 0)

    def messages(self, workers: int) -> float:
        """Return the messages between workers."""
        most = self.largest
        return float(self.counted[most]["messages"]) * (workers * (workers - 1)) / (most * (most - 1))

    def cpu_seconds(self, workers: int, costs: Costs, growth: float = 1.0) -> float:
        """Return the CPU seconds of all workers for `growth` times the rows; rounds stay as many."""
        rounds = workers * float(self.counted[self.largest]["rounds"]) if workers > 1 else 0.0
        more = costs.round * rounds + costs.worker * (workers - 1)
        return growth * (float(self.counted[1]["cpu_s"]) + costs.row * self.sent(workers)) + more

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
        waiting = float(self.counted[self.largest]["rounds"]) * machine.latency_seconds
        return working + waiting + growth * self.bytes(workers) / (workers * machine.bytes_per_second)

    def shares(self, workers: int, costs: Costs, machine: Machine, growth: float = 1.0) -> tuple[float, ...]:
        """Return the shares of elapsed time: its own work, rows that are sent, rounds and workers, and the network."""
        total, speed = self.seconds(workers, costs, machine, growth), machine.core_speed / self.busiest_share(workers)
        own = growth * float(self.counted[1]["cpu_s"]) / speed
        rows = growth * costs.row * self.sent(workers) / speed if workers > 1 else 0.0
        rounds = self.cpu_seconds(workers, costs, growth) / speed - own - rows
        return own / total, rows / total, rounds / total, 1 - (own + rows + rounds) / total


def read_counts(directory: Path) -> list[TaskCounts]:
    """Return the counted tasks in a directory of results; those that were counted on several workers."""
    tasks: dict[str, TaskCounts] = {}
    for path in sorted(directory.glob("*-counts.json")):
        for row in read(path).rows:
            match = CASE.match(row["case"])
            if match:
                task = tasks.setdefault(match[1], TaskCounts(match[1]))
                task.counted[int(match[2])] = row
    return [task for task in tasks.values() if 1 in task.counted and task.largest > 1]


def fit(tasks: Iterable[TaskCounts]) -> Costs:
    """Return the costs that explain the counted CPU seconds of all tasks best; none is negative.

    A cost that the fit would make negative is left out, and the others are fitted again.
    """
    equations, more = [], []
    for task in tasks:
        for workers, row in task.counted.items():
            if workers > 1:
                share = 1 / float(task.counted[1]["cpu_s"])  # so that the error of each task is relative to its size
                equations.append([share * row["rows_sent"], share * workers * row["rounds"], share * (workers - 1)])
                more.append(share * float(row["cpu_s"]) - 1)
    matrix, kept = np.array(equations), [0, 1, 2]
    while True:
        costs = np.linalg.lstsq(matrix[:, kept], np.array(more), rcond=None)[0]
        if min(costs, default=0) >= 0:
            break
        kept.remove(kept[int(np.argmin(costs))])
    by_kind = defaultdict(float, zip(kept, costs.tolist(), strict=True))
    return Costs(by_kind[0], by_kind[1], by_kind[2])


def table(directory: Path) -> str:
    """Return the model of all counted tasks in a directory as text: the costs, the check, and the prediction."""
    tasks = read_counts(directory)
    if not tasks:
        return f"{directory} has no counts yet; `kpg bench X22 --count` makes some"
    costs = fit(tasks)
    return "\n".join([*lines(tasks, costs, Machine()), *paper_lines(), *bound_lines(tasks, costs, Machine())])


def paper_lines() -> Iterator[str]:
    """Yield the table of the papers' gains."""
    yield ""
    yield "| times faster, K-Pg as printed | " + " | ".join(map(str, PAPER_WORKERS)) + " |"
    yield "|---|" + "---|" * len(PAPER_WORKERS)
    for graph in GRAPHS:
        for task in PAPER_TASKS:
            gains = [f"{gain:.1f}" for gain in paper_gains(graph, task)]
            yield f"| {graph}, {task} | " + " | ".join(gains) + " |"


def bound_lines(tasks: Iterable[TaskCounts], costs: Costs, machine: Machine) -> Iterator[str]:
    """Yield the table of what bounds each task: shares of its time on 32 workers, and where half of it is not work."""
    growth = GROWTHS[-1]
    yield ""
    yield (
        f"| on {BOUND_WORKERS} workers, {growth} × the rows | done by one | its own work | sent rows | rounds "
        "| network and waiting | half is not its own work from |"
    )
    yield "|---|---|---|---|---|---|---|"
    for task in tasks:
        shares = task.shares(BOUND_WORKERS, costs, machine, growth)
        from_workers = next((n for n in WORKERS if task.shares(n, costs, machine, growth)[0] < 0.5), None)
        cells = [f"{100 * share:.0f}%" for share in (task.alone, *shares)]
        yield f"| {task.name} | " + " | ".join(cells) + f" | {f'{from_workers} workers' if from_workers else 'never'} |"


def draw(directory: Path) -> Path | None:
    """Draw the gains of the model beside those of the papers into scaling.png; None if nothing was counted."""
    tasks = read_counts(directory)
    if not tasks:
        return None
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    costs, columns = fit(tasks), 4
    rows = -(-len(tasks) // columns)
    figure, grid = pyplot.subplots(
        rows, columns, figsize=(3.2 * columns, 3 * rows), layout="constrained", squeeze=False, sharex=True, sharey=True
    )
    for axes, task in zip(grid.flat, tasks, strict=False):
        axes.set_title(task.name, fontsize=10, loc="left")
        axes.plot(WORKERS, WORKERS, color="#c8c8c8", linewidth=0.8, label="linear")
        for growth, colour in zip(GROWTHS, ("#9065b0", "#0b6e99"), strict=True):
            alone = task.seconds(1, costs, Machine(), growth)
            gains = [alone / task.seconds(workers, costs, Machine(), growth) for workers in WORKERS]
            axes.plot(WORKERS, gains, color=colour, marker="o", markersize=3, label=f"model, {growth} × the rows")
        if task.name in PAPER_TASKS:
            for graph, style in zip(GRAPHS, ("-", "--", ":"), strict=True):
                gains = paper_gains(graph, task.name)
                axes.plot(PAPER_WORKERS, gains, color="#d9730d", linestyle=style, linewidth=1, label=f"K-Pg, {graph}")
        axes.set_xscale("log", base=2)
        axes.set_yscale("log", base=2)
        axes.legend(fontsize=6, frameon=False, loc="upper left")
        axes.tick_params(labelsize=8)
        axes.grid(True, which="major", linewidth=0.4, alpha=0.6)
    for axes in grid.flat[len(tasks) :]:
        axes.set_visible(False)
    figure.supxlabel("workers", fontsize=9)
    figure.supylabel("times faster than one worker", fontsize=9)
    path = directory / "scaling.png"
    figure.savefig(path, dpi=110)
    pyplot.close(figure)
    return path


def without_most(tasks: Iterable[TaskCounts]) -> list[TaskCounts]:
    """Return the tasks without their counts at the largest number of workers."""
    return [TaskCounts(t.name, {n: row for n, row in t.counted.items() if n != t.largest}) for t in tasks]


def lines(tasks: list[TaskCounts], costs: Costs, machine: Machine) -> Iterator[str]:
    """Yield the lines of the table."""
    yield (
        f"A row that is sent costs {costs.row * 1e9:.1f} ns, a round {costs.round * 1e3:.2f} ms on each worker, "
        f"and a worker {costs.worker * 1e3:.1f} ms of CPU time."
    )
    checked = [(task, fewer) for task, fewer in zip(tasks, without_most(tasks), strict=True) if len(fewer.counted) > 1]
    if checked:
        fewer_costs = fit([fewer for _, fewer in checked])
        yield ""
        yield "| predicted from fewer | workers | CPU s counted | model | MB counted | model | messages | model |"
        yield "|---|---|---|---|---|---|---|---|"
        for task, fewer in checked:
            most, row = task.largest, task.counted[task.largest]
            yield (
                f"| {task.name} | {most} | {row['cpu_s']:.3f} | {fewer.cpu_seconds(most, fewer_costs):.3f} "
                f"| {row['bytes_sent'] / 1e6:.1f} | {fewer.bytes(most) / 1e6:.1f} "
                f"| {row['messages']} | {fewer.messages(most):.0f} |"
            )
    for growth in GROWTHS:
        yield ""
        yield f"| times faster, {growth} × the rows | " + " | ".join(map(str, WORKERS)) + " |"
        yield "|---|" + "---|" * len(WORKERS)
        for task in tasks:
            alone = task.seconds(1, costs, machine, growth)
            gains = [f"{alone / task.seconds(workers, costs, machine, growth):.1f}" for workers in WORKERS]
            yield f"| {task.name} | " + " | ".join(gains) + " |"
