"""Spark from a virtual environment that is not activated: tasks run the driver's Python, not the first one of PATH."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kpg.spark.spark_session import use_this_python

ROOT = Path(__file__).parents[2]
LOAD = """
from pyspark.sql import SparkSession
import kpg
from kpg.spark.small_session import SETTINGS

spark = SparkSession.builder.master("local[3]").config(map=SETTINGS).getOrCreate()
with kpg.open(spark=spark, workers=1) as db:
    db.load("numbers", spark.createDataFrame([(1,), (2,), (3,)], "n long"))
    total = db.inputs["numbers"].group_by().sum("n").output("total")
    db.advance()
    print(total.rows())
spark.stop()
"""


@pytest.mark.slow
def test_a_frame_is_loaded_without_an_activated_environment(tmp_path):
    other = tmp_path / "python3"
    other.write_text("#!/bin/sh\necho 'this Python lacks kpg' >&2\nexit 1\n")
    other.chmod(0o755)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYSPARK", "VIRTUAL_ENV"))}
    path = os.pathsep.join([str(tmp_path), "/usr/bin", "/bin"])
    environment = {**kept, "PATH": path, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", LOAD], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "[(6,)]", done.stderr[-3000:]


class Context:
    """What `use_this_python` reads and sets of a SparkContext."""

    def __init__(self, master, python="python3"):
        self.master, self.pythonExec, self.environment = master, python, {}


@pytest.mark.parametrize(
    ("master", "python", "chosen", "expected"),
    [
        ("local[2]", "python3", None, sys.executable),
        ("local-cluster[2,1,1024]", "python3", None, sys.executable),
        ("local[2]", "/opt/python", "/opt/python", "/opt/python"),  # PYSPARK_PYTHON is the user's choice
        ("yarn", "python3", None, "python3"),  # executors elsewhere have other paths
    ],
)
def test_the_python_of_tasks_is_that_of_the_driver_unless_chosen_or_elsewhere(
    master, python, chosen, expected, monkeypatch
):
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    if chosen is not None:
        monkeypatch.setenv("PYSPARK_PYTHON", chosen)
    context = Context(master, python)
    use_this_python(context)
    use_this_python(context)
    assert context.pythonExec == expected
    assert context.environment.get("PYTHONPATH") == (str(ROOT) if master.startswith("local") else None)
