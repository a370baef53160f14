"""Groups that keep their minimum are found as the twin finds them."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kpg.algebra.frontier import Frontier
from kpg.columns.consolidation import consolidate
from kpg.columns.updates import Updates
from kpg.kernels.unchanged_minimum import keys_with_changed_minimum
from kpg.testing import kernel_twins as twins
from kpg.testing.strategies import depths, times
from kpg.trace.batch import Batch
from kpg.trace.description import Description
from kpg.trace.locate_batches import locate


def keyed(updates: list[twins.Update], depth: int, lanes: int = 1) -> Batch:
    """Return updates of keys as a batch."""
    updates_of_keys = Updates(
        twins.block([row for row, _, _ in updates], lanes),
        twins.block([time for _, time, _ in updates], depth),
        twins.block([diff for _, _, diff in updates], 1),
    )
    return Batch(consolidate(updates_of_keys), 1, Description(Frontier.start(depth), Frontier(), Frontier.start(depth)))


@given(st.data(), depths(), st.booleans())
def test_groups_that_keep_their_minimum_are_distinguished_from_others(
    data: st.DataObject, depth: int, cut: bool
) -> None:
    """A5.10: rows before, at and after the minimum are added and removed, for any rows in the output's batches."""
    count, time = data.draw(st.integers(1, 6)), data.draw(times(depth, 2))
    value, diff = st.tuples(st.integers(0, 3)), st.tuples(st.sampled_from([1, 1, -1]))
    row, new = st.tuples(value, times(depth, 2), diff), st.tuples(value, st.just(time), diff)
    outputs = [data.draw(st.lists(row, max_size=2, unique_by=lambda update: update[:2])) for _ in range(count)]
    changes = [
        sorted(data.draw(st.lists(new, min_size=1, max_size=3, unique_by=lambda update: update[0])))
        for _ in range(count)
    ]
    flat = [((key, *values), at, change) for key, rows in enumerate(outputs) for values, at, change in rows]
    batches = [keyed(part, depth, 2) for part in ([flat[::2], flat[1::2]] if cut else [flat])]
    table, ranges, _ = locate(batches, np.arange(count).reshape(1, -1))
    new_rows = [((key, *values), at, change) for key, rows in enumerate(changes) for values, at, change in rows]
    new_batch = keyed(new_rows, depth, 2)
    offsets = np.cumsum([0] + [len(rows) for rows in changes])
    changed = np.empty(count, np.int64)
    n = keys_with_changed_minimum(
        table, ranges, 1, new_batch.updates.times, offsets, new_batch.updates.data, new_batch.updates.diffs, changed
    )
    assert changed[:n].tolist() == twins.keys_with_changed_minimum(time, changes, outputs)
