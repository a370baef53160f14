"""The machine: its commit, and whether an experiment fits into its memory."""

import subprocess
from dataclasses import replace

import pytest

from kpg.bench import machine
from kpg.bench.measure import peak_resident_bytes
from kpg.bench.runner import run_experiment
from kpg.errors import OverBudget


def test_an_experiment_that_does_not_fit_is_refused_with_the_memory_it_needs(declared, options):
    large = declared(lambda run: None, memory=lambda scale: int(scale * 8 * machine.GIB))
    with pytest.raises(OverBudget, match="needs about 8.0 GiB"):
        machine.check_memory(large, 1.0, free=2 * machine.GIB)
    machine.check_memory(large, 0.2, free=2 * machine.GIB)
    assert 0.2 < machine.largest_scale(large, 1.0, 2 * machine.GIB) < 0.25
    with pytest.raises(OverBudget):
        run_experiment(large, replace(options, scale=1e6))


def test_memory_is_used_once_in_another_process():
    size, before = machine.LEAST_TOUCHED_BYTES, peak_resident_bytes()
    assert machine.touch_memory(size - 1) == 0
    assert machine.touch_memory(size) == size
    assert peak_resident_bytes() - before < size // 2


def test_the_commit_is_that_of_the_source_with_a_plus_if_files_differ(tmp_path):
    git = ["git", "-C", str(tmp_path), "-c", "user.name=n", "-c", "user.email=n@example.org"]
    assert machine.commit(tmp_path) == ""
    (tmp_path / "file").write_text("1")
    for words in (["init", "-q"], ["add", "file"], ["commit", "-qm", "first"]):
        subprocess.run([*git, *words], check=True)
    machine.commit.cache_clear()
    commit = machine.commit(tmp_path)
    assert len(commit) == 12
    (tmp_path / "file").write_text("2")
    machine.commit.cache_clear()
    assert machine.commit(tmp_path) == commit + "+"
