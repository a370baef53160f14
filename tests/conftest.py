"""Shared test settings: how hard Hypothesis looks, and machine code that is never older than its source."""

import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from kpg.kernels import warm

# Advice to who writes a test, given by the clock or by lot: no ground to refuse a change.
CHANCE = (HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large)

# The first call of a kernel compiles it, so a per-example deadline would fail at random.
settings.register_profile("kpg", deadline=None, print_blob=True)
settings.register_profile(
    "ci", deadline=None, print_blob=True, derandomize=False, max_examples=50, suppress_health_check=CHANCE
)
settings.register_profile("nojit", settings.get_profile("ci"), max_examples=25)  # a hundred times slower per row
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "kpg"))


@pytest.fixture(scope="session", autouse=True)
def one_signature_per_kernel() -> Iterator[None]:
    """Start without stale machine code; at the end, no test may have made Numba compile a second variant."""
    try:
        warm.discard_stale()
    except ImportError:  # some kernel module is broken: its own tests say so, all others still run
        yield
        return
    yield
    twice = {
        name: warm.signatures_of(kernel)
        for name, kernel in warm.jitted_functions().items()
        if len(warm.signatures_of(kernel)) > 1
    }
    assert not twice, f"compiled more than once, so some call passes other types (a slice? a read-only array?): {twice}"
