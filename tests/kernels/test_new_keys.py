"""Keys that an output does not hold yet are found as the twin finds them."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kpg.algebra.frontier import Frontier
from kpg.columns.consolidation import consolidate
from kpg.columns.updates import Updates
from kpg.kernels.new_keys import new_keys
from kpg.testing import kernel_twins as twins
from kpg.testing.strategies import depths, frontiers, times
from kpg.trace.batch import Batch
from kpg.trace.description import Description, elements
from kpg.trace.locate_batches import locate


def keyed(updates: list[twins.Update], depth: int, lanes: int = 1) -> Batch:
    """Return updates of keys as a batch."""
    updates_of_keys = Updates(
        twins.block([row for row, _, _ in updates], lanes),
        twins.block([time for _, time, _ in updates], depth),
        twins.block([diff for _, _, diff in updates], 1),
    )
    return Batch(consolidate(updates_of_keys), 1, Description(Frontier.start(depth), Frontier(), Frontier.start(depth)))


@given(st.data(), depths(), st.booleans(), st.booleans())
def test_new_keys_are_distinguished_from_settled_and_unclear_ones(
    data: st.DataObject, depth: int, cut: bool, alike: bool
) -> None:
    """A5.10: new, settled and unclear keys, for any rows in the output's batches."""
    count = data.draw(st.integers(1, 6))
    update = st.tuples(st.just(()), times(depth, 2), st.tuples(st.sampled_from([1, 1, -1])))
    outputs = [data.draw(st.lists(update, max_size=2, unique_by=lambda row: row[1])) for _ in range(count)]
    if alike:
        seeds = [[data.draw(times(depth, 2))]] * count
    else:
        seeds = [sorted(data.draw(st.sets(times(depth, 2), min_size=1, max_size=2))) for _ in range(count)]
    flat = [((key,), time, diff) for key, rows in enumerate(outputs) for _, time, diff in rows]
    parts = [flat[::2], flat[1::2]] if cut else [flat]
    batches = [keyed(part, depth) for part in parts]
    keys = np.arange(count).reshape(1, -1)
    table, ranges, _ = locate(batches, keys)
    new, unclear = np.empty(count, np.int64), np.empty(count, np.int64)
    offsets = np.cumsum([0] + [len(times_of_key) for times_of_key in seeds])
    seed_block = twins.block(seeds[0] if alike else [time for times_of_key in seeds for time in times_of_key], depth)
    upper = data.draw(frontiers(depth))
    n, others = new_keys(table, ranges, offsets, seed_block, elements(upper, depth), new, unclear)
    assert (new[:n].tolist(), unclear[:others].tolist()) == twins.new_keys(seeds, outputs, upper)
