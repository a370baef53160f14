"""Pathway, in an environment of its own (`.venv-pathway`), asked the same questions in a process of its own.

The environment is made on first use. If it cannot be made, or a program fails, the reason stands in the line and the
experiment goes on. Pathway may be given fewer rows than we do (`--pathway-rows`): it is then compared by seconds a
row, which favours it, since fewer rows stay in cache. Of CPU and wall time the lesser counts for it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from typing import Any

from benchmarks.lines import Reference
from benchmarks.measure import ROOT

HOME = ROOT / ".venv-pathway"
PYTHON = HOME / "bin" / "python"
READY = HOME / ".ready"
TIMEOUT_SECONDS = 3600


@dataclass(frozen=True, slots=True)
class Answered:
    """What Pathway took for each round, and what it answered; or why it did not."""

    version: str
    seconds: list[float]
    rows: int
    digest: int
    problem: str | None = None

    def load(self, rows: int, note: str) -> Reference:
        """The first round, as a reference."""
        return self._reference(self.seconds[0] if self.seconds else None, rows, note)

    def rounds(self, changes: int, note: str) -> Reference:
        """The median of the other rounds, as a reference."""
        later = sorted(self.seconds[1:])
        return self._reference(later[len(later) // 2] if later else None, changes, note)

    def _reference(self, seconds: float | None, rows: int, note: str) -> Reference:
        return Reference(f"pathway {self.version}", seconds, rows, self.problem or note)


def ask(program: str, **arguments: int) -> Answered:
    """Run one of the programs of pathway_programs.py."""
    problem = environment()
    if problem is not None:
        return Answered("", [], 0, 0, problem)
    request = json.dumps({"program": program, **arguments})
    command = [str(PYTHON), "-m", "benchmarks.pathway_programs", request]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=TIMEOUT_SECONDS)
    except subprocess.TimeoutExpired:
        return Answered("", [], 0, 0, f"no answer within {TIMEOUT_SECONDS} s")
    if done.returncode:
        return Answered("", [], 0, 0, f"failed: {last_line(done.stderr)[:300]}")
    found: dict[str, Any] = json.loads(last_line(done.stdout))
    seconds = [min(pair) for pair in zip(found["cpu"], found["wall"], strict=True)]
    return Answered(found["version"], seconds, found["rows"], found["digest"])


@cache
def environment() -> str | None:
    """Have Pathway installed; if that is impossible, why."""
    if READY.exists():
        return None
    print(f"installing pathway into {HOME.name}, once", file=sys.stderr, flush=True)
    for command in (
        [sys.executable, "-m", "venv", str(HOME)],
        [str(PYTHON), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "pathway", "numpy"],
        [str(PYTHON), "-c", "import pathway"],
    ):
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            return f"pathway cannot be installed: {last_line(done.stderr)[:300]}"
    (HOME / ".gitignore").write_text("*\n")
    READY.touch()
    return None


def last_line(text: str) -> str:
    """The last line that says something."""
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "nothing was said"
