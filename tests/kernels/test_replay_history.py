"""A tally finds its nonzero ranks.

tests/kernels/test_evaluate_output.py and tests/operators/test_replay.py test whole replays.
"""

import numpy as np

from kpg.kernels.replay_history import add_diff, clear_tally, next_nonzero


def test_a_tally_finds_its_nonzero_ranks() -> None:
    """A5.4: the next nonzero rank among thousands, after additions and removals."""
    rng = np.random.default_rng(3)
    ranks = 20_000
    sums, nonzero_counts = np.zeros((2, ranks), np.int64), np.zeros((2, (ranks >> 6) + 1), np.int64)
    diffs = np.array([[1, 0], [0, 1]])
    nonzero: set[int] = set()
    for rank in rng.choice(ranks, 60):
        for column in (0, 1):
            add_diff(sums, nonzero_counts, int(rank), diffs, 0, column, 1)
        add_diff(sums, nonzero_counts, int(rank), diffs, 0, 0, -1)
        nonzero.add(int(rank))
        if rank % 3 == 0:
            for column, times in ((1, int(sums[1, rank])), (0, int(sums[0, rank]))):
                for _ in range(times):
                    add_diff(sums, nonzero_counts, int(rank), diffs, 0, column, -1)
            nonzero.discard(int(rank))
    visited, at = [], next_nonzero(sums, nonzero_counts, 0, ranks)
    while at < ranks:
        visited.append(at)
        at = next_nonzero(sums, nonzero_counts, at + 1, ranks)
    assert visited == sorted(nonzero)
    clear_tally(sums, nonzero_counts, ranks)
    assert not sums.any() and not nonzero_counts.any()
