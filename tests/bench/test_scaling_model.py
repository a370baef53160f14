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
from kpg.bench.workers.scaling_model import Costs, Machine, TaskCounts, fit, read_counts, table, without_most
from kpg.cli import main

COSTS = Costs(row=8e-9, round=3e-4, worker=4e-3)


def counted(name, cpu, exchanged, rounds, workers=(1, 2, 4, 8)):
    """Return the counts of a task that costs exactly what the model says."""
    task = TaskCounts(name)
    for n in workers:
        row = {"cpu_s": cpu, "rows_sent": exchanged * (1 - 1 / n), "messages": rounds * n * (n - 1)}
        row |= {"bytes_per_row": 8.0, "bytes_sent": 8 * row["rows_sent"], "rounds": rounds if n > 1 else 0}
        row["cpu_s"] += COSTS.row * row["rows_sent"] + COSTS.round * n * row["rounds"] + COSTS.worker * (n - 1)
        task.counted[n] = row
    return task


def test_the_fit_finds_the_costs_of_exact_counts():
    tasks = [counted("load", 1.0, 1e7, 2), counted("loop", 0.5, 1e6, 40), counted("small", 0.01, 100, 5)]
    costs = fit(tasks)
    assert (costs.row, costs.round, costs.worker) == pytest.approx((COSTS.row, COSTS.round, COSTS.worker), rel=1e-6)
    for task in tasks:
        assert task.cpu_seconds(8, costs) == pytest.approx(task.counted[8]["cpu_s"])
    for task, fewer in zip(tasks, without_most(tasks), strict=True):
        assert fewer.largest == 4 and fewer.cpu_seconds(8, fit(without_most(tasks))) == pytest.approx(
            task.counted[8]["cpu_s"]
        )


def test_workers_gain_less_where_rounds_bound_a_task():
    load, loop = counted("load", 1.0, 1e7, 2), counted("loop", 0.5, 1e6, 200)
    gains = [load.seconds(1, COSTS, Machine()) / load.seconds(n, COSTS, Machine()) for n in (2, 8, 64)]
    assert 1.5 < gains[0] < 2 and gains == sorted(gains)
    bounded = [loop.seconds(1, COSTS, Machine(), g) / loop.seconds(64, COSTS, Machine(), g) for g in (1, 100)]
    assert bounded[0] < 8 < bounded[1]  # a larger graph has as many rounds
    faster = Machine(core_speed=2.0, bytes_per_second=1e12, latency_seconds=0.0)
    assert load.seconds(8, COSTS, faster) == pytest.approx(load.cpu_seconds(8, COSTS) / 16, rel=1e-2)


def test_work_that_one_worker_does_for_all_bounds_a_task():
    task = counted("gathered", 1.0, 1e6, 4)
    for n, row in task.counted.items():
        row["busiest_cpu_s"] = row["cpu_s"] * (0.75 + 0.25 / n)
    assert task.alone == pytest.approx(0.75) and task.busiest_share(1) == 1
    assert task.seconds(1, COSTS, Machine()) / task.seconds(64, COSTS, Machine()) < 1 / 0.75
    shares = task.shares(8, COSTS, Machine())
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
    assert min(costs.row, costs.round, costs.worker) >= 0


def test_the_command_reads_the_counts_of_a_directory(tmp_path, capsys):
    assert "has no counts yet" in table(tmp_path)
    result = new_result(experiment("E1"), 1, 0)
    result.id = "E1-counts"
    for n, row in counted("E1 load", 0.1, 1e7, 3).counted.items():
        result.rows += [{"case": f"E1 load, {n} worker{'s' * (n > 1)}", **row}]
        result.rows += [{"case": f"E1 load, {n} workers: arrange", "cpu_s": 9.0}]
    result.save(tmp_path)
    assert [task.largest for task in read_counts(tmp_path)] == [8]
    assert main(["bench", "scaling", "--out", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "| E1 load | 8 |" in said and "times faster, 10 × the rows" in said
