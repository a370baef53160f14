"""Words are sorted by digits as the twin sorts them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpg.columns import word_order
from kpg.columns.word_order import sort_words
from kpg.kernels.radix_sort import radix_sort
from kpg.testing import kernel_twins as twins

bits = st.integers(0, 63)
words = st.lists(st.integers(0, 2**63 - 1) | st.integers(0, 3) | st.sampled_from([1 << 40, 7 << 21]), max_size=50)


@given(words, bits, bits, st.booleans())
def test_words_are_sorted_by_some_of_their_bits(values, low, width, in_order):
    """The bits above the last whole digit count too, if they are within 63 bits."""
    high = min(63, low + width)
    values = [value & ((1 << high) - 1) for value in values]
    if in_order:
        values = twins.radix_sort(values, low, high)
    sorted_words = np.array(values, np.int64)
    radix_sort(sorted_words, np.empty_like(sorted_words), low, high)
    assert sorted_words.tolist() == twins.radix_sort(values, low, high)


def test_many_words_are_sorted_as_few_are(monkeypatch):
    values = np.random.default_rng(1).integers(0, 1 << 33, 20_000) << 15 | np.arange(20_000)
    expected = np.sort(values)
    for fewest in (1, 1 << 20):
        monkeypatch.setattr(word_order, "MIN_RADIX_WORDS", fewest)
        for scratch in (None, np.empty_like(values)):
            words = values.copy()
            sort_words(words, 15, 48, scratch)
            assert (words == expected).all()


@pytest.mark.parametrize("nanoseconds", [0.1, 10.0])
def test_the_order_does_not_depend_on_the_speed_of_numpy(monkeypatch, nanoseconds):
    """On a fast NumPy only narrow words are sorted by digits; on a slow one all are."""
    monkeypatch.setattr(word_order, "numpy_nanoseconds", lambda: nanoseconds)
    monkeypatch.setattr(word_order, "uses_machine_code", lambda: True)
    sorted_by_digits = []
    monkeypatch.setattr(
        word_order, "radix_sort", lambda *arguments: (sorted_by_digits.append(1), radix_sort(*arguments))
    )
    words = np.random.default_rng(2).integers(0, 1 << 60, 1_000)
    expected = np.sort(words)
    sort_words(words, 0, 60)
    assert words.tolist() == expected.tolist()
    assert bool(sorted_by_digits) == (nanoseconds == 10.0)
