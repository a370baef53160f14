"""The driver is killed in the middle of transactions; another one opens the directory and goes on."""

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import psutil
import pytest

import kpg
from kpg.storage.record import Origin
from tests.spark import driver

HERE = Path(__file__).parent
ACKNOWLEDGED = 40  # transactions before the kill
SECONDS = 60.0  # that what the driver started has to end in


def kill_amid_transactions(directory: Path) -> tuple[list[str], list[psutil.Process]]:
    """Run a driver until it is killed; what it said, and the processes it had started."""
    log = directory.with_suffix(".log")
    with open(log, "w") as file:
        process = subprocess.Popen(
            [sys.executable, str(HERE / "driver.py"), str(directory)], stdout=subprocess.PIPE, stderr=file, text=True
        )
    assert process.stdout is not None
    said: list[str] = []
    for line in process.stdout:
        said.append(line)
        if line == f"ack {ACKNOWLEDGED}\n":
            break
    else:
        raise AssertionError(log.read_text()[-3000:])
    started = psutil.Process(process.pid).children(recursive=True)
    os.kill(process.pid, signal.SIGKILL)
    said += process.stdout
    process.wait()
    return said, started


@pytest.mark.slow
def test_a_driver_that_is_killed_leaves_every_transaction_once_and_no_process(spark, tmp_path):
    """CHECKLIST A1.16: opened again at once, while what the first one had started may still be ending."""
    said, started = kill_amid_transactions(tmp_path / "db")
    acknowledged = sum(line.startswith("ack") for line in said)
    reads = [line.split(" ", 2) for line in said if line.startswith("read") and line.endswith("\n")]
    heard: Counter[driver.Edge] = Counter()
    for _, _, changes in reads:
        hear(heard, json.loads(changes))
    assert len(started) >= 4  # the JVM, the daemon of Python, two workers
    with kpg.open(tmp_path / "db", spark=spark, workers=2) as db:
        edges, reach = driver.install(db)
        count = db.epoch
        assert count in (acknowledged, acknowledged + 1), "what was acknowledged, and at most what was under way"
        assert db.was_applied(Origin("driver", count - 1)) and not db.was_applied(Origin("driver", count))
        assert Counter(edges.output("all").rows()) == driver.after(count)
        assert set(reach.rows()) == driver.reached(driver.after(count))
        for n in (count - 1, count, count + 1):  # the first of them is a repetition
            driver.transact(db, edges, n)
        assert Counter(db.outputs["all"].rows()) == driver.after(count + 2)
        hear(heard, driver.read_on(driver.reader_of(db), int(reads[-1][1]))[1])
        assert +heard == Counter(driver.reached(driver.after(count + 2))), "the reader went on where it had been"
    _, left = psutil.wait_procs(started, timeout=SECONDS)
    assert not left


def hear(heard: Counter[driver.Edge], changes: list[tuple[driver.Edge, int]]) -> None:
    """Add up the changes that a reader receives."""
    for edge, diff in changes:
        heard[tuple(edge)] += diff
