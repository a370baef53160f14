"""Find the keys that an output does not hold yet, for an input without removals.

The seeds of key k are those from `offsets[k]` to `offsets[k + 1]`; `table` and `ranges` locate the key's rows in the
output's batches (kpg.kernels.locate_keys). While an input only grows, a key that is present at a time is present at all
later times. So a key with one seed that is not beyond `upper` is

    new       if the output has no row of it: it is present from the seed on
    settled   if the output has one row of it, with diff 1, at or before the seed
    unclear   otherwise, and so are all other keys

The kernel writes the numbers of the new and of the unclear keys, in order, and returns both counts. Twin:
kpg.testing.kernel_twins.one_pass_corrections_twin.new_keys.
"""

from collections.abc import Iterator

from kpg.kernels.example import COLUMN, TABLE, Example
from kpg.kernels.jit import jit
from kpg.kernels.join_closure import is_beyond
from kpg.kernels.key_probe import batch_of_only_row, diff_as_of


@jit
def new_keys(table, ranges, offsets, seeds, upper, new, unclear):
    """Write the numbers of the new keys and of the unclear keys; return both counts."""
    depth = seeds.shape[0]
    step = 1 if seeds.shape[1] > 1 else 0
    new_n = 0
    unclear_n = 0
    for k in range(len(offsets) - 1):
        first = offsets[k]
        one_seed = offsets[k + 1] == first + 1 and not is_beyond(upper, seeds, first * step)
        block = batch_of_only_row(ranges, k) if one_seed else -2
        if block == -1:
            new[new_n] = k
            new_n += 1
        elif block == -2 or diff_as_of(table, block, ranges[2 * block, k], seeds, first * step, depth) != 1:
            unclear[unclear_n] = k
            unclear_n += 1
    return new_n, unclear_n


def examples() -> Iterator[Example]:
    """Yield each kernel that Python calls, with example arguments."""
    yield new_keys, (TABLE, TABLE, COLUMN, TABLE, TABLE, COLUMN, COLUMN)
