"""Replace times by their representatives as of a frontier. Readers beyond the frontier cannot distinguish the two.

    representative(F, t)  =  meet over f in F of (join of t and f)

A frontier is int64[elements, depth] with at least one element. Cost: one pass, times the number of elements.
Twins: kpg.testing.kernel_twins.advance_times_twin.
"""

from collections.abc import Iterator

from kpg.kernels.example import COLUMN, TABLE, Example
from kpg.kernels.jit import inlined, jit


@inlined
def write_representative(times, i, frontier, out, o):
    """Write the representative of column i of `times` into column o of `out`."""
    for lane in range(times.shape[0]):
        time = times[lane, i]
        best = max(time, frontier[0, lane])
        for element in range(1, frontier.shape[0]):
            best = min(best, max(time, frontier[element, lane]))
        out[lane, o] = best


@jit
def advance_columns(times, start, end, frontier):
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
def advance_times(times, frontier, out):
    """Write the representative of every column."""
    for i in range(times.shape[1]):
        write_representative(times, i, frontier, out, i)


@inlined
def is_beyond(times, i, frontier):
    """Return whether column i is at or after some element of the frontier, which may be empty."""
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
def split_times(times, frontier, early, late):
    """Write the positions of the columns that are not beyond the frontier into `early`, the others into `late`.

    Return the number of early columns.
    """
    n_early = 0
    n_late = 0
    for i in range(times.shape[1]):
        if is_beyond(times, i, frontier):
            late[n_late] = i
            n_late += 1
        else:
            early[n_early] = i
            n_early += 1
    return n_early


@jit
def minimal_times(times, out):
    """Write the minimal columns, those with no other column before them, each once; return their number.

    `out` has as many columns as `times`.
    """
    kept = 0
    depth = times.shape[0]
    for i in range(times.shape[1]):
        covered = False
        j = 0
        while j < kept:
            before = True
            after = True
            for lane in range(depth):
                before = before and out[lane, j] <= times[lane, i]
                after = after and times[lane, i] <= out[lane, j]
            if before:
                covered = True
                break
            if after:
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
    """Yield each kernel that Python calls, with example arguments."""
    yield advance_times, (TABLE, TABLE, TABLE)
    yield split_times, (TABLE, TABLE, COLUMN, COLUMN)
    yield minimal_times, (TABLE, TABLE)
