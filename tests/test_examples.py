"""Every example runs, and prints what its page describes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"
SMALL = ["--seconds", "1.5", "--people", "4000", "--changes", "50"]
TRIED_BELOW = {"demo.py", "demo_screen.py", "reach.py", "pipeline.py", "pipeline_screen.py", "standing.py"}


def run(name: str, *arguments: str, **environment: str) -> str:
    """Return the output of an example."""
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name), *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", sorted(path.name for path in EXAMPLES.glob("*.py") if path.name not in TRIED_BELOW))
def test_an_example_runs(name):
    assert run(name)


def test_the_demo_installs_three_queries_and_finds_them_right():
    said = run("demo.py", *SMALL, "--plain")
    assert said.count("installed '") == 3 and "most followed ✓" in said and "distances ✓" in said
    assert "all 3 answers equal the same questions answered from scratch" in said
    assert "dropped the queries" in said and "\x1b[" not in said


def test_the_demo_draws_a_screen():
    said = run("demo.py", *SMALL, "--still", COLUMNS="100")
    assert "never stands still" in said and "shared by" in said and "\x1b[" in said


def test_reach_follows_removals():
    said = run("reach.py").splitlines()
    assert said[0] == "connected: [(4, 1)]" and said[1].endswith(": []") and "at epoch 2: (1, 4) +1" in said[-2]
