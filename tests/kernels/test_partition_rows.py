"""Rows are partitioned among workers as the twin partitions them."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kpg.columns.symbols import Symbols
from kpg.columns.updates import Updates, constant
from kpg.operators.exchange import MIN_CONSOLIDATED_UPDATES, consolidate_repeated, partition_by
from kpg.testing import kernel_twins as twins

numbers = st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3)


@given(
    rows=st.lists(st.tuples(numbers, numbers, numbers), min_size=1, max_size=20),
    lanes=st.integers(0, 3),
    workers=st.integers(1, 5),
    constants=st.booleans(),
)
def test_rows_are_partitioned_as_the_twin_partitions_them(
    rows: list[tuple[int, int, int]], lanes: int, workers: int, constants: bool
) -> None:
    n = len(rows)
    data = np.array(rows, np.int64).T.copy()
    times = constant((7, 2)) if constants else np.arange(2 * n).reshape(2, n)
    diffs = constant((1,)) if constants else np.arange(n).reshape(1, n)
    parts = partition_by(Updates(data, times, diffs), data, (False,) * lanes, Symbols(), workers, can_pack=False)
    at = {row: index for index, row in enumerate(rows)}
    for part, expected in zip(parts, twins.partition_rows(rows, lanes, workers), strict=True):
        part_rows = [] if part is None else [tuple(row) for row in part.data.T.tolist()]
        assert part_rows == expected
        if part is not None:
            assert all(block.flags.c_contiguous for block in (part.data, part.times, part.diffs))
            if constants:
                assert part.times is times and part.diffs is diffs
            elif len(at) == n:
                assert part.diffs[0].tolist() == [at[row] for row in part_rows]
                assert (part.times[1] - part.times[0] == n).all()


def test_many_updates_of_few_values_are_summed_before_they_are_sent() -> None:
    values = np.random.default_rng(3).integers(0, 100, MIN_CONSOLIDATED_UPDATES)
    crowded = Updates(values.reshape(1, -1), constant((4,)), constant((2,)))
    summed = consolidate_repeated(crowded)
    expected, counts = np.unique(values, return_counts=True)
    assert summed.consolidated and (summed.data[0] == expected).all() and (summed.diffs[0] == 2 * counts).all()
    hot = np.random.default_rng(4).integers(0, 2**60, 2 * MIN_CONSOLIDATED_UPDATES)
    hot[:MIN_CONSOLIDATED_UPDATES] = 7
    np.random.default_rng(5).shuffle(hot)
    summed_hot = consolidate_repeated(Updates(hot.reshape(1, -1), constant((4,)), constant((2,))))
    assert len(summed_hot) == MIN_CONSOLIDATED_UPDATES + 1 and summed_hot.diffs.max() == 2 * MIN_CONSOLIDATED_UPDATES
    spread = Updates(2 * np.arange(MIN_CONSOLIDATED_UPDATES).reshape(1, -1), constant((4,)), constant((2,)))
    assert consolidate_repeated(spread) is spread and consolidate_repeated(summed) is summed
