"""Find the groups in which the least row may change, given the new rows.

The new rows of key k, all at one time, are the columns of `data` from `offsets[k]` to `offsets[k + 1]`, sorted; `table`
and `ranges` locate the key's rows in the output's batches (kpg.kernels.locate_keys). If the output has one row of a
key, with diff 1, at or before that time, that row is the minimum from then on. Inserting or removing rows after it
leaves it the minimum, and so do further copies of it. The kernel writes the numbers of all other keys, in order, and
returns their count. Twin: kpg.testing.kernel_twins.one_pass_corrections_twin.keys_with_changed_minimum.
"""

from collections.abc import Iterator

from kpg.kernels.array_address import DATA, ROWS, peek
from kpg.kernels.example import COLUMN, NUMBER, TABLE, Example
from kpg.kernels.jit import inlined, jit
from kpg.kernels.key_probe import batch_of_only_row, diff_as_of


@inlined
def compare_values(table, block, row, key_lanes, data, i):
    """Return 1 if the values of column i sort after those of an output row, 0 if they are equal, else -1."""
    for lane in range(key_lanes, data.shape[0]):
        x = data[lane, i]
        y = peek(table[block, DATA], lane * table[block, ROWS] + row)
        if x != y:
            return 1 if x > y else -1
    return 0


@jit
def keys_with_changed_minimum(table, ranges, key_lanes, times, offsets, data, diffs, changed):
    """Write the numbers of the keys in which the least row may change; return their count."""
    n = 0
    for k in range(len(offsets) - 1):
        block = batch_of_only_row(ranges, k)
        if block >= 0:
            row = ranges[2 * block, k]
            if diff_as_of(table, block, row, times, 0, times.shape[0]) == 1:
                first = offsets[k]
                order = compare_values(table, block, row, key_lanes, data, first)
                if order == 1 or (order == 0 and diffs[0, first if diffs.shape[1] > 1 else 0] > 0):
                    continue
        changed[n] = k
        n += 1
    return n


def examples() -> Iterator[Example]:
    """Yield each kernel that Python calls, with example arguments."""
    yield keys_with_changed_minimum, (TABLE, TABLE, NUMBER, TABLE, COLUMN, TABLE, TABLE, COLUMN)
