"""The model of more workers finds the costs that its counts were made with, and never predicts negative ones."""

import pytest

from kpg.bench.registry import experiment
from kpg.bench.runner import new_result
from kpg.bench.workers.paper_scaling import (
    GRAPHS,
    PAPER_TASKS,
    PAPER_WORKERS,
    TPCH_RATES,
    paper_gains,
    paper_inflations,
)
from kpg.bench.workers.scaling_model import (
    SMALL_BATCHES,
    WORKERS,
    Costs,
    Machine,
    TaskCounts,
    fit,
    read_counts,
    without_most,
)
from kpg.bench.workers.scaling_page import BLOCKS, text_of, write_page
from kpg.cli import main
from kpg.errors import InputError

ROUND, MESSAGE = 3e-4, 4e-5
ROWS = {"load": 8e-9, "loop": 3e-8, "small": 5e-9, "task": 8e-9}
COSTS = Costs(ROWS, ROUND, MESSAGE)


def counted(name, cpu, exchanged, rounds, workers=(1, 2, 4, 8), exponent=0.0, alone=None, grows=False):
    """Return the counts of a task that costs exactly what the model says; one worker has another plan if `alone`."""
    task = TaskCounts(name)
    row_cost = ROWS.get(name, 8e-9)
    for n in workers:
        times = n if grows else 1
        sent = exchanged * n**exponent * (1 - 1 / n) * times
        row = {"rows_sent": sent, "messages": rounds * n * (n - 1), "epochs": 5, "growth": times}
        row |= {"bytes_per_row": 8.0, "bytes_sent": 8 * sent, "rounds": rounds if n > 1 else 0}
        row["cpu_s"] = cpu * times + row_cost * sent + ROUND * n * row["rounds"] + MESSAGE * row["messages"]
        row["busiest_cpu_s"] = row["cpu_s"] / n
        row["inflation"] = row["cpu_s"] / times / cpu
        task.counted[n] = row
    if alone is not None:
        task.base = {"cpu_s": cpu}
        task.counted[1]["cpu_s"] = alone
    return task


def test_the_fit_finds_the_costs_of_exact_counts():
    """Among them a loop that is another operator on one worker, and whose rows grow with the root of the workers."""
    tasks = [
        counted("load", 1.0, 1e7, 2),
        counted("loop", 0.5, 1e6, 40, exponent=0.5, alone=2.0),
        counted("small", 0.01, 100, 5),
        counted("growing", 0.1, 1e6, 7, grows=True),
    ]
    costs = fit(tasks)
    assert (costs.round, costs.message) == pytest.approx((ROUND, MESSAGE), rel=1e-4)
    assert costs.rows["loop"] == pytest.approx(ROWS["loop"], rel=1e-4)
    assert tasks[1].exponent == pytest.approx(0.5) and tasks[0].exponent == 0
    for task, fewer in zip(tasks, without_most(tasks), strict=True):
        assert task.cpu_seconds(8, costs) == pytest.approx(task.counted[8]["cpu_s"])
        assert fewer.largest == 4
        assert fewer.cpu_seconds(8, fit(without_most(tasks))) == pytest.approx(task.counted[8]["cpu_s"])
        assert fewer.bytes(8) == pytest.approx(task.counted[8]["bytes_sent"])
        assert fewer.messages(8) == pytest.approx(task.counted[8]["messages"])
    assert tasks[1].cpu_seconds(1, costs) == 2.0, "one worker has the plan of one"


def test_small_batches_tell_what_rounds_and_messages_cost():
    """Rows of other tasks that cost more on more workers do not change it."""
    task = counted("load", 1.0, 1e6, 40)
    for n, row in task.counted.items():
        row["cpu_s"] += 0.01 * n**2
    small = counted(SMALL_BATCHES, 0.1, 0, 400)
    costs = fit([task, small])
    assert (costs.round, costs.message) == pytest.approx((ROUND, MESSAGE), rel=1e-4)
    assert costs.rows["load"] > ROWS["load"] and costs.rows[SMALL_BATCHES] == 0


def test_rows_that_grow_faster_than_workers_stay_as_they_are():
    task = counted("load", 1.0, 1e6, 2)
    task.counted[2]["rows_sent"] /= 10  # two workers add rows up before they leave
    assert without_most([task])[0].sent(8) == pytest.approx(task.counted[8]["rows_sent"])


def test_workers_gain_less_where_rounds_bound_a_task():
    load, loop = counted("load", 1.0, 1e7, 2), counted("loop", 0.5, 1e6, 200)
    gains = load.gains(COSTS, Machine(), workers=(2, 8, 64))
    assert 1.5 < gains[0] < 2 and gains == sorted(gains)
    bounded = [loop.gains(COSTS, Machine(), growth, (64,))[0] for growth in (1, 100)]
    assert bounded[0] < 8 < bounded[1]  # a larger graph has as many rounds
    assert loop.bound(64, COSTS, Machine()) == "messages" and loop.bound_from(COSTS, Machine()) in WORKERS
    faster = Machine(core_speed=2.0, bytes_per_second=1e12, latency_seconds=0.0)
    assert load.seconds(8, COSTS, faster) == pytest.approx(load.cpu_seconds(8, COSTS) / 16, rel=1e-2)
    assert load.bound(64, COSTS, Machine(bytes_per_second=1e6)) == "network"


def test_work_that_one_worker_does_for_all_bounds_a_task():
    task = counted("task", 1.0, 1e6, 4)
    for n, row in task.counted.items():
        row["busiest_cpu_s"] = row["cpu_s"] * (0.75 + 0.25 / n)
    assert task.alone == pytest.approx(0.75) and task.busiest_share(1) == 1
    assert task.gains(COSTS, Machine(), workers=(64,))[0] < 1 / 0.75
    assert task.bound(32, COSTS, Machine()) == "one worker"
    shares = task.shares(8, COSTS, Machine()).values()
    assert sum(shares) == pytest.approx(1) and min(shares) >= 0


def test_the_papers_tables_are_whole():
    for graph, tasks in GRAPHS.items():
        assert set(tasks) == set(PAPER_TASKS)
        for task in tasks:
            gains, inflations = paper_gains(graph, task), paper_inflations(graph, task)
            assert len(gains) == len(PAPER_WORKERS) and gains[0] == inflations[0] == 1
            assert all(gain <= 1.03 * workers for gain, workers in zip(gains, PAPER_WORKERS, strict=True))
    assert sorted(TPCH_RATES) == list(range(1, 23)) and all(one < most for one, most in TPCH_RATES.values())


def test_no_cost_is_negative():
    task = counted("load", 1.0, 1e7, 2)
    for row in task.counted.values():
        row["cpu_s"] = 1.0 - 0.001 * row["rounds"]
    costs = fit([task])
    assert min(costs.rows["load"], costs.round, costs.message) >= 0


def save_counts(directory, id, tasks, scale=1.0):
    result = new_result(experiment(id), scale, 0)
    result.id = f"{id}-counts-scale-{scale:g}"
    for task in tasks:
        for n, row in task.counted.items():
            result.rows += [{"case": f"{task.name}, {n} worker{'s' * (n > 1)}", **row}]
            result.rows += [{"case": f"{task.name}, {n} workers: arrange", "cpu_s": 9.0}]
        if task.base is not None:
            result.rows += [{"case": f"{task.name}, 1 worker: plan of several workers", **task.base}]
    result.save(directory)


def save_all(directory):
    save_counts(directory, "E1", [counted("E1 load", 0.1, 1e7, 3)])
    for scale in (1.0, 4.0):
        tasks = [counted(name, scale, scale * 1e6, 9, alone=2 * scale) for name in PAPER_TASKS]
        save_counts(directory, "X22", tasks, scale)
    save_counts(directory, "X5", [counted(f"Q{number}", 0.3, 1e5, 70) for number in range(1, 23)])
    for id, grows in (("X12", False), ("X13", True), ("X14", False)):
        save_counts(directory, id, [counted(f"{id} task", 0.3, 1e5, 70, grows=grows)])


def test_the_command_reads_the_counts_of_a_directory(tmp_path, capsys):
    assert "has no counts yet" in text_of(tmp_path, Machine())
    save_all(tmp_path)
    reach = next(task for task in read_counts(tmp_path) if task.name == "reach at scale 4")
    assert reach.largest == 8 and reach.scale == 4 and reach.base_seconds == 4 and reach.counted[1]["cpu_s"] == 8
    assert main(["bench", "scaling", "--out", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert all(f"## {name}" in said for name in BLOCKS) and (tmp_path / "scaling.png").exists()
    assert (
        "| reach, model |" in said
        and "| reach at scale 4 | 8.000 | 4.000 |" in said
        and "| — K-Pg, livejournal | 1.0 | 2.0 | 3.7 |" in said
    )
    assert main(["bench", "scaling", "--out", str(tmp_path), "--gigabits", "0.01", "--latency-us", "900"]) == 0
    slower = capsys.readouterr().out
    assert said.count("| network |") == 1 and slower.count("| network |") > 6  # the head of a column, and bounds


def test_the_tables_of_a_page_are_replaced(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- counts: costs -->\nold\n<!-- end of counts -->\nafter\n")
    with pytest.raises(InputError, match="has no counts yet"):
        write_page(page, tmp_path, Machine())
    save_counts(tmp_path, "E1", [counted("E1 load", 0.1, 1e7, 3)])
    for _ in range(2):
        write_page(page, tmp_path, Machine())
    text = page.read_text()
    assert text.startswith("before\n<!-- counts: costs -->\n") and text.endswith("<!-- end of counts -->\nafter\n")
    assert "old" not in text and text.count("| E1 load |") == 1
    page.write_text("<!-- counts: tpch -->\n<!-- end of counts -->")
    with pytest.raises(InputError, match="nothing was counted"):
        write_page(page, tmp_path, Machine())
