"""Every experiment runs at a tiny scale, checks its answers, and reports its rows and the figures of its limits."""

import os
from functools import cache

import pytest

from kpg.bench.papers.x14_throughput import formed
from kpg.bench.registry import experiment, experiments
from kpg.bench.rolling_keys import worker_counts
from kpg.bench.run import Run
from kpg.bench.runner import new_result

SPARK = {"S3", "S4", "S5", "S6"}  # tests/bench/test_spark_rehearsal.py
PAPERS = [experiment for experiment in experiments() if experiment.family == "X"]
OURS = [experiment for experiment in experiments() if experiment.family != "X" and experiment.id not in SPARK]


@cache
def rehearse(declared):
    result = new_result(declared, declared.rehearsal_scale, 1)
    declared.run(Run(result, kind="rehearsal", limits=declared.limits))
    return result


@pytest.mark.jit
@pytest.mark.parametrize("declared", PAPERS, ids=lambda experiment: experiment.id)
def test_an_experiment_runs_small(declared):
    """X1, X2, X3, X4, X5, X6, X7, X8, X9, X10, X11, X12, X13, X14, X15, X16, X17, X18, X19, X20,
    X21, X22, X23, X24, X25, X26, X27, X28, X29, X30."""
    result = rehearse(declared)
    assert result.rows
    assert {limit.figure for limit in declared.limits} <= result.figures.keys()


@pytest.mark.jit
@pytest.mark.parametrize("declared", OURS, ids=lambda experiment: experiment.id)
def test_an_experiment_of_our_own_runs_small(declared):
    result = rehearse(declared)
    assert result.rows and all("bar" in row and "ratio" in row for row in result.rows)
    assert len(result.rows) == len({row["case"] for row in result.rows})


def cases(name):
    return [row["case"] for row in rehearse(experiment(name)).rows]


@pytest.mark.jit
def test_dense_keys_are_measured_beside_keys_of_62_bits():
    assert cases("E1") == ["load", "load, 62-bit keys"]
    assert [case for case in cases("E2") if "62-bit" in case] == [
        "rounds, 1M 62-bit keys", "rounds, 10M distinct 62-bit keys",
    ]  # fmt: skip
    assert {"load, 62-bit keys", "rounds, 62-bit keys"} <= set(cases("E8"))


@pytest.mark.jit
def test_each_recursion_says_whether_it_ran_in_the_recursion_operator_or_as_a_loop():
    """Q1's programs and the variants of Q2 run in the operator."""
    first, second = (rehearse(experiment(name)).rows for name in ("Q1", "Q2"))
    assert len(first) == 10 and {row["evaluation"] for row in first} == {"recursion operator"}
    by_case = {row["case"]: row["evaluation"] for row in second}
    assert len(by_case) == 30 and {case.split(", ")[1] for case in by_case} == {"label", "two atoms", "negation"}
    assert set(by_case.values()) == {"recursion operator"}


@pytest.mark.jit
def test_the_three_ways_to_share_give_each_client_its_own_rows():
    """A12.1: thesis figure 9, three epochs of it."""
    rows = rehearse(experiment("Q5")).rows
    assert [(row["case"], row["clients"], row["finished"]) for row in rows] == [
        ("multi-tenant", 30, True), ("multi-tenant, two workers", 30, True),
        ("shared trunk", 30, True), ("shared nothing", 30, True),
    ]  # fmt: skip


@pytest.mark.jit
def test_the_cost_of_a_log_is_measured_without_and_with_three_logs():
    assert [case.split(",")[0] for case in cases("O1")] == [
        "no log", "a log that listens", "a log of sizes", "a log of everything",
    ]  # fmt: skip


@pytest.mark.jit
def test_demand_and_interactive_queries_are_measured_on_all_graphs_and_batches():
    assert len(cases("Q6")) == 9 and len(cases("Q7")) == 18


def test_as_many_workers_are_tried_as_were_asked_for():
    """X12, X13, X14, X15, X22."""
    result = new_result(experiment("X12"), 0.01, 1)
    assert worker_counts(Run(result, workers=6)) == [1, 2, 4, 6]
    assert worker_counts(Run(result, workers=8)) == [1, 2, 4, 8]
    assert worker_counts(Run(result)) == worker_counts(Run(result, workers=os.cpu_count()))
    assert worker_counts(Run(new_result(experiment("X12"), 0.0005, 1), workers=8)) == [1]


def test_formed_batches_say_when_they_were_and_that_they_are_whole():
    """X14."""
    one, other = (formed(rank, 2, seed=1, keys=50, batch=100, batches=3) for rank in (0, 1))
    assert one["begin"][0] < one["end"][0] <= other["begin"][0] < other["end"][0]
    assert one["missing"][0] == other["missing"][0] == 0
