"""Which keys are not in an output yet, where nothing was ever taken away.

The seeds of key k are those from `offsets[k]` to `offsets[k + 1]`; `table` and `ranges` say which rows of the output's
batches are the key's (kpg.kernels.locate_keys). While an input only grows, a key that is there at a time is there at all
later ones. So a key of one seed, not beyond `upper`, is

    fresh     if the output has no row of it: it is there from the seed on
    settled   if the output's only row of it puts it there, once, at or before the seed
    unclear   otherwise, and so are all other keys

Fills in the numbers of fresh and of unclear keys, in order; returns how many there are of each. Twin:
kpg.testing.kernels_react.unseen.
"""

from collections.abc import Iterator

from kpg.kernels.example import COLUMN, TABLE, Example
from kpg.kernels.jit import jit
from kpg.kernels.join_closure import beyond
from kpg.kernels.key_probe import lone_row, there_from


@jit
def unseen(table, ranges, offsets, seeds, upper, fresh, unclear):
    """List the keys that are fresh and those that are unclear."""
    depth = seeds.shape[0]
    step = 1 if seeds.shape[1] > 1 else 0
    fresh_n = 0
    unclear_n = 0
    for k in range(len(offsets) - 1):
        first = offsets[k]
        plain = offsets[k + 1] == first + 1 and not beyond(upper, seeds, first * step)
        block = lone_row(ranges, k) if plain else -2
        if block == -1:
            fresh[fresh_n] = k
            fresh_n += 1
        elif block == -2 or there_from(table, block, ranges[2 * block, k], seeds, first * step, depth) != 1:
            unclear[unclear_n] = k
            unclear_n += 1
    return fresh_n, unclear_n


def examples() -> Iterator[Example]:
    """The one signature of each kernel that Python calls."""
    yield unseen, (TABLE, TABLE, COLUMN, TABLE, TABLE, COLUMN, COLUMN)
