"""Every experiment runs at a tiny scale, checks its answers and leaves figures for its bars."""

import pytest

from kpg.bench.catalogue import experiments
from kpg.bench.command import begun
from kpg.bench.run import Run


@pytest.mark.jit
@pytest.mark.parametrize("experiment", experiments(), ids=lambda each: each.id)
def test_an_experiment_runs_small(experiment):
    """X7, X8, X9, X10, X11, X12, X13, X14, X15, X16, X17, X18, X19, X20, X21, X22, X23, X24, X25,
    X26, X27, X28, X29, X30."""
    result = begun(experiment, 0.0005, 1)
    experiment.run(Run(result, bars=experiment.bars, peers=False))
    assert result.rows
    assert {bar.figure for bar in experiment.bars} <= result.figures.keys()
