"""Sort words by some of their bits, a digit at a time: least significant digit first.

    radix_sort(words, scratch, low, high)      sorts by bits low … high - 1; words that agree there keep their order

No word is negative, and `scratch` is as long as `words`. One pass counts the values of all digits; then each digit
costs a pass that moves the words. Digits that all words share are skipped. Words in order stay as they are.
Cost: 0.6 to 2 nanoseconds for each word and digit. On some processors NumPy's sort is faster for words of more than 30
bits, on others it takes five times as long. Twin: kpg.testing.kernel_twins.radix_sort_twin.
"""

from collections.abc import Iterator

import numpy as np

from kpg.kernels.example import COLUMN, NUMBER, Example
from kpg.kernels.jit import jit

DIGIT_BITS = 10  # so that the counts of a digit, and the ends of the lines written to, stay in the first-level cache
DIGIT_VALUES = 1 << DIGIT_BITS


@jit
def count_digits(words, low, counts):
    """Count the values of each digit, int64[digits, DIGIT_VALUES]; return 1 if the words are in order already."""
    in_order = 1
    before = np.uint64(0)
    digit_mask, digit_bits, first = np.uint64(DIGIT_VALUES - 1), np.uint64(DIGIT_BITS), np.uint64(low)
    for i in range(len(words)):
        word = np.uint64(words[i]) >> first
        if word < before:
            in_order = 0
        before = word
        for digit in range(counts.shape[0]):
            counts[digit, word & digit_mask] += 1
            word = word >> digit_bits
    return in_order


@jit
def move_by_digit(source, shift, ends, target):
    """Move words to the places of their digit; `ends` has the next place for each value of the digit."""
    digit_mask, first = np.uint64(DIGIT_VALUES - 1), np.uint64(shift)
    for i in range(len(source)):
        word = source[i]
        digit = (np.uint64(word) >> first) & digit_mask
        target[np.uint64(ends[digit])] = word
        ends[digit] += 1


@jit
def radix_sort(words, scratch, low, high):
    """Sort words by their bits from `low` up to `high`."""
    n = len(words)
    digits = (high - low + DIGIT_BITS - 1) // DIGIT_BITS
    counts = np.zeros((digits, DIGIT_VALUES), np.int64)
    if n < 2 or count_digits(words, low, counts) == 1:
        return
    in_scratch = False
    for digit in range(digits):
        shift = low + digit * DIGIT_BITS
        ends = counts[digit]
        if ends[(words[0] >> shift) & (DIGIT_VALUES - 1)] == n:
            continue
        total = 0
        for value in range(DIGIT_VALUES):
            count = ends[value]
            ends[value] = total
            total += count
        if in_scratch:
            move_by_digit(scratch, shift, ends, words)
        else:
            move_by_digit(words, shift, ends, scratch)
        in_scratch = not in_scratch
    if in_scratch:
        words[:] = scratch


def examples() -> Iterator[Example]:
    """Yield each kernel that Python calls, with example arguments."""
    yield radix_sort, (COLUMN, COLUMN, NUMBER, NUMBER)
