"""`kpg bench scaling`: the tables and the picture of docs/scaling.md, from the counts in a directory.

    blocks(directory, machine)               the tables by name
    write_page(page, directory, machine)     replace the tables between the marks of a page
    draw(directory, machine)                 scaling.png: the gains of the model beside those of the papers

Gains are also those of the papers' sizes where these are known: X22 at scale 10 is livejournal. The model is made of
the tasks at scale 1, if these were counted. Other scales have their rows in the table of work inflation.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from kpg.bench.workers.count_command import MAX_INFLATION
from kpg.bench.workers.paper_scaling import (
    GRAPHS,
    PAPER_TASKS,
    PAPER_WORKERS,
    STRONG_P99_MS,
    paper_gains,
    tpch_gain,
)
from kpg.bench.workers.scaling_model import WORKERS, Costs, Machine, TaskCounts, fit, read_counts, without_most
from kpg.errors import InputError

LIVEJOURNAL_SCALE = 10.0  # of X22
BOUND_WORKERS = 32  # the most that the papers print
PAPER_BATCH = 10  # times the rows of a batch in figure 4c
COUNTED_BATCH = 8  # workers for which X14's counted batches have the paper's size
NO_COUNTS = "has no counts yet; `kpg bench X22 --count` makes some"
BLOCK = re.compile(r"(<!-- counts: ([a-z0-9 ]+) -->\n).*?(<!-- end of counts -->)", re.DOTALL)
Cells = Sequence[object]


class Prediction:
    """The model of all counted tasks, on one machine."""

    def __init__(self, directory: Path, machine: Machine) -> None:
        self.counted = read_counts(directory)
        full = [task for task in self.counted if task.scale == 1]
        self.tasks = full or self.counted  # of which the model is made
        self.machine = machine
        self.costs: Costs = fit(self.tasks)

    def of(self, *experiments: str) -> list[TaskCounts]:
        """Return the tasks of some experiments, in the order of their counts."""
        return [task for task in self.tasks if task.experiment in experiments]

    def growth(self, task: TaskCounts) -> float:
        """Return how many times the counted rows the papers' size is: livejournal for X22, else as counted."""
        return LIVEJOURNAL_SCALE / task.scale if task.experiment == "X22" else 1.0

    def gains(self, task: TaskCounts, growth: float = 1.0) -> list[float]:
        """Return how many times faster each number of workers is than one."""
        return task.gains(self.costs, self.machine, growth)


def blocks(directory: Path, machine: Machine) -> dict[str, str]:
    """Return the tables by name; none if nothing was counted."""
    if not read_counts(directory):
        return {}
    prediction = Prediction(directory, machine)
    made = {name: "\n".join(lines(prediction)) for name, lines in BLOCKS.items()}
    return {name: text for name, text in made.items() if text}


def text_of(directory: Path, machine: Machine) -> str:
    """Return all tables, each under its name."""
    made = blocks(directory, machine)
    return "\n\n".join(f"## {name}\n\n{text}" for name, text in made.items()) or f"{directory} {NO_COUNTS}"


def write_page(page: Path, directory: Path, machine: Machine) -> str:
    """Replace the tables between the marks of a page, and return what was done."""
    made = blocks(directory, machine)
    if not made:
        raise InputError(f"{directory} {NO_COUNTS}")
    text = page.read_text()
    for name in {match[1] for match in BLOCK.findall(text)} - set(made):
        raise InputError(f"{page} has a table {name!r} for which nothing was counted")
    page.write_text(BLOCK.sub(lambda match: f"{match[1]}\n{made[match[2]]}\n\n{match[3]}", text))
    return f"{page}: written from {directory}"


def table(head: Cells, rows: Iterable[Cells]) -> list[str]:
    """Return the lines of a table."""
    shown = [" | ".join(str(cell) for cell in row) for row in (head, ["---"] * len(head), *rows)]
    return [f"| {line} |" for line in shown]


def percent(share: float) -> str:
    """Return a share in percent."""
    return f"{100 * share:.0f}%"


def numbers(values: Iterable[float], digits: int = 1) -> list[str]:
    """Return numbers with some digits after the point."""
    return [f"{value:.{digits}f}" for value in values]


def geometric_mean(values: Sequence[float]) -> float:
    """Return the geometric mean."""
    return math.exp(sum(map(math.log, values)) / len(values))


# The tables


def inflation_lines(prediction: Prediction) -> list[str]:
    """Return work inflation as counted, and how many figures meet their bar."""
    rows, met, judged = [], 0, 0
    for task in (task for task in prediction.counted if task.experiment != "X5"):
        limit, most, cells = MAX_INFLATION.get(task.experiment), task.counted[task.largest], []
        for workers in sorted(task.counted)[1:]:
            inflation = float(task.counted[workers]["inflation"])
            is_met = limit is None or inflation <= limit
            cells.append(f"{inflation:.2f}" if is_met else f"**{inflation:.2f}**")
            judged, met = judged + (limit is not None), met + (limit is not None and is_met)
        share = float(most["busiest_cpu_s"]) / float(most["cpu_s"])
        one = float(task.counted[1]["cpu_s"])
        base = "" if task.base is None else f"{task.base_seconds:.3f}"
        width = float(most["bytes_per_row"] or 0)
        rows.append([task.name, f"{one:.3f}", base, *cells, percent(share), f"{width:.1f}"])
    counts = sorted({workers for task in prediction.tasks for workers in task.counted if workers > 1})
    head = ["task", "one worker, CPU s", "plan of several", *[f"{n} workers" for n in counts]]
    lines = table([*head, f"busiest of {max(counts)}", "bytes a row"], rows)
    return [*lines, "", f"{met} of {judged} figures meet their bar; those in bold do not."]


def tpch_inflation_lines(prediction: Prediction) -> list[str]:
    """Return the work inflation of TPC-H's queries."""
    tasks = prediction.of("X5")
    if not tasks:
        return []
    counts = sorted(tasks[0].counted)[1:]
    inflations = {n: [float(task.counted[n]["inflation"]) for task in tasks] for n in counts}
    rows = [[f"{n} workers", *numbers([min(v), geometric_mean(v), max(v)], 2)] for n, v in inflations.items()]
    return table(["TPC-H, work inflation", "least", "geometric mean", "greatest"], rows)


def cost_lines(prediction: Prediction) -> list[str]:
    """Return the costs of the fit."""
    costs = prediction.costs
    rows = [
        [
            task.name,
            f"{costs.rows[task.name] * 1e9:.1f} ns",
            f"{task.sent(task.largest) / 1e6:.2f}M",
            f"{task.rounds:.0f}",
        ]
        for task in prediction.tasks
        if task.experiment != "X5"
    ]
    return [
        f"A round takes each worker {costs.round * 1e3:.2f} ms of CPU time, a message {costs.message * 1e6:.0f} µs.",
        "",
        *table(["task", "a row that is sent", "rows sent, 8 workers", "rounds"], rows),
    ]


def check_lines(prediction: Prediction) -> list[str]:
    """Return the check: predictions for the most workers from the counts of fewer."""
    pairs = [(t, f) for t, f in zip(prediction.tasks, without_most(prediction.tasks), strict=True) if f.largest > 1]
    if not pairs:
        return []
    costs = fit([fewer for _, fewer in pairs])
    rows, errors = [], []
    for task, fewer in pairs:
        most, row = task.largest, task.counted[task.largest]
        cpu = fewer.cpu_seconds(most, costs)
        errors.append(cpu / float(row["cpu_s"]))
        rows.append(
            [task.name, f"{row['cpu_s']:.3f}", f"{cpu:.3f}", f"{errors[-1]:.2f}", f"{row['bytes_sent'] / 1e6:.1f}",
             f"{fewer.bytes(most) / 1e6:.1f}", row["messages"], f"{fewer.messages(most):.0f}"]
        )  # fmt: skip
    most = max(task.largest for task, _ in pairs)
    within = sum(1 / 1.25 <= error <= 1.25 for error in errors)
    shown = [row for (task, _), row in zip(pairs, rows, strict=True) if task.experiment != "X5"]
    head = [
        f"{most} workers, from fewer",
        "CPU s counted",
        "model",
        "ratio",
        "MB counted",
        "model",
        "messages",
        "model",
    ]
    return [
        *table(head, shown),
        "",
        f"Of {len(errors)} counted tasks, {within} are within a quarter of the counted CPU time. The worst ratios are "
        f"{min(errors):.2f} and {max(errors):.2f}, and the geometric mean is {geometric_mean(errors):.2f}.",
    ]


def gain_lines(prediction: Prediction) -> list[str]:
    """Return the gains of the model as counted, and at the size of livejournal beside the paper's."""
    rows: list[list[object]] = []
    for task in prediction.of("E1", "E8"):
        rows.append([f"{task.name}, model", *numbers(prediction.gains(task))])
    for task in prediction.of("X22"):
        rows.append([f"{task.name}, model", *numbers(prediction.gains(task))])
        rows.append(["— of livejournal's size", *numbers(prediction.gains(task, prediction.growth(task)))])
        for graph in GRAPHS:
            rows.append([f"— K-Pg, {graph}", *numbers(paper_gains(graph, paper_task(task))), ""])
    return table(["times faster than one worker", *WORKERS], rows)


def paper_task(task: TaskCounts) -> str:
    """Return the name that the papers have for a task of X22."""
    return next(name for name in PAPER_TASKS if task.name.startswith(name))


def tpch_lines(prediction: Prediction) -> list[str]:
    """Return the gains of TPC-H's queries beside the paper's."""
    rows, gains = [], []
    shown = [1, 2, 4, 8, 16, 32]
    for task in prediction.of("X5"):
        number = int(task.name.split(" ")[0][1:])
        small, large = prediction.gains(task), prediction.gains(task, PAPER_BATCH)
        at = [WORKERS.index(n) for n in shown[1:]]
        bound = task.bound(BOUND_WORKERS, prediction.costs, prediction.machine)
        gains.append((small[WORKERS.index(32)], large[WORKERS.index(16)], tpch_gain(number)))
        cells = [*numbers(small[i] for i in at), f"{tpch_gain(number):.1f}", f"{large[WORKERS.index(16)]:.1f}", bound]
        rows.append([task.name, *cells])
    if not rows:
        return []
    means = [geometric_mean(column) for column in zip(*gains, strict=True)]
    head = ["times faster, batches of 100,000", *shown[1:], "K-Pg, 32", "batches of 1M, 16", "bound on 32 by"]
    return [
        *table(head, rows),
        "",
        f"Geometric means: 32 workers {means[0]:.1f} times, K-Pg's 32 workers {means[2]:.1f}; 16 workers with batches "
        f"of 1M rows {means[1]:.1f}.",
    ]


def arrangement_lines(prediction: Prediction) -> list[str]:
    """Return the predictions for figure 6."""
    rows: list[list[object]] = []
    for task in prediction.of("X12", "X13"):
        epochs = float(task.counted[1]["epochs"])
        latency = [task.seconds(n, prediction.costs, prediction.machine) / epochs * 1e3 for n in WORKERS]
        rows.append([f"{'6c' if task.grows else '6b'}: {task.name}, ms", *numbers(latency, 2)])
    if prediction.of("X12"):
        rows.append(["6b: K-Pg, p99 in ms", *[STRONG_P99_MS.get(n, "") for n in WORKERS]])
    if prediction.of("X13"):
        rows.append(["6c: K-Pg, tails in ms", *["100–200" if n > 1 else "" for n in WORKERS[:-1]], ""])
    for task in prediction.of("X14"):
        one = task.seconds(1, prediction.costs, prediction.machine, 1 / COUNTED_BATCH)
        rates = [n * one / task.seconds(n, prediction.costs, prediction.machine, n / COUNTED_BATCH) for n in WORKERS]
        rows.append([f"6d: {task.name}, 10,000 updates for each worker, times the rate of one", *numbers(rates)])
    if rows and prediction.of("X14"):
        rows.append(["6d: K-Pg", *[n if n <= BOUND_WORKERS else "" for n in WORKERS]])
    return table(["figure 6", *WORKERS], rows) if rows else []


def bound_lines(prediction: Prediction) -> list[str]:
    """Return what bounds each task: shares of its time on 32 workers, and where half of it is not its own work."""
    rows = []
    tasks = [*prediction.of("E1", "E8"), *prediction.of("X22"), *prediction.of("X12", "X13", "X14")]
    for task in tasks:
        growth = prediction.growth(task)
        given = (prediction.costs, prediction.machine, growth)
        shares = task.shares(BOUND_WORKERS, *given)
        start = task.bound_from(*given)
        cells = [percent(share) for share in (*shares.values(), task.alone)]
        rows.append([task.name, *cells, task.bound(BOUND_WORKERS, *given), f"{start} workers" if start else "never"])
    head = [f"on {BOUND_WORKERS} workers", "own work", "sent rows", "messages", "network", "done by one", "bound by"]
    return table([*head, "half of the time from"], rows)


BLOCKS: dict[str, Callable[[Prediction], list[str]]] = {
    "inflation": inflation_lines,
    "tpch inflation": tpch_inflation_lines,
    "costs": cost_lines,
    "check": check_lines,
    "gains": gain_lines,
    "tpch": tpch_lines,
    "figure 6": arrangement_lines,
    "bounds": bound_lines,
}


def draw(directory: Path, machine: Machine) -> Path | None:
    """Draw the gains of the model beside those of the papers into scaling.png; None if nothing was counted."""
    if not read_counts(directory):
        return None
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    prediction, columns = Prediction(directory, machine), 4
    tasks = [*prediction.of("X22"), *prediction.of("E1", "E8", "X14")]
    queries = prediction.of("X5")
    panels = len(tasks) + bool(queries)
    rows = -(-panels // columns)
    figure, grid = pyplot.subplots(
        rows, columns, figsize=(3.2 * columns, 3 * rows), layout="constrained", squeeze=False, sharex=True, sharey=True
    )
    for axes, task in zip(grid.flat, tasks, strict=False):
        axes.set_title(task.name, fontsize=10, loc="left")
        growth = prediction.growth(task)
        axes.plot(WORKERS, prediction.gains(task), color="#9065b0", marker="o", markersize=3, label="model, as counted")
        if growth > 1:
            gains = prediction.gains(task, growth)
            axes.plot(WORKERS, gains, color="#0b6e99", marker="o", markersize=3, label="model, livejournal's size")
        if task.experiment == "X22":
            for graph, style in zip(GRAPHS, ("-", "--", ":"), strict=True):
                gains = paper_gains(graph, paper_task(task))
                axes.plot(PAPER_WORKERS, gains, color="#d9730d", linestyle=style, linewidth=1, label=f"K-Pg, {graph}")
    if queries:
        axes = grid.flat[len(tasks)]
        axes.set_title("TPC-H, geometric means", fontsize=10, loc="left")
        for growth, colour, rows_of in ((1, "#9065b0", "100,000"), (PAPER_BATCH, "#0b6e99", "1M")):
            means = [geometric_mean(each) for each in zip(*(prediction.gains(q, growth) for q in queries), strict=True)]
            axes.plot(WORKERS, means, color=colour, marker="o", markersize=3, label=f"model, batches of {rows_of} rows")
        mean = geometric_mean([tpch_gain(number) for number in range(1, 23)])
        axes.plot(
            [1, 32], [1, mean], color="#d9730d", linewidth=1, marker="s", markersize=3, label="K-Pg, 100,000 rows"
        )
    for axes in grid.flat[:panels]:
        axes.plot(WORKERS, WORKERS, color="#c8c8c8", linewidth=0.8, label="linear")
        axes.set_xscale("log", base=2)
        axes.set_yscale("log", base=2)
        axes.legend(fontsize=6, frameon=False, loc="upper left")
        axes.tick_params(labelsize=8)
        axes.grid(True, which="major", linewidth=0.4, alpha=0.6)
    for axes in grid.flat[panels:]:
        axes.set_visible(False)
    figure.supxlabel("workers", fontsize=9)
    figure.supylabel("times faster than one worker", fontsize=9)
    path = directory / "scaling.png"
    figure.savefig(path, dpi=110)
    pyplot.close(figure)
    return path
