"""Processes killed by SIGKILL: the directory holds every acknowledged transaction once, and none twice."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import kpg
from kpg.storage.kernel_write import open_kernel_write
from tests.storage import killed

ROOT = Path(__file__).parent.parent.parent
CALLS = {
    "frame": (1, 2, 3, 9, 30),
    "pwrite": (1, 2, 3),
    "fsync": (1, 2, 4, 7, 11),
    "fdatasync": (1, 2, 5, 20),
    "rename": (1, 2, 3),
    "unlink": (1, 2),
}
POINTS = [
    (name, call, moment)
    for name, calls in CALLS.items()
    if name != "frame" or open_kernel_write() is not None
    for call in calls
    for moment in (("before", "amid", "after") if name in ("frame", "pwrite") else ("before", "after"))
]
BUSY_SEEDS = [seed for seed in range(40) if random.Random(seed).choice(killed.CHECKPOINT_BYTES) == 600]


class Zygote:
    """The process that forks the children."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.storage.killed"],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.line() == "ready"

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def run(
        self, directory: Path, seed: int, point: tuple[str, int, str] | None, kill_after: int | None
    ) -> tuple[int, int]:
        """Run a child until it is dead; return the transactions it found or acknowledged, and its exit status."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"directory": str(directory), "seed": seed, "point": point}) + "\n")
        self.process.stdin.flush()
        known, child = -1, 0
        while True:
            word, _, number = self.line().partition(" ")
            match word:
                case "child":
                    child = int(number)
                case "begin":
                    known = int(number)
                case "ack":
                    assert int(number) == known
                    known += 1
                    if kill_after is not None:
                        kill_after -= 1
                        if kill_after == 0:
                            os.kill(child, signal.SIGKILL)
                case "end":
                    return known, int(number)
                case _:
                    raise AssertionError(f"the child printed {word} {number}")

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(60)


@pytest.fixture(scope="module")
def zygote():
    process = Zygote()
    yield process
    process.close()


def read_directory(directory: Path) -> tuple[int, Counter[tuple[int, str]]]:
    """Return the number of transactions in a directory, and its rows."""
    with kpg.open(directory) as db:
        rows = db.input("rows", n=int, text=str).output("all")
        last = db.applied.latest("writer")
        if db.sealed is None:
            return 0, Counter()
        return 0 if last is None else last + 1, Counter(rows.rows())


def check(directory: Path, known: int) -> None:
    count, rows = read_directory(directory)
    assert count in (known, known + 1) or known == -1, "every acknowledged transaction, and at most one more"
    assert rows == killed.after(count), "each transaction once"


def test_killed_at_every_point_of_writing(zygote, tmp_path):
    dead = 0
    for number, point in enumerate(POINTS):
        directory = tmp_path / str(number % 4)  # so that a directory goes through several crashes
        known, status = zygote.run(directory, number, point, None)
        dead += status == signal.SIGKILL
        check(directory, known)
    assert dead > len(POINTS) // 2, "most points were reached"


def test_killed_while_transactions_go_on_beside_a_checkpoint(zygote, tmp_path):
    dead = 0
    points = [
        (name, count, moment) for name in ("batch-", "manifest-") for count in (1, 3) for moment in ("before", "after")
    ]
    for number, point in enumerate(points):
        directory = tmp_path / str(number % 3)
        known, status = zygote.run(directory, BUSY_SEEDS[number % len(BUSY_SEEDS)], point, None)
        dead += status == signal.SIGKILL
        check(directory, known)
    assert dead > len(points) // 2, "most points were reached"


def test_killed_from_outside_at_random_moments(zygote, tmp_path):
    chance = random.Random(5)
    for number in range(12):
        known, status = zygote.run(tmp_path / "db", 100 + number, None, chance.randint(1, killed.STEPS - 5))
        assert status == signal.SIGKILL
        check(tmp_path / "db", known)
