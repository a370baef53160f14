"""Selections by mask, position, range or lane give the same as on a list of triples."""

import numpy as np
import pytest

from kpg.columns.selection import keep, reorder_lanes, slice_updates, take
from kpg.columns.updates import Updates, constant, spread

DATA = np.arange(10).reshape(2, 5)
WHOLE = Updates(DATA, np.arange(5).reshape(1, 5), np.array([[1, -1, 2, 1, 3]]))
CONSTANT = Updates(DATA, constant((7,)), constant((1,)))


def triples(updates):
    n = len(updates)
    times, diffs = spread(updates.times, n).T.tolist(), spread(updates.diffs, n)[0].tolist()
    return list(zip(updates.data.T.tolist(), times, diffs, strict=True))


@pytest.mark.parametrize("updates", [WHOLE, CONSTANT], ids=["each its own", "constant"])
def test_selections_match_a_list_and_constants_stay_constants(updates):
    rows = triples(updates)
    mask = np.array([True, False, False, True, True])
    chosen = {
        "keep": (keep(updates, mask), [row for row, kept in zip(rows, mask, strict=True) if kept]),
        "take": (take(updates, np.array([4, 0, 0])), [rows[4], rows[0], rows[0]]),
        "cut": (slice_updates(updates, 1, 3), rows[1:3]),
        "reordered": (reorder_lanes(updates, [1, 0]), [(data[::-1], time, diff) for data, time, diff in rows]),
    }
    for name, (actual, expected) in chosen.items():
        assert triples(actual) == expected, name
        assert actual.data.flags.c_contiguous, name
        assert (actual.times.shape[1] == 1) == (updates is CONSTANT), name


def test_unchanged_updates_are_not_copied():
    assert slice_updates(WHOLE, 0, 5) is WHOLE and reorder_lanes(WHOLE, [0, 1]) is WHOLE
