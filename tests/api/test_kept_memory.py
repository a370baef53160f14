"""Freed memory is used again, does not count against a limit, and can be returned."""

import os
import subprocess
import sys

import pytest

from kpg.api.kept_memory import is_configured

BLOCKS = """
import resource
import numpy as np
import kpg
from kpg.api.kept_memory import keep_freed_memory, return_freed_memory
from kpg.api.memory import Memory, resident_bytes

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    block = np.empty(1 << 22, np.int64)  # 32 MiB
    for start in range(0, len(block), 512):
        block[start] = 1
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
"""


def run(code: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", BLOCKS + code], env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.fixture
def environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "KPG_KEEP", "GLIBC_"))}
    if sys.platform != "linux" or run("print(keep_freed_memory())", **kept) != "True":
        pytest.skip("the C library is not glibc")
    return kept


def test_a_block_is_used_again_after_a_db_was_opened(environment: dict[str, str]) -> None:
    found = run("kpg.open().close(); first = faults(); print(first, faults(), faults())", **environment)
    first, *later = map(int, found.split())
    assert first > 0 and later == [0, 0]


def test_the_environment_has_the_last_word(environment: dict[str, str]) -> None:
    code = "print(keep_freed_memory())"
    assert run(code, **environment, KPG_KEEP_MEMORY="0") == "False"
    assert run(code, **environment, MALLOC_TRIM_THRESHOLD_="131072") == "False"
    assert run(code, **environment, GLIBC_TUNABLES="glibc.malloc.trim_threshold=131072") == "False"


def test_a_limit_does_not_count_freed_memory(environment: dict[str, str]) -> None:
    code = """
keep_freed_memory()
limit = resident_bytes() + (16 << 20)
small = []
for _ in range(8):
    faults()
    small.append(bytes(1000))
blocks = [np.ones(1 << 20, np.int64) for _ in range(8)]
del blocks
kept = resident_bytes() > limit
Memory(limit).check()
print(kept, resident_bytes() <= limit)
"""
    assert run(code, **environment) == "True True"


@pytest.mark.parametrize("name", ["KPG_KEEP_MEMORY", "MALLOC_ARENA_MAX"])
def test_settings_are_read_from_the_environment(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "0")
    assert is_configured()
