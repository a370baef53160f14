"""The benchmarks on workers in Spark run at a tiny scale and check their answers."""

from contextlib import contextmanager
from importlib import import_module

import pytest

from kpg.bench.registry import experiment
from kpg.bench.run import Run
from kpg.bench.runner import new_result

CASES = {"S3": "10M rows", "S4": "one row", "S5": "10k rows", "S6": "tenth query"}


@pytest.mark.jit
@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_an_experiment_in_spark_runs_small(name, spark, monkeypatch):
    @contextmanager
    def session():
        yield spark

    declared = experiment(name)
    monkeypatch.setattr(import_module(declared.run.__module__), "session", session)
    result = new_result(declared, declared.rehearsal_scale, 1)
    declared.run(Run(result, kind="rehearsal"))
    assert [row["case"] for row in result.rows] == [CASES[name]]
