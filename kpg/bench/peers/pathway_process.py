"""Pathway, in an environment and a process of its own.

The environment (`.venv-pathway`) is created on first use. If that fails, or a program fails, the row gives the reason
and the experiment continues. The process receives the rows as NumPy arrays in a file, which is not on its clock.

Pathway may receive fewer rows than kpg (`--pathway-rows`). It is then compared by seconds a row, which favours it,
because fewer rows stay in the cache. Of its CPU time and its wall time the lesser counts.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from kpg.bench.data.graphs import Ints
from kpg.bench.machine import SOURCE
from kpg.bench.run import Reference

HOME = SOURCE / ".venv-pathway"
PYTHON = HOME / "bin" / "python"
READY = HOME / ".ready"
PROGRAMS = Path(__file__).with_name("pathway_programs.py")
TIMEOUT_SECONDS = 3600
ERROR_CHARACTERS = 300  # of Pathway's own message in a row


@dataclass(frozen=True, slots=True)
class PathwayAnswer:
    """The seconds of each round, and the answer; or why there is none."""

    version: str
    seconds: list[float]
    rows: int
    digest: int
    problem: str | None = None

    def load(self, rows: int, note: str) -> Reference:
        """Return the first round as a reference."""
        return self._reference(self.seconds[0] if self.seconds else None, rows, note)

    def rounds(self, changes: int, note: str) -> Reference:
        """Return the median of the other rounds as a reference."""
        later = sorted(self.seconds[1:])
        return self._reference(later[len(later) // 2] if later else None, changes, note)

    def _reference(self, seconds: float | None, rows: int, note: str) -> Reference:
        return Reference(f"pathway {self.version}".strip(), seconds, rows, self.problem or note)


def ask(program: str, **arrays: Ints) -> PathwayAnswer:
    """Run one of the programs of pathway_programs.py on some arrays."""
    problem = environment()
    if problem is not None:
        return failure(problem)
    with tempfile.TemporaryDirectory() as directory:
        np.savez(Path(directory) / "rows.npz", **arrays)  # type: ignore[arg-type]
        # -P: the directory of the script, with the names of other peers in it, stays out of the import path.
        command = [str(PYTHON), "-P", str(PROGRAMS), program, str(Path(directory) / "rows.npz")]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            return failure(f"no answer within {TIMEOUT_SECONDS} s")
    if done.returncode:
        return failure(f"failed: {last_line(done.stderr)}")
    answer: dict[str, Any] = json.loads(last_line(done.stdout))
    seconds = [min(pair) for pair in zip(answer["cpu"], answer["wall"], strict=True)]
    return PathwayAnswer(answer["version"], seconds, answer["rows"], answer["digest"])


def failure(problem: str) -> PathwayAnswer:
    """Return an answer that only has a problem."""
    return PathwayAnswer("", [], 0, 0, problem[:ERROR_CHARACTERS])


@cache
def environment() -> str | None:
    """Create Pathway's environment if there is none; return why that is impossible, or None."""
    if READY.exists():
        return None
    for command in (
        [sys.executable, "-m", "venv", str(HOME)],
        [str(PYTHON), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "pathway", "numpy", "pandas"],
        [str(PYTHON), "-c", "import pathway, pandas"],
    ):
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            return f"pathway cannot be installed: {last_line(done.stderr)}"
    (HOME / ".gitignore").write_text("*\n")
    READY.touch()
    return None


def last_line(text: str) -> str:
    """Return the last line that is not blank."""
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "no output"
