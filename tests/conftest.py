"""Shared test settings: how hard Hypothesis looks, and machine code that is never older than its source."""

import os

from hypothesis import settings

# The first call of a kernel compiles it, so a per-example deadline would fail at random.
settings.register_profile("kpg", deadline=None, print_blob=True)
settings.register_profile("ci", deadline=None, print_blob=True, derandomize=False, max_examples=50)
settings.register_profile("nojit", deadline=None, print_blob=True, max_examples=25)  # a hundred times slower per row
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "kpg"))
