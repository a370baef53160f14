"""The registry has every experiment once, each with a question, a size and an estimate of its memory."""

import subprocess
import sys
from importlib import import_module
from pathlib import Path

from kpg import bench
from kpg.bench.registry import MODULES, experiments, question


def test_every_module_of_an_experiment_is_registered_under_its_id():
    directory = Path(bench.__file__).parent
    for family, modules in MODULES.items():
        files = {path.stem for path in (directory / family).glob("[eoqsx][0-9][0-9]_*.py")}
        assert files == set(modules)
        for module in modules:
            declared = import_module(f"kpg.bench.{family}.{module}").EXPERIMENT
            assert module.startswith(f"{declared.id[0].lower()}{int(declared.id[1:]):02d}_")


def test_every_experiment_states_its_question_and_its_size():
    for experiment in experiments():
        assert question(experiment).endswith("?") and experiment.size and experiment.title, experiment.id


def test_every_estimate_of_memory_grows_with_the_scale():
    for experiment in experiments():
        assert 0 < experiment.memory(0.001) <= experiment.memory(1) < experiment.memory(1000), experiment.id


def test_no_peer_is_imported_before_it_is_asked():
    code = """
import sys
from kpg.bench.registry import experiments
experiments()
print([name for name in ("duckdb", "pyspark", "clingo", "pycozo", "psycopg", "ladybug", "networkx", "pathway")
       if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
