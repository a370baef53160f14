"""An experiment and options for tests of the runner, without loading kernels and sorting."""

import pytest

from kpg.bench import runner
from kpg.bench.experiment import Experiment
from kpg.bench.runner import Options


@pytest.fixture
def declared():
    """Return a function that declares an experiment X99."""

    def declare(run, limits=(), memory=lambda scale: 0, reads=None):
        return Experiment("X99", "a trial", "a size", memory, run, "no paper", "a claim", (), limits, reads=reads)

    return declare


@pytest.fixture
def options(tmp_path, monkeypatch):
    """Return options for a quick run with results in a temporary directory."""
    monkeypatch.setattr(runner, "load_kernels", lambda: None)
    monkeypatch.setattr(runner, "sort_seconds", lambda: 0.17)
    return Options(scale=0.1, out=tmp_path, rehearse=False)
