"""Move times to the representatives that no reader beyond a frontier can tell from them.

    representative(F, t)  =  meet over f in F of (join of t and f)

A frontier is int64[elements, depth] with at least one element. Cost: one pass, times the elements.
Twins: kpg.testing.kernels_trace.
"""

from collections.abc import Iterator

from kpg.kernels.example import COLUMN, TABLE, Example
from kpg.kernels.jit import inlined, jit


@inlined
def representative(times, i, frontier, out, o):
    """Write the representative of column i of `times` into column o of `out`."""
    for lane in range(times.shape[0]):
        time = times[lane, i]
        best = max(time, frontier[0, lane])
        for element in range(1, frontier.shape[0]):
            best = min(best, max(time, frontier[element, lane]))
        out[lane, o] = best


@jit
def advance_range(times, start, end, frontier):
    """Replace the columns [start, end) by their representatives."""
    for lane in range(times.shape[0]):
        values = times[lane, start:end]
        least = frontier[0, lane]
        if frontier.shape[0] == 1:
            for i in range(len(values)):
                values[i] = max(values[i], least)
        else:
            for i in range(len(values)):
                best = max(values[i], least)
                for element in range(1, frontier.shape[0]):
                    best = min(best, max(values[i], frontier[element, lane]))
                values[i] = best


@jit
def advance(times, frontier, out):
    """Write the representative of every column."""
    for i in range(times.shape[1]):
        representative(times, i, frontier, out, i)


@inlined
def beyond(times, i, frontier):
    """Whether column i is at or after some element of the frontier, which may be empty."""
    for element in range(frontier.shape[0]):
        after = True
        for lane in range(times.shape[0]):
            if frontier[element, lane] > times[lane, i]:
                after = False
                break
        if after:
            return True
    return False


@jit
def split(times, frontier, early, late):
    """The positions of the columns not beyond the frontier, and of those beyond; returns how many are not."""
    n_early = 0
    n_late = 0
    for i in range(times.shape[1]):
        if beyond(times, i, frontier):
            late[n_late] = i
            n_late += 1
        else:
            early[n_early] = i
            n_early += 1
    return n_early


@jit
def minimal(times, out):
    """Write the columns with none other before them, each once; returns how many. `out` has room for every column."""
    kept = 0
    depth = times.shape[0]
    for i in range(times.shape[1]):
        covered = False
        j = 0
        while j < kept:
            below = True
            above = True
            for lane in range(depth):
                below = below and out[lane, j] <= times[lane, i]
                above = above and times[lane, i] <= out[lane, j]
            if below:
                covered = True
                break
            if above:
                kept -= 1
                for lane in range(depth):
                    out[lane, j] = out[lane, kept]
            else:
                j += 1
        if not covered:
            for lane in range(depth):
                out[lane, kept] = times[lane, i]
            kept += 1
    return kept


def examples() -> Iterator[Example]:
    """How the engine calls these kernels."""
    yield advance, (TABLE, TABLE, TABLE)
    yield split, (TABLE, TABLE, COLUMN, COLUMN)
    yield minimal, (TABLE, TABLE)
