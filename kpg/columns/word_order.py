"""Sort words of 64 bits in the way that is fastest for their number and width on this processor.

    sort_words(words, low, high, scratch)     by bits low … high - 1, in place; no word is negative

Words that agree in these bits keep their order if all words are different, since they are then sorted whole or stably.
NumPy's sort is vectorised for some processors and five times slower on others, so it is measured once in a process.
"""

from __future__ import annotations

from functools import cache
from math import log2
from time import perf_counter_ns

import numpy as np

from kpg.columns.updates import Ints
from kpg.kernels.jit import uses_machine_code
from kpg.kernels.radix_sort import DIGIT_BITS, radix_sort

MIN_RADIX_WORDS = 1 << 9  # fewer words are sorted faster by comparison
MIN_FIRST_RADIX_WORDS = 1 << 14  # the same in a process that has not needed machine code yet
# For each word and digit: 0.6 in the caches and 1.5 beyond them where NumPy's sort is fast. Where the processor takes
# twice as long, NumPy's sort takes so long that this figure decides nothing.
RADIX_NANOSECONDS = 1.0
MEASURED_WORDS = 1 << 12


def sort_words(words: Ints, low: int, high: int, scratch: Ints | None = None) -> None:
    """Sort words by their bits from `low` up to `high`. `scratch` is memory to use, as long as `words`."""
    n = len(words)
    if n < (MIN_RADIX_WORDS if uses_machine_code() else MIN_FIRST_RADIX_WORDS) or not _is_radix_faster(n, high - low):
        words.sort()
    else:
        radix_sort(words, np.empty(n, np.int64) if scratch is None else scratch, low, high)


def _is_radix_faster(n: int, bits: int) -> bool:
    digits = -(-bits // DIGIT_BITS)
    return RADIX_NANOSECONDS * (digits + 1) < numpy_nanoseconds() * log2(n)  # one pass counts the digits


@cache
def numpy_nanoseconds() -> float:
    """Return what NumPy's sort takes on this processor for n words, divided by n log2 n: 0.4 to 4 nanoseconds."""
    words = np.random.default_rng(0).integers(0, 1 << 62, MEASURED_WORDS)
    least = float("inf")
    for _ in range(3):
        copy = words.copy()
        began = perf_counter_ns()
        copy.sort()
        least = min(least, perf_counter_ns() - began)
    return least / (MEASURED_WORDS * log2(MEASURED_WORDS))
