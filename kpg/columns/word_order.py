"""Sort words of 64 bits in the way that is fastest for their number.

    sort_words(words, low, high, scratch)     by bits low … high - 1, in place; no word is negative

Words that agree in these bits keep their order if all words are different, since they are then sorted whole or stably.
"""

from __future__ import annotations

import numpy as np

from kpg.columns.updates import Ints
from kpg.kernels.jit import uses_machine_code
from kpg.kernels.radix_sort import radix_sort

MIN_RADIX_WORDS = 1 << 9  # fewer words are sorted faster by comparison
MIN_FIRST_RADIX_WORDS = 1 << 14  # the same in a process that has not needed machine code yet


def sort_words(words: Ints, low: int, high: int, scratch: Ints | None = None) -> None:
    """Sort words by their bits from `low` up to `high`. `scratch` is memory to use, as long as `words`."""
    if len(words) < (MIN_RADIX_WORDS if uses_machine_code() else MIN_FIRST_RADIX_WORDS):
        words.sort()
    else:
        radix_sort(words, np.empty(len(words), np.int64) if scratch is None else scratch, low, high)
