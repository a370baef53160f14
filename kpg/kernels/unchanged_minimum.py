"""Which groups keep their least row, whatever else came and went in them.

The new rows of key k, all at one time, are the columns of `data` from `offsets[k]` to `offsets[k + 1]`, in order;
`table` and `ranges` say which rows of the output's batches are the key's (kpg.kernels.locate_keys). If the output's only row
of a key is there, once, from that time or before on, it is the least at all later times. Then rows after it do not
matter, nor do more of the same. Fills in the numbers of all other keys, in order; returns how many there are. Twin:
kpg.testing.kernels_react.moved.
"""

from collections.abc import Iterator

from kpg.kernels.array_address import DATA, ROWS, peek
from kpg.kernels.example import COLUMN, NUMBER, TABLE, Example
from kpg.kernels.jit import inlined, jit
from kpg.kernels.key_probe import lone_row, there_from


@inlined
def order_after(table, block, row, key_lanes, data, i):
    """1 if the values of column i sort after those of an output row, 0 if they are the same, else -1."""
    for lane in range(key_lanes, data.shape[0]):
        x = data[lane, i]
        y = peek(table[block, DATA], lane * table[block, ROWS] + row)
        if x != y:
            return 1 if x > y else -1
    return 0


@jit
def moved(table, ranges, key_lanes, times, offsets, data, diffs, chosen):
    """List the keys whose least row may be another now."""
    n = 0
    for k in range(len(offsets) - 1):
        block = lone_row(ranges, k)
        if block >= 0:
            row = ranges[2 * block, k]
            if there_from(table, block, row, times, 0, times.shape[0]) == 1:
                first = offsets[k]
                order = order_after(table, block, row, key_lanes, data, first)
                if order == 1 or (order == 0 and diffs[0, first if diffs.shape[1] > 1 else 0] > 0):
                    continue
        chosen[n] = k
        n += 1
    return n


def examples() -> Iterator[Example]:
    """The one signature of each kernel that Python calls."""
    yield moved, (TABLE, TABLE, NUMBER, TABLE, COLUMN, TABLE, TABLE, COLUMN)
