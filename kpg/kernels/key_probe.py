"""What can be said of a key from where its rows lie, without bringing its history together.

`table` describes the batches of a trace (kpg.kernels.array_address), `ranges` where in each the rows of each key are
(kpg.kernels.locate_keys). Most keys that change have one row, or rows of one batch and one time: a look at the first of them
tells all. Cost: one look at each batch, whatever the number of rows; `counted` reads them where diffs differ.
Twin: kpg.testing.kernels_react.react and moved, of the kernels that use them.
"""

from kpg.kernels.array_address import DATA, DEPTH, DIFF_ROWS, DIFFS, ROWS, TIME_ROWS, TIMES, fetch, peek
from kpg.kernels.jit import inlined

LARGE = 1 << 13  # rows of a batch that may not be in the cache
SPARSE = 8  # rows a key: nearer ones come by themselves


@inlined
def lone_row(ranges, k):
    """Which batch has the only row of key k: −1 if there is none, −2 if there are several rows."""
    found = -1
    for block in range(ranges.shape[0] // 2):
        rows = ranges[2 * block + 1, k] - ranges[2 * block, k]
        if rows == 1 and found == -1:
            found = block
        elif rows != 0:
            return -2
    return found


@inlined
def lone_batch(table, ranges, k):
    """Which batch has all rows of key k, if all its rows are of one time: else −1."""
    found = -1
    for block in range(ranges.shape[0] // 2):
        if ranges[2 * block, k] < ranges[2 * block + 1, k]:
            if found >= 0 or table[block, TIME_ROWS] != 1:
                return -1
            found = block
    return found


@inlined
def counted(table, block, start, end):
    """The sum of the diffs of some rows."""
    if table[block, DIFF_ROWS] == 1:
        return (end - start) * peek(table[block, DIFFS], 0)
    total = 0
    for row in range(start, end):
        total += peek(table[block, DIFFS], row)
    return total


@inlined
def there_from(table, block, row, seeds, seed, depth):
    """The diff of a row if its time is at or before a seed, else 0."""
    time_rows = table[block, TIME_ROWS]
    at = row if time_rows > 1 else 0
    for lane in range(min(depth, table[block, DEPTH])):
        if peek(table[block, TIMES], lane * time_rows + at) > seeds[lane, seed]:
            return 0
    return peek(table[block, DIFFS], row if table[block, DIFF_ROWS] > 1 else 0)


@inlined
def none_before(in_table, in_ranges, k, key_lanes, values, out_table, block, row):
    """Whether no input row of key k, at whatever time, has values before those of an output row."""
    out_rows = out_table[block, ROWS]
    for part in range(in_table.shape[0]):
        first = in_ranges[2 * part, k]
        if first < in_ranges[2 * part + 1, k]:  # sorted, so the first row has the least values
            for lane in range(key_lanes, key_lanes + values):
                x = peek(in_table[part, DATA], lane * in_table[part, ROWS] + first)
                y = peek(out_table[block, DATA], lane * out_rows + row)
                if x < y:
                    return False
                if x > y:
                    break
    return True


@inlined
def fetch_rows(table, ranges, k, skip, values):
    """Have the rows of key k in large batches brought near: most of a key's time would be spent waiting for them."""
    for block in range(table.shape[0]):
        rows = table[block, ROWS]
        start = ranges[2 * block, k]
        if rows >= SPARSE * ranges.shape[1] and rows >= LARGE and start < ranges[2 * block + 1, k]:
            for lane in range(values):
                fetch(table[block, DATA], (skip + lane) * rows + start)
            if table[block, TIME_ROWS] > 1:
                for lane in range(table[block, DEPTH]):
                    fetch(table[block, TIMES], lane * rows + start)
            if table[block, DIFF_ROWS] > 1:
                fetch(table[block, DIFFS], start)
