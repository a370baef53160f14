"""Calls in every order, with workers killed between and within them: no call waits forever, and answers are exact.

KPG_FAULT_SCHEDULES=200 tries that many schedules of each kind; by default there are few, because each starts processes.
"""

import os
from pathlib import Path

import pytest

from tests.cluster.fault_schedules import Schedule

SCHEDULES = int(os.environ.get("KPG_FAULT_SCHEDULES", "1"))


@pytest.mark.parametrize("seed", range(SCHEDULES))
@pytest.mark.parametrize("workers", [2, 3])
def test_no_call_waits_forever_and_nothing_acknowledged_is_lost(tmp_path: Path, workers: int, seed: int) -> None:
    Schedule(tmp_path / "db", workers, seed).play(steps=16)
