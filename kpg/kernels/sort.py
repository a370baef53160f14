"""Pack rows into 64-bit words whose order is the order of the rows, so that one sort of words sorts the rows.

    word(row)  =  Σ over lanes of (value − low) << shift

Lanes are packed most significant first. Preconditions of `pack`: every value − low fits between its own shift and that
of the lane before it, and the whole below 2**63, so that no word is negative. A block of one column is a constant and
is packed into every word. Cost: one pass each.
Twins: kpg.testing.kernels_trace.
"""

from collections.abc import Iterator

from kpg.kernels.example import COLUMN, NUMBER, TABLE, Example
from kpg.kernels.jit import jit

CHUNK = 1024  # words that stay in the first-level cache while each lane is added to them


@jit
def bounds(block, low, high):
    """The least and the greatest value of each lane; there must be a column."""
    for lane in range(block.shape[0]):
        least = block[lane, 0]
        most = least
        for i in range(block.shape[1]):
            value = block[lane, i]
            least = min(least, value)
            most = max(most, value)
        low[lane] = least
        high[lane] = most


@jit
def pack(block, low, shift, first, words):
    """Add the lanes of a block to the words, or begin the words if `first` is 1."""
    n = len(words)
    for start in range(0, n, CHUNK):
        end = min(n, start + CHUNK)
        if first == 1:
            for i in range(start, end):
                words[i] = 0
        for lane in range(block.shape[0]):
            base = low[lane]
            bits = shift[lane]
            for i in range(start, end):
                words[i] |= (block[lane, i] - base) << bits


@jit
def number(bits, words):
    """Make room for the position of each word and add it: a sort of words is then a sort of positions."""
    for i in range(len(words)):
        words[i] = (words[i] << bits) | i


def examples() -> Iterator[Example]:
    """How the engine calls these kernels."""
    yield bounds, (TABLE, COLUMN, COLUMN)
    yield pack, (TABLE, COLUMN, COLUMN, NUMBER, COLUMN)
    yield number, (NUMBER, COLUMN)
