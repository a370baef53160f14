"""Shared test settings: how hard Hypothesis looks, and kernels that run as machine code."""

import os
import signal
from collections.abc import Iterator

# Before kpg is imported, and for all processes that tests start: tests of kernels mean their machine code.
os.environ.setdefault("KPG_KERNELS", "compiled")

# A background job of a shell ignores Ctrl-C, and then tests of interrupts would compute for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

import pytest  # noqa: E402
from hypothesis import HealthCheck, settings  # noqa: E402

from kpg.cluster.rank_starter import RankStarter  # noqa: E402
from kpg.kernels import warm  # noqa: E402
from kpg.kernels.jit import KERNELS  # noqa: E402

# Advice to who writes a test, given by the clock or by lot: no ground to refuse a change.
CHANCE = (HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large)

# The first call of a kernel compiles it, so a per-example deadline would fail at random.
settings.register_profile("kpg", deadline=None, print_blob=True)
# In CI a change is judged by the same examples as its author saw; other runs search at random.
settings.register_profile(
    "ci", deadline=None, print_blob=True, derandomize=True, max_examples=50, suppress_health_check=CHANCE
)
settings.register_profile("nojit", settings.get_profile("ci"), max_examples=25)  # a hundred times slower per row
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "kpg"))


@pytest.fixture(scope="session", autouse=True)
def one_starter_of_ranks() -> Iterator[None]:
    """All tests of several workers have their ranks forked from one process, which has all code loaded."""
    starter = RankStarter.share()
    yield
    starter.release()


@pytest.fixture(scope="session", autouse=True)
def one_signature_per_kernel() -> Iterator[None]:
    """At the end, no test may have made Numba compile a second variant."""
    yield
    twice = {
        f"{kernel.__module__}.{kernel.__name__}": signatures
        for kernel in KERNELS
        if kernel.__module__.startswith(warm.PACKAGE) and len(signatures := warm.signatures_of(kernel)) > 1
    }
    assert not twice, f"compiled more than once, so some call passes other types (a slice? a read-only array?): {twice}"
