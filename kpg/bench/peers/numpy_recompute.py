"""Recomputation in NumPy: the expected answers of counts and joins, and the cost of computing them afresh."""

from __future__ import annotations

import numpy as np

from kpg.bench.data.graphs import Ints


def counts(keys: Ints, removed: Ints | None = None, *, space: int) -> Ints:
    """Return the count of each key below `space`."""
    present = np.bincount(keys, minlength=space)
    return present if removed is None else present - np.bincount(removed, minlength=space)


def count_by_sorting(keys: Ints) -> tuple[Ints, Ints]:
    """Return the distinct keys and their counts by np.unique, which needs no bound on the keys."""
    values, numbers = np.unique(keys, return_counts=True)
    return values, numbers


def count_joined(left: Ints, right: Ints) -> int:
    """Return the number of pairs with equal keys, by sorting both sides and searching one in the other."""
    ours, theirs = np.sort(left), np.sort(right)
    matches = np.searchsorted(theirs, ours, side="right") - np.searchsorted(theirs, ours, side="left")
    return int(matches.sum())
