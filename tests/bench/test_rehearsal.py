"""Every experiment runs at a tiny scale, checks its answers and leaves figures for its bars."""

import os

import pytest

from kpg.bench.catalogue import experiment, experiments
from kpg.bench.experiments.x12_strong_scaling import numbers_of_workers
from kpg.bench.experiments.x14_throughput import formed
from kpg.bench.performing import begun
from kpg.bench.run import Run


@pytest.mark.jit
@pytest.mark.parametrize("declared", experiments(), ids=lambda each: each.id)
def test_an_experiment_runs_small(declared):
    """X7, X8, X9, X10, X11, X12, X13, X14, X15, X16, X17, X18, X19, X20, X21, X22, X23, X24, X25,
    X26, X27, X28, X29, X30."""
    result = begun(declared, 0.0005, 1)
    declared.run(Run(result, bars=declared.bars, peers=False))
    assert result.rows
    assert {bar.figure for bar in declared.bars} <= result.figures.keys()


def test_as_many_workers_are_tried_as_were_asked_for():
    """X12, X13, X14, X15, X22."""
    result = begun(experiment("X12"), 0.01, 1)
    assert numbers_of_workers(Run(result, workers=6)) == [1, 2, 4, 6]
    assert numbers_of_workers(Run(result, workers=8)) == [1, 2, 4, 8]
    assert numbers_of_workers(Run(result)) == numbers_of_workers(Run(result, workers=os.cpu_count()))
    assert numbers_of_workers(Run(begun(experiment("X12"), 0.0005, 1), workers=8)) == [1]


def test_formed_batches_say_when_they_were_and_that_they_are_whole():
    """X14."""
    one, other = (formed(rank, 2, seed=1, keys=50, batch=100, batches=3) for rank in (0, 1))
    assert one["begin"][0] < one["end"][0] <= other["begin"][0] < other["end"][0]
    assert one["missing"][0] == other["missing"][0] == 0
